// What a pane shows: which tiles it needs, how two of them become one, what its values mean.

import { number } from "./format.js";

/** Ways to look at a layer: [name, label, needs]; needs is "pair", "item" or "none". */
export function shows(layer, isStatic) {
  const several = layer.items.length > 1;
  const one = several ? "item" : "none";
  const names = layer.products;
  if (names.value) {
    const found = [["value", "values", one]];
    if (layer.axis === "images" && several) found.push(["diff", "difference of two images", "pair"]);
    return found;
  }
  if (layer.axis === "pairs") {
    return [
      ["coh", "coherence: phase", "pair"],
      ["coh_abs", "coherence: magnitude", "pair"],
    ].filter(([name]) => names[name]);
  }
  const found = [];
  if (names.intf || (isStatic && layer.axis === "images" && several)) found.push(["intf", "interferogram", "pair"]);
  if (names.phase) found.push(["phase", "phase of an image", one]);
  if (names.amp) found.push(["amp", "amplitude", one]);
  return found;
}

export function needs(layer, show, isStatic) {
  return shows(layer, isStatic).find(([name]) => name === show)?.[2] ?? "none";
}

/** The looks that a layer offers. */
export function looksOf(layer) {
  return Object.values(layer.products)
    .filter((product) => product.quantity === "phase" && product.pairs)
    .map((product) => product.looks);
}

/**
 * What must be fetched for a pane: tiles of one or two items, and what their codes mean.
 * @param layer of meta.json @param pane of the state @param {boolean} isStatic
 */
export function picture(layer, pane, isStatic) {
  const n = layer.images.length;
  const product = (name) => ({ name, ...layer.products[name] });
  if (pane.show === "diff") {
    const value = product("value");
    const { step } = value;
    // codes of differences: 65534 is zero
    const coding = { offset: -65534 * step, step, nothing: 131069, dtype: "uint16" };
    return { product: value, items: [pane.a, pane.b], coding, combine: subtractValues, quantity: "difference" };
  }
  if (pane.show === "intf" && !layer.products.intf) {
    const phase = product("phase");
    return { product: phase, items: [pane.a, pane.b], coding: phase, combine: subtractPhases, quantity: "phase" };
  }
  if (isStatic && layer.products[pane.show]?.pairs) return storedPair(layer, pane, product(pane.show));
  const name = pane.show === "intf" && pane.looks > 1 ? `intf${pane.looks}` : pane.show;
  const found = product(layer.products[name] ? name : Object.keys(layer.products)[0]);
  const item = found.pairs ? pane.a * n + pane.b : pane.k;
  return { product: found, items: [item], coding: found, combine: null, quantity: found.quantity };
}

/** Of a pair of images an export has one order only; an image with itself is not in it. */
function storedPair(layer, pane, found) {
  const [low, high] = [Math.min(pane.a, pane.b), Math.max(pane.a, pane.b)];
  const item = low * layer.images.length + high;
  const isThere = layer.pairs.some(([i, j]) => i === low && j === high);
  const isTurned = found.quantity === "phase" && pane.a > pane.b;
  const combine = isThere ? (isTurned ? (codes) => codes.map((c) => (c === 255 ? c : 254 - c)) : null) : (codes) => codes.map(() => 255);
  return { product: found, items: [isThere ? item : layer.pairs[0][0] * layer.images.length + layer.pairs[0][1]], coding: found, combine, quantity: found.quantity };
}

/** Phase codes of a minus b: 127 is zero. Both have an error of half a code at most, so this has one of a code. */
export function subtractPhases(a, b) {
  const out = new Uint8Array(a.length);
  for (let k = 0; k < a.length; k += 1) out[k] = a[k] === 255 || b[k] === 255 ? 255 : (a[k] - b[k] + 382) % 255;
  return out;
}

export function subtractValues(a, b) {
  const out = new Uint32Array(a.length);
  for (let k = 0; k < a.length; k += 1) {
    out[k] = a[k] === 65535 || b[k] === 65535 ? 131069 : a[k] - b[k] + 65534;
  }
  return out;
}

/** Factor and unit in which values are told: small lengths in millimeters. */
export function told(layer, quantity) {
  if (quantity === "phase") return { factor: 1, unit: "rad" };
  if (quantity === "decibel") return { factor: 1, unit: "dB" };
  if (quantity === "share") return { factor: 1, unit: "" };
  const { p01, p99 } = layer.stats;
  const isSmall = layer.unit === "m" && Math.max(Math.abs(p01 ?? 1), Math.abs(p99 ?? 1)) < 0.1;
  return isSmall ? { factor: 1000, unit: "mm" } : { factor: 1, unit: layer.unit };
}

