// From codes to colors: one table of all codes, made again when limits, table or reference change.

/** @import { Codes, Coding } from "./data.js" */

/** Colors of moraine by name, 255 entries each, as read from tables.json. @type {Record<string, number[]>} */
const tables = {};

export async function loadTables() {
  /** @type {Record<string, string>} */
  const found = await (await fetch("s/tables.json")).json();
  for (const [name, hex] of Object.entries(found)) {
    tables[name] = Array.from({ length: 255 }, (_, k) => parseInt(hex.slice(6 * k, 6 * k + 6), 16));
  }
}

export const TABLES = [
  ["cyclic", "cyclic (romaO)"],
  ["diverging", "diverging (vik)"],
  ["sequential", "sequential (viridis)"],
  ["gray", "gray"],
];

/** @typedef {{table: string, reversed: boolean, low: number, high: number, cycle: number, zero: number}} Coloring
 * `cycle` > 0: values repeat after it, 0 in the middle of the table; `zero` is subtracted before. */

/** Position of a value in the table, 0 ... 254. @param {number} value @param {Coloring} coloring */
export function position(value, coloring) {
  const v = value - coloring.zero;
  const share = coloring.cycle > 0 ? v / coloring.cycle + 0.5 : (v - coloring.low) / (coloring.high - coloring.low);
  const k = Math.floor(255 * (coloring.cycle > 0 ? share - Math.floor(share) : share));
  const cut = k < 0 ? 0 : k > 254 ? 254 : k;
  return coloring.reversed ? 254 - cut : cut;
}

/** Color k of a table as red, green, blue. @param {string} name @param {number} k */
export function rgb(name, k) {
  const color = tables[name][k];
  return [color >> 16, (color >> 8) & 255, color & 255];
}

const isLittle = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** Pixels, as ImageData holds them, of all codes of a coding; what is missing is transparent.
 * @param {Coding} coding @param {Coloring} coloring */
export function lookup(coding, coloring) {
  const table = tables[coloring.table].map((c) =>
    isLittle
      ? ((255 << 24) | ((c & 255) << 16) | (c & 0xff00) | (c >> 16)) >>> 0
      : ((c << 8) | 255) >>> 0,
  );
  const found = new Uint32Array(coding.nothing + 1);
  for (let code = 0; code < coding.nothing; code += 1) {
    found[code] = table[position(coding.offset + coding.step * code, coloring)];
  }
  return found;
}

/** Draw codes, rows of 256, on a canvas that may be smaller.
 * @param {HTMLCanvasElement} canvas @param {Codes} codes @param {Uint32Array} pixels */
export function paint(canvas, codes, pixels) {
  const { width, height } = canvas;
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  for (let i = 0; i < height; i += 1) {
    for (let j = 0, from = 256 * i, to = width * i; j < width; j += 1) out[to + j] = pixels[codes[from + j]];
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
}
