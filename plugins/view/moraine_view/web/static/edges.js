// Numbers along two edges of a picture: range and azimuth, or degrees.

/** @import { Pane } from "./pane.js" */

import { degrees, element, meters, ticks } from "./format.js";

/** Digits behind the point that a round number needs. @param {number} value */
function digitsOf(value) {
  let digits = 0;
  while (digits < 9 && Math.abs(value - Number(value.toFixed(digits))) > 1e-10) digits += 1;
  return digits;
}

/** @param {Pane} pane */
export function edgeMarks({ map, layer, toMap, fromMap }) {
  const size = map.getSize();
  if (!size.x || !size.y) return [];
  const isMap = layer.is_map;
  /** @param {number} x @param {number} y */
  const corner = (x, y) => {
    const place = fromMap(map.containerPointToLatLng([x, y]));
    return isMap ? degrees(place[0], place[1]) : [place[0] - 0.5, place[1] - 0.5];
  };
  const [x0, y0] = corner(0, 0);
  const [x1, y1] = corner(size.x, size.y);
  /** @param {"x"|"y"} side @param {number} value @param {number} digits */
  const mark = (side, value, digits) => {
    const [first, second] = side === "x" ? [value, y0] : [x0, value];
    const [x, y] = isMap ? meters(first, second) : [first + 0.5, second + 0.5];
    const point = map.latLngToContainerPoint(toMap(x, y));
    if (side === "y" ? point.y > size.y - 26 : point.x > size.x - 16) return []; // the corner belongs to neither
    const text = `${value.toFixed(digits).replace("-", "−")}${isMap ? "°" : ""}`;
    const span = element("span", { className: `edge edge-${side}` }, text);
    span.style[side === "x" ? "left" : "top"] = `${side === "x" ? point.x : point.y}px`;
    return [span];
  };
  /** @param {"x"|"y"} side @param {number} low @param {number} high @param {number} count */
  const along = (side, low, high, count) => {
    const found = ticks(low, high, count).filter((v) => isMap || Number.isInteger(Number(v.toFixed(6))));
    const digits = Math.max(...found.map(digitsOf), 0);
    return found.flatMap((value) => mark(side, value, digits));
  };
  return [...along("x", x0, x1, size.x / 110), ...along("y", Math.min(y0, y1), Math.max(y0, y1), size.y / 80)];
}
