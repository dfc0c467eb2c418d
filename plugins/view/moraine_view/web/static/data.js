// What is fetched: the description of the layers, tiles, and answers to questions. Nothing leaves this server.

const MOST_BYTES = 64 * 2 ** 20;

export class Failed extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function get(url, signal) {
  let response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed(0, "the server does not answer");
  }
  if (!response.ok) throw new Failed(response.status, (await response.text()).trim().slice(0, 300));
  return response;
}

export async function loadMeta() {
  return (await get("meta.json")).json();
}

/** @param {string} what name of the question @param {Record<string, string|number>} fields */
export async function ask(what, fields, signal) {
  const query = new URLSearchParams(Object.entries(fields).map(([k, v]) => [k, String(v)]));
  const found = await (await get(`${what}?${query}`, signal)).json();
  if (found.nothing) throw new Failed(404, found.nothing);
  return found;
}

/** Codes of tiles, those used last, 64 MiB of them; a tile that several want is fetched once. */
const kept = new Map();
const pending = new Map();
let bytes = 0;

function unpacked(buffer, dtype) {
  if (dtype === "float64") return new Float64Array(buffer);
  return dtype === "uint16" ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

/** @returns codes if they are here already, or undefined */
export function cachedTile(url) {
  const found = kept.get(url);
  if (found) {
    kept.delete(url);
    kept.set(url, found);
  }
  return found;
}

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

/** Say that a tile is not wanted any more; its request ends if nobody else wants it. */
export function dropTile(url) {
  const waiting = pending.get(url);
  if (!waiting || (waiting.users -= 1) > 0) return;
  pending.delete(url);
  waiting.control.abort();
}

async function fetchTile(url, dtype, signal) {
  const response = await get(url, signal);
  const stream = response.body.pipeThrough(new DecompressionStream("gzip"));
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