/** What a value means: quantity, unit, sign. */
export function meaning(layer, pane, quantity) {
  const { unit } = told(layer, quantity);
  if (quantity === "phase") {
    if (pane.show !== "intf") return { text: pane.show === "coh" ? "coherence phase (rad)" : "phase (rad)", sign: "" };
    const half = layer.wavelength ? `, a fringe is ${number(layer.wavelength * 500, 3)} mm` : "";
    const sign = pane.a <= pane.b ? "more: away from the satellite" : "later image first: more is toward the satellite";
    return { text: "interferometric phase (rad)", sign: `${sign}${half}` };
  }
  if (quantity === "decibel") return { text: "amplitude (dB)", sign: "" };
  if (quantity === "share") return { text: "coherence magnitude (unitless)", sign: "" };
  const what = quantity === "difference" ? `difference of ${layer.name}, first minus second` : layer.name;
  return { text: `${what} (${unit || "unit not given"})`, sign: signOf(layer) };
}

function signOf(layer) {
  if (layer.sign) return layer.sign;
  const { min, max } = layer.stats;
  return min < 0 && max > 0 ? "sign as in the data" : "";
}

/** Limits, table and cycle of a pane. `constants` is what the reference subtracts, one per item, or null. */
export function coloring(layer, pane, pic, constants, zero) {
  const base = { reversed: pane.rev, zero, cycle: 0, low: 0, high: 1 };
  const automatic = (name) => (pane.cm === "auto" ? name : pane.cm);
  if (pic.quantity === "phase") return { ...base, table: automatic("cyclic"), cycle: 2 * Math.PI, low: -Math.PI, high: Math.PI };
  const [low, high] = limits(layer, pane, pic, constants);
  if (pane.wrap > 0) return { ...base, table: automatic("cyclic"), cycle: pane.wrap, low: -pane.wrap / 2, high: pane.wrap / 2 };
  const plain = pic.quantity === "decibel" ? "gray" : low < 0 && high > 0 ? "diverging" : "sequential";
  return { ...base, table: automatic(plain), low, high };
}

export function limits(layer, pane, pic, constants) {
  if (Array.isArray(pane.lim)) return pane.lim;
  const [low, high] = pane.lim === "full" ? fullRange(layer, pic) : usualRange(layer, pane, pic);
  if (pic.quantity === "share" || pic.quantity === "decibel") return [low, high];
  if (pic.quantity === "difference") {
    const most = (high - low) / (pane.lim === "full" ? 1 : 2) || 1;
    return [-most, most];
  }
  const middle = constants ? middleOf(pane.lock ? constants : [constants[pane.k]]) : 0;
  return signed(low - middle, high - middle);
}

/** Signed values get limits around zero. */
function signed(low, high) {
  if (!(low < 0 && high > 0)) return low < high ? [low, high] : [low - 0.5, high + 0.5];
  const most = Math.max(-low, high);
  return [-most, most];
}

function middleOf(values) {
  const known = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
  return known.length ? known[known.length >> 1] : 0;
}

function fullRange(layer, pic) {
  if (pic.quantity === "share") return [0, 1];
  if (pic.quantity === "decibel") return codingRange(pic.coding);
  const { min, max } = layer.stats;
  return min === undefined || min === null ? [0, 1] : [min, max];
}

function codingRange(coding) {
  return [coding.offset - coding.step / 2, coding.offset + coding.step * (coding.nothing - 0.5)];
}

function usualRange(layer, pane, pic) {
  if (pic.quantity === "share") return [0, 1];
  if (pic.quantity === "decibel") return codingRange(pic.coding);
  if (layer.dtype === "bool") return [0, 1];
  const own = layer.item_percentiles[pane.k];
  if (!pane.lock && pic.quantity === "value" && own && own[0] < own[1]) return own;
  const { p01, p99 } = layer.stats;
  return p01 === undefined || p01 === null ? [0, 1] : [p01, p99];
}

/** Whether the images of a stack compare: not if most of them have less than a quarter of the colors of all. */
export function sharesLimits(layer) {
  const { p01, p99 } = layer.stats;
  if (p01 === undefined || p01 === null) return true;
  const known = layer.item_percentiles.filter((own) => own && own[0] < own[1]);
  const dull = known.filter((own) => Math.min(own[1], p99) - Math.max(own[0], p01) < (p99 - p01) / 4);
  return 2 * dull.length <= known.length;
}
