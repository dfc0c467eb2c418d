// The answers of a server, found in the files of an export.

/** @import { Codes, Layer, Meta, Product, Sampled, Values } from "./data.js" */

import { Failed, loadTile } from "./data.js";
import { TILE } from "./plane.js";

/** The fields of a question. @typedef {Record<string, string|number>} Fields */
/** Series of codes in a window, and that of the place itself.
 * @typedef {{rows: Codes[], middle: Codes, product: Product, place: {x: number, y: number, point?: number}}} Around */

/** @type {Map<string, Promise<any>>} */
const texts = new Map();

/** @param {string} url @returns {Promise<any>} */
async function json(url) {
  if (!texts.has(url)) texts.set(url, fetch(url).then((response) => response.json()));
  return texts.get(url);
}

/** Answer a question as the server would. @param {Meta} meta @param {string} what @param {Fields} fields */
export async function answer(meta, what, fields) {
  const layer = meta.layers[Number(fields.layer)];
  if (what === "profile") return profile(layer, fields);
  const window = layer.kind === "raster" ? await pixels(layer, fields) : await points(layer, fields);
  return { ...window.place, ...valuesOf(window.middle, window.product), ref: constants(layer, window, Number(fields.a)) };
}

/** @param {Layer} layer */
const productOf = (layer) => Object.keys(layer.products)[0];

/** Series of the pixels in a window around a place, which may lie in four blocks.
 * @param {Layer} layer @param {Fields} fields @returns {Promise<Around>} */
async function pixels(layer, { x, y, r }) {
  const name = productOf(layer);
  const product = layer.products[name];
  const { pixel, shape } = layer.levels[layer.finest];
  const [i, j] = [y, x].map((v) => Math.floor(Number(v) / pixel));
  if (i < 0 || j < 0 || i >= shape[0] || j >= shape[1]) throw new Failed(404, "this place is outside the data");
  const { block } = layer;
  const n = itemsOf(layer);
  const radius = Math.min(Math.floor(Number(r) / pixel), block / 2);
  const rows = [];
  /** @type {Codes} */
  let middle = new Uint8Array();
  const [i0, i1, j0, j1] = [i - radius, i + radius, j - radius, j + radius];
  for (let bi = Math.floor(Math.max(i0, 0) / block); bi * block <= Math.min(i1, shape[0] - 1); bi += 1) {
    for (let bj = Math.floor(Math.max(j0, 0) / block); bj * block <= Math.min(j1, shape[1] - 1); bj += 1) {
      const codes = await loadTile(`z/${layer.id}/${name}/series/c/${bi}/${bj}/0`, product.dtype);
      for (let row = Math.max(i0, bi * block, 0); row <= Math.min(i1, bi * block + block - 1, shape[0] - 1); row += 1) {
        for (let col = Math.max(j0, bj * block, 0); col <= Math.min(j1, bj * block + block - 1, shape[1] - 1); col += 1) {
          const at = ((row - bi * block) * block + (col - bj * block)) * n;
          const found = codes.subarray(at, at + n);
          rows.push(found);
          if (row === i && col === j) middle = found;
        }
      }
    }
  }
  return { rows, middle, product, place: { x: Math.floor((j + 0.5) * pixel), y: Math.floor((i + 0.5) * pixel) } };
}

/** The nearest point, and those in the window around it.
 * @param {Layer} layer @param {Fields} fields @returns {Promise<Around>} */
