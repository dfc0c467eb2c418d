// Where a layer lies: its plane on a map of Leaflet, how high its lines are, and the scale.

/** @import { Layer } from "./data.js" */
/** @import { Plane } from "./state.js" */

import { degrees, element, meters } from "./format.js";

export const TILE = 256;
export const MAP_ZOOM = 22;
const GRID_ZOOM = 6;

/** Height of a line in widths of a pixel. Of the true one tiles have a whole number of pixels of the screen.
 * @param {Layer} layer @param {Plane} plane */
export function aspectOf(layer, plane) {
  if (plane.aspect !== "true") return plane.aspect;
  const { spacing } = layer;
  return spacing ? Math.max(Math.round((TILE * spacing.azimuth) / spacing.range), 1) / TILE : 1;
}

/** Which lengths the spacings of a layer measure. @param {Layer} layer */
export function rangeName(layer) {
  return layer.spacing?.is_ground ? "ground range" : "slant range";
}

/** Meters of a step on a radar grid, by pixels; null where spacings are not known.
 * @param {Layer} layer @param {number} right @param {number} down */
export function lengthOf(layer, right, down) {
  const { spacing } = layer;
  return spacing ? Math.hypot(right * spacing.range, down * spacing.azimuth) : null;
}

/** Between places of the plane and those of Leaflet.
 * @param {Layer} layer @param {number} aspect */
export function planeOf(layer, aspect) {
  if (layer.is_map) {
    return {
      crs: L.CRS.EPSG3857,
      /** @param {number} x @param {number} y */
      toMap: (x, y) => {
        const [lon, lat] = degrees(x, y);
        return L.latLng(lat, lon);
      },
      /** @param {LatLng} place */
      fromMap: (place) => meters(place.lng, place.lat),
    };
  }
  const crs = L.extend({}, L.CRS.Simple, {
    transformation: new L.Transformation(1, 0, aspect, 0),
    infinite: true,
    /** @param {LatLng} a @param {LatLng} b */
    distance: (a, b) => lengthOf(layer, b.lng - a.lng, b.lat - a.lat),
  });
  return {
    crs,
    /** @param {number} x @param {number} y */
    toMap: (x, y) => L.latLng(y, x),
    /** @param {LatLng} place @returns {[number, number]} */
    fromMap: (place) => [place.lng, place.lat],
  };
}

/** Zoom of Leaflet and level of a layer add up to this. @param {Layer} layer */
export function zoomOfLevel0(layer) {
  if (layer.is_map) return MAP_ZOOM;
  return layer.kind === "raster" ? 0 : GRID_ZOOM;
}

/** A bar of so many meters, where lengths are known; on a radar grid it says along what.
 * @param {any} map @param {Layer} layer @param {boolean} isTrue */
export function addScale(map, layer, isTrue) {
  if (!layer.is_map && !layer.spacing) return;
  const scale = L.control.scale({ imperial: false, position: "bottomleft" }).addTo(map);
  if (layer.is_map) return;
  const along = isTrue ? `azimuth and ${rangeName(layer)}` : `along ${rangeName(layer)}`;
  scale.getContainer().append(element("div", { className: "scale-of" }, along));
}

/** A line of text in the lower left corner. @param {any} map @param {string} text */
export function addCredit(map, text) {
  const credit = L.control({ position: "bottomleft" });
  credit.onAdd = () => element("p", { className: "credit" }, text);
  return credit.addTo(map);
}
