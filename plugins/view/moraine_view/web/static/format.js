// Numbers and places as text.

/** @param {number|null|undefined} value @param {number} digits that count */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "no data";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(digits))) : value.toExponential(2);
  return text.replace("-", "−");
}

const HALF_WORLD = 20037508.342789244;

/** Longitude and latitude of a place on the map, in meters from its north-west corner.
 * @param {number} x @param {number} y @returns {[number, number]} */
export function degrees(x, y) {
  const r = HALF_WORLD / Math.PI;
  const lon = ((x - HALF_WORLD) / r) * (180 / Math.PI);
  const lat = (2 * Math.atan(Math.exp((HALF_WORLD - y) / r)) - Math.PI / 2) * (180 / Math.PI);
  return [lon, lat];
}

/** The place on the map of longitude and latitude.
 * @param {number} lon @param {number} lat @returns {[number, number]} */
export function meters(lon, lat) {
  const r = HALF_WORLD / Math.PI;
  const phi = (lat * Math.PI) / 180;
  return [HALF_WORLD + (r * lon * Math.PI) / 180, HALF_WORLD - r * Math.log(Math.tan(Math.PI / 4 + phi / 2))];
}

/** Two numbers that name a place in a link: azimuth and range, or latitude and longitude.
 * @param {boolean} isMap @param {number} x @param {number} y */
export function toLink(isMap, x, y) {
  if (isMap) {
    const [lon, lat] = degrees(x, y);
    return [lat.toFixed(6), lon.toFixed(6)];
  }
  return [y - 0.5, x - 0.5].map((v) => String(Number(v.toFixed(2))));
}

/** The place that two numbers of a link name.
 * @param {boolean} isMap @param {number} first @param {number} second @returns {[number, number]} */
export function fromLink(isMap, first, second) {
  return isMap ? meters(second, first) : [second + 0.5, first + 0.5];
}

/** Longitude and latitude for people, to a meter. @param {number} lon @param {number} lat */
export function degreesText(lon, lat) {
  return `lat ${lat.toFixed(5)}°, lon ${lon.toFixed(5)}°`;
}

/** A place for people. @param {boolean} isMap @param {number} x @param {number} y */
export function placeText(isMap, x, y) {
  if (isMap) return degreesText(...degrees(x, y));
  return `azimuth ${Math.floor(y)}, range ${Math.floor(x)}`;
}

/** Round numbers within a span, at most about `count` of them.
 * @param {number} low @param {number} high @param {number} count */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * 0.999) ?? 10 * unit;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

/** Make an element: properties and listeners, then children; text goes in as text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Record<string, unknown>} properties @param {...(Node|string)} children */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else Object.assign(made, { [name]: value });
  }
  made.append(...children);
  return made;
}