async function points(layer, { x, y, r, reach }) {
  const name = productOf(layer);
  const product = layer.products[name];
  const [px, py, far] = [x, y, reach].map(Number);
  const around = Math.max(far, (Number(r) + 0.5) * layer.cell);
  /** @type {[number, number, number, number][]} */
  const boxes = await json(`z/${layer.id}/boxes.json`);
  const n = itemsOf(layer);
  /** @type {{x: number, y: number, away: number, point: number, codes: Codes}[]} */
  const near = [];
  for (const [block, [x0, x1, y0, y1]] of boxes.entries()) {
    if (x0 > px + around || x1 < px - around || y0 > py + around || y1 < py - around) continue;
    const [xs, ys, codes] = await Promise.all([
      loadTile(`z/${layer.id}/x/c/${block}`, "float64"),
      loadTile(`z/${layer.id}/y/c/${block}`, "float64"),
      loadTile(`z/${layer.id}/${name}/series/c/${block}/0`, product.dtype),
    ]);
    for (let k = 0; k < xs.length; k += 1) {
      const away = Math.hypot(xs[k] - px, ys[k] - py);
      if (!(Math.abs(xs[k] - px) <= around && Math.abs(ys[k] - py) <= around)) continue;
      const found = { x: xs[k], y: ys[k], away, point: block * layer.block + k, codes: codes.subarray(k * n, k * n + n) };
      near.push(found);
    }
  }
  const [best] = near.filter((p) => p.away <= far).sort((a, b) => a.away - b.away);
  if (!best) throw new Failed(404, "there is no point near this place");
  const half = (Number(r) + 0.5) * layer.cell;
  const inside = Number(r) ? near.filter((p) => Math.abs(p.x - best.x) <= half && Math.abs(p.y - best.y) <= half) : [best];
  return { rows: inside.map((p) => p.codes), middle: best.codes, product, place: { x: best.x, y: best.y, point: best.point } };
}

/** @param {Layer} layer */
function itemsOf(layer) {
  return layer.items.length;
}

/** @param {Product} product @param {number} code */
const decoded = (product, code) => (code === product.nothing ? null : product.offset + product.step * code);

/** @param {Codes} codes @param {Product} product */
function valuesOf(codes, product) {
  const values = Array.from(codes, (code) => decoded(product, code));
  if (product.quantity !== "phase") return { values };
  return { phase: values, amplitude: values.map((v) => (v === null ? null : 1)) };
}

/** As the server finds them, but from codes: phases count alike, whatever their amplitudes are.
 * @param {Layer} layer @param {Around} around @param {number} image @returns {Values} */
function constants(layer, { rows, product }, image) {
  const n = itemsOf(layer);
  return Array.from({ length: n }, (_, k) => {
    if (product.quantity !== "phase") {
      const known = rows.map((row) => decoded(product, row[k])).filter((v) => v !== null).sort((a, b) => a - b);
      const half = known.length >> 1;
      return known.length ? (known.length % 2 ? known[half] : (known[half - 1] + known[half]) / 2) : null;
    }
    let [re, im] = [0, 0];
    for (const row of rows) {
      const one = layer.axis === "images" ? decoded(product, row[image]) : 0;
      const two = decoded(product, row[k]);
      if (one === null || two === null) continue;
      const phase = layer.axis === "images" ? one - two : two;
      re += Math.cos(phase);
      im += Math.sin(phase);
    }
    return re || im ? Math.atan2(im, re) : null;
  });
}

/** @param {Layer} layer @param {Fields} fields */
async function profile(layer, { product: name, item, level, line }) {
  const product = layer.products[name];
  const { pixel, shape, origin } = layer.levels[Number(level)];
  const [x0, y0, x1, y1] = String(line).split(",").map(Number);
  const length = Math.hypot(x1 - x0, y1 - y0);
  const n = Math.min(Math.max(Math.floor(length / pixel) + 1, 2), 2000);
  /** @type {Sampled} */
  const found = { distance: [], values: [] };
  for (let k = 0; k < n; k += 1) {
    const share = k / (n - 1);
    found.distance.push(share * length);
    const row = Math.floor((y0 + share * (y1 - y0)) / pixel) - origin[0] * TILE;
    const col = Math.floor((x0 + share * (x1 - x0)) / pixel) - origin[1] * TILE;
    if (row < 0 || col < 0 || row >= shape[0] || col >= shape[1]) {
      found.values.push(null);
      continue;
    }
    const place = `${Math.floor(row / TILE)}/${Math.floor(col / TILE)}`;
    const codes = await loadTile(`z/${layer.id}/${name}/${level}/c/${place}/${item}`, product.dtype);
    found.values.push(decoded(product, codes[(row % TILE) * TILE + (col % TILE)]));
  }
  return found;
}
