// What is fetched: the description of the layers, tiles, and answers to questions. Nothing leaves this server.

const MOST_BYTES = 64 * 2 ** 20;

/** How codes become values: `offset + step * code`, and `nothing` is missing.
 * @typedef {{dtype: string, offset: number, step: number, nothing: number}} Coding
 * @typedef {"phase"|"share"|"decibel"|"value"|"difference"} Quantity
 * @typedef {Coding & {quantity: Quantity, pairs: boolean, looks: number}} Product
 * @typedef {{min?: number|null, max?: number|null, p01?: number|null, p99?: number|null}} Stats
 * @typedef {{shape: [number, number], origin: [number, number], pixel: number}} Level
 * @typedef {{azimuth: number, range: number, is_ground: boolean}} Spacing
 */

/** A layer of meta.json; one with an error has only name, stamp and grid, and only an export has finest and block.
 * @typedef {{id: number, name: string, stamp: string, grid: string, error?: string, kind: "raster"|"points",
 *   shape: number[], dtype: string, unit: string, sign: string, axis: "none"|"images"|"pairs"|"other",
 *   items: string[], images: string[], dates: string[], pairs: [number, number][], wavelength: number|null, cell: number,
 *   is_map: boolean, spacing: Spacing|null, no_spacing: string, ground: boolean,
 *   extent: [number, number, number, number], levels: Level[], products: Record<string, Product>, stats: Stats,
 *   item_percentiles: ([number, number]|null)[], finest: number, block: number}} Layer
 * @typedef {{static: boolean, show: string|null, basemap: {zoom: [number, number], credit: string}|null,
 *   layers: Layer[]}} Meta
 */

/** Values that may be missing. @typedef {(number|null)[]} Values */

/** Answers to questions.
 * @typedef {{x: number, y: number, values?: Values, phase?: Values, amplitude?: Values, ref: Values, error?: string}} Series
 * @typedef {{distance: number[], values: Values, low?: Values, high?: Values}} Sampled
 */

/** Codes of a tile, rows of 256; or coordinates of points.
 * @typedef {Uint8Array|Uint16Array|Uint32Array|Float64Array} Codes */

export class Failed extends Error {
  /** @param {number} status of HTTP, 0 without an answer @param {string} reason */
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/** The message of an error. @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string} url @param {AbortSignal} [signal] */
async function get(url, signal) {
  let response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Failed(0, "the server does not answer");
  }
  if (!response.ok) throw new Failed(response.status, (await response.text()).trim().slice(0, 300));
  return response;
}

/** Whether a request was ended by the page. @param {unknown} error */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";

/** @returns {Promise<Meta>} */
export async function loadMeta() {
  return (await get("meta.json")).json();
}

/** @param {string} what name of the question @param {Record<string, string|number>} fields */
export async function ask(what, fields) {
  const query = new URLSearchParams(Object.entries(fields).map(([k, v]) => [k, String(v)]));
  const found = await (await get(`${what}?${query}`)).json();
  if (found.nothing) throw new Failed(404, found.nothing);
  return found;
}

/** Codes of tiles, those used last, 64 MiB of them; a tile that several want is fetched once.
 * @type {Map<string, Codes>} */
const kept = new Map();
/** @type {Map<string, {control: AbortController, users: number, promise: Promise<Codes>}>} */
const pending = new Map();
let bytes = 0;

/** @param {ArrayBuffer} buffer @param {string} dtype @returns {Codes} */
function unpacked(buffer, dtype) {
  if (dtype === "float64") return new Float64Array(buffer);
  return dtype === "uint16" ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

/** Codes if they are here already. @param {string} url */
export function cachedTile(url) {
  const found = kept.get(url);
  if (found) {
    kept.delete(url);
    kept.set(url, found);
  }
  return found;
}

/** @param {string} url @param {string} dtype @returns {Promise<Codes>} */
export function loadTile(url, dtype) {
  const here = cachedTile(url);
  if (here) return Promise.resolve(here);
  let waiting = pending.get(url);
  if (!waiting) {
    const control = new AbortController();
    waiting = { control, users: 0, promise: fetchTile(url, dtype, control.signal) };
    const own = waiting;
    waiting.promise.catch(() => {}).finally(() => pending.get(url) === own && pending.delete(url));
    pending.set(url, waiting);
  }
  waiting.users += 1;
  return waiting.promise;
}

/** Say that a tile is not wanted any more; its request ends if nobody else wants it. @param {string} url */
export function dropTile(url) {
  const waiting = pending.get(url);
  if (!waiting || (waiting.users -= 1) > 0) return;
  pending.delete(url);
  waiting.control.abort();
}

/** @param {string} url @param {string} dtype @param {AbortSignal} signal */
async function fetchTile(url, dtype, signal) {
  const { body } = await get(url, signal);
  if (!body) throw new Failed(0, "the answer is empty");
  const stream = body.pipeThrough(new DecompressionStream("gzip"));
  const codes = unpacked(await new Response(stream).arrayBuffer(), dtype);
  kept.set(url, codes);
  bytes += codes.byteLength;
  for (const [old, value] of kept) {
    if (bytes <= MOST_BYTES) break;
    kept.delete(old);
    bytes -= value.byteLength;
  }
  return codes;
}
