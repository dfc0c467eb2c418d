// The coastline behind points on a map, to tell where on Earth they are: from afar only, as it is off by kilometers.

import { ringMark } from "./marks.js";
import { addCredit } from "./plane.js";

/** Closer than this (a pixel is 306 m) one would see how wrong it is. */
const CLOSEST_ZOOM = 9;

/** Data that are smaller on the screen get a ring around them, in pixels. */
const SMALL = 16;

const CREDIT = "Coastline: Natural Earth, 1 : 50 million";

/** @type {Promise<[number, number][][]> | undefined} */
let coast;

/** Lines of latitude and longitude, from the file that tools/coast.py makes: each line has its first point and then the
 * steps from point to point, in units of a grid.
 * @param {{grid: number, lines: number[][]}} file */
export function coastOf({ grid, lines }) {
  return lines.map((steps) => {
    let [lon, lat] = [0, 0];
    return Array.from({ length: steps.length / 2 }, (_, k) => {
      lon += steps[2 * k];
      lat += steps[2 * k + 1];
      return /** @type {[number, number]} */ ([lat * grid, lon * grid]);
    });
  });
}

async function loadCoast() {
  return coastOf(await (await fetch("s/coast.json")).json());
}

/** Draw it below everything else, and where the data are, whenever a map is far enough away.
 * @param {any} map @param {any} bounds of the data */
export function addCoast(map, bounds) {
  map.createPane("coast").style.zIndex = "105";
  /** @type {any[]} */
  let shown = [];
  let isWanted = false;
  const update = async () => {
    isWanted = map.getZoom() <= CLOSEST_ZOOM;
    if (!isWanted) {
      shown.splice(0).forEach((part) => part.remove());
      return;
    }
    coast ??= loadCoast();
    const lines = await coast.catch(() => null);
    if (!lines || !isWanted || shown.length) return;
    const line = L.polyline(lines, { pane: "coast", className: "coast", interactive: false });
    shown = [line.addTo(map), addCredit(map, CREDIT)];
  };
  const icon = L.divIcon({ html: ringMark(), className: "mark-box", iconSize: [18, 18] });
  const ring = L.marker(bounds.getCenter(), { icon, interactive: false, keyboard: false });
  const encircle = () => {
    const size = map.latLngToLayerPoint(bounds.getSouthEast()).distanceTo(map.latLngToLayerPoint(bounds.getNorthWest()));
    if (size < SMALL) ring.addTo(map);
    else ring.remove();
  };
  map.on("zoomend", encircle);
  map.on("zoomend", update);
  map.on("unload", () => {
    map.off("zoomend", update);
    isWanted = false;
  });
}
