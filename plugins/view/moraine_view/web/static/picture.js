// What a pane shows: which tiles it needs, how two of them become one, what its values mean.

/** @import { Codes, Coding, Layer, Product, Quantity, Values } from "./data.js" */
/** @import { Coloring } from "./color.js" */
/** @import { PaneState, Show } from "./state.js" */

import { number } from "./format.js";

/** @typedef {"pair"|"item"|"none"} Need which images are chosen */

/** What a pane shows: tiles of one or two items of a product, what one makes of their codes, and what these mean.
 * @typedef {{product: Product & {name: string}, items: number[], coding: Coding,
 *   combine: ((...codes: Codes[]) => Codes)|null, quantity: Quantity}} Picture */

/** Ways to look at a layer: name, label, and what they need.
 * @param {Layer} layer @param {boolean} isStatic @returns {[Show, string, Need][]} */
export function shows(layer, isStatic) {
  const several = layer.items.length > 1;
  /** @type {Need} */
  const one = several ? "item" : "none";
  const names = layer.products;
  if (names.value) {
    /** @type {[Show, string, Need][]} */
    const found = [["value", "values", one]];
    if (layer.axis === "images" && several) found.push(["diff", "difference of two images", "pair"]);
    return found;
  }
  if (layer.axis === "pairs") {
    /** @type {[Show, string, Need][]} */
    const found = [
      ["coh", "phase of a pair", "pair"],
      ["coh_abs", "magnitude of a pair", "pair"],
    ];
    return found.filter(([name]) => names[name]);
  }
  /** @type {[Show, string, Need][]} */
  const found = [];
  if (names.intf || (isStatic && layer.axis === "images" && several)) found.push(["intf", "interferogram", "pair"]);
  if (names.phase) found.push(["phase", "phase of an image", one]);
  if (names.amp) found.push(["amp", "amplitude", one]);
  return found;
}

/** @param {Layer} layer @param {Show} show @param {boolean} isStatic */
export function needs(layer, show, isStatic) {
  return shows(layer, isStatic).find(([name]) => name === show)?.[2] ?? "none";
}

/** The looks that a layer offers. @param {Layer} layer */
export function looksOf(layer) {
  return Object.values(layer.products)
    .filter((product) => product.quantity === "phase" && product.pairs)
    .map((product) => product.looks);
}

/**
 * What must be fetched for a pane: tiles of one or two items, and what their codes mean.
 * @param {Layer} layer @param {PaneState} pane @param {boolean} isStatic @returns {Picture}
 */
export function picture(layer, pane, isStatic) {
  const n = layer.images.length;
  /** @param {string} name */
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

/** Of a pair of images an export has one order only; an image with itself is not in it.
 * @param {Layer} layer @param {PaneState} pane @param {Product & {name: string}} found @returns {Picture} */
function storedPair(layer, pane, found) {
  const [low, high] = [Math.min(pane.a, pane.b), Math.max(pane.a, pane.b)];
  const item = low * layer.images.length + high;
  const isThere = layer.pairs.some(([i, j]) => i === low && j === high);
  const isTurned = found.quantity === "phase" && pane.a > pane.b;
  /** @param {Codes} codes */
  const turned = (codes) => codes.map((c) => (c === 255 ? c : 254 - c));
  /** @param {Codes} codes */
  const missing = (codes) => codes.map(() => 255);
  const [[i, j]] = layer.pairs;
  return {
    product: found,
    items: [isThere ? item : i * layer.images.length + j],
    coding: found,
    combine: isThere ? (isTurned ? turned : null) : missing,
    quantity: found.quantity,
  };
}

/** Phase codes of a minus b: 127 is zero. Both have an error of half a code at most, so this has one of a code.
 * @param {Codes} a @param {Codes} b */
export function subtractPhases(a, b) {
  const out = new Uint8Array(a.length);
  for (let k = 0; k < a.length; k += 1) out[k] = a[k] === 255 || b[k] === 255 ? 255 : (a[k] - b[k] + 382) % 255;
  return out;
}

/** @param {Codes} a @param {Codes} b */
export function subtractValues(a, b) {
  const out = new Uint32Array(a.length);
  for (let k = 0; k < a.length; k += 1) {
    out[k] = a[k] === 65535 || b[k] === 65535 ? 131069 : a[k] - b[k] + 65534;
  }
  return out;
}

/** Factor and unit in which values are told: small lengths in millimeters.
 * @param {Layer} layer @param {Quantity} quantity */
export function told(layer, quantity) {
  if (quantity === "phase") return { factor: 1, unit: "rad" };
  if (quantity === "decibel") return { factor: 1, unit: "dB" };
  if (quantity === "share") return { factor: 1, unit: "" };
  const { p01, p99 } = layer.stats;
  const isSmall = layer.unit === "m" && Math.max(Math.abs(p01 ?? 1), Math.abs(p99 ?? 1)) < 0.1;
  return isSmall ? { factor: 1000, unit: "mm" } : { factor: 1, unit: layer.unit };
}

/** A phase within half a cycle of zero. @param {number} v */
export const wrapped = (v) => v - 2 * Math.PI * Math.round(v / (2 * Math.PI));

/** What a value means: quantity, unit, sign. @param {Layer} layer @param {PaneState} pane @param {Quantity} quantity */
export function meaning(layer, pane, quantity) {
  const { unit } = told(layer, quantity);
  if (quantity === "phase") {
    if (pane.show !== "intf" && pane.show !== "coh") return { text: "phase (rad)", sign: layer.sign };
    const half = layer.wavelength ? `, a fringe is ${number(layer.wavelength * 500, 3)} mm` : "";
    const [first, second] = [pane.a, pane.b].map((k) => layer.dates[k] ?? k); // a stack may begin with its reference
    const sign = first <= second ? "more: away from the satellite" : "later image first: more is toward the satellite";
    return { text: "interferometric phase (rad)", sign: `${sign}${half}` };
  }
  if (quantity === "decibel") return { text: "amplitude (dB)", sign: "" };
  if (quantity === "share") return { text: "coherence magnitude (unitless)", sign: "" };
  const what = quantity === "difference" ? `difference of ${layer.name}, first minus second` : layer.name;
  return { text: `${what} (${unit || "unit not given"})`, sign: signOf(layer) };
}

/** @param {Layer} layer */
function signOf(layer) {
  if (layer.sign) return layer.sign;
  const { min, max } = layer.stats;
  return (min ?? 0) < 0 && (max ?? 0) > 0 ? "sign as in the data" : "";
}

/** Limits, table and cycle of a pane. `constants` is what the reference subtracts, one per item, or null.
 * @param {Layer} layer @param {PaneState} pane @param {Picture} pic @param {Values|null} constants @param {number} zero
 * @returns {Coloring} */
export function coloring(layer, pane, pic, constants, zero) {
  const base = { reversed: pane.rev, zero, cycle: 0, low: 0, high: 1 };
  /** @param {string} name */
  const automatic = (name) => (pane.cm === "auto" ? name : pane.cm);
  if (pic.quantity === "phase") return { ...base, table: automatic("cyclic"), cycle: 2 * Math.PI, low: -Math.PI, high: Math.PI };
  const [low, high] = limits(layer, pane, pic, constants);
  if (pane.wrap > 0) return { ...base, table: automatic("cyclic"), cycle: pane.wrap, low: -pane.wrap / 2, high: pane.wrap / 2 };
  const plain = pic.quantity === "decibel" ? "gray" : low < 0 && high > 0 ? "diverging" : "sequential";
  return { ...base, table: automatic(plain), low, high };
}

/** @param {Layer} layer @param {PaneState} pane @param {Picture} pic @param {Values|null} constants
 * @returns {[number, number]} */
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

/** Signed values get limits around zero. @param {number} low @param {number} high @returns {[number, number]} */
function signed(low, high) {
  if (!(low < 0 && high > 0)) return low < high ? [low, high] : [low - 0.5, high + 0.5];
  const most = Math.max(-low, high);
  return [-most, most];
}

/** @param {(number|null|undefined)[]} values */
function middleOf(values) {
  const known = values.filter((v) => typeof v === "number").sort((a, b) => a - b);
  return known.length ? known[known.length >> 1] : 0;
}

/** @param {Layer} layer @param {Picture} pic @returns {[number, number]} */
function fullRange(layer, pic) {
  if (pic.quantity === "share") return [0, 1];
  if (pic.quantity === "decibel") return codingRange(pic.coding);
  const { min, max } = layer.stats;
  return typeof min === "number" && typeof max === "number" ? [min, max] : [0, 1];
}

/** @param {Coding} coding @returns {[number, number]} */
function codingRange(coding) {
  return [coding.offset - coding.step / 2, coding.offset + coding.step * (coding.nothing - 0.5)];
}

/** @param {Layer} layer @param {PaneState} pane @param {Picture} pic @returns {[number, number]} */
function usualRange(layer, pane, pic) {
  if (pic.quantity === "share") return [0, 1];
  if (pic.quantity === "decibel") return codingRange(pic.coding);
  if (layer.dtype === "bool") return [0, 1];
  const own = layer.item_percentiles[pane.k];
  if (!pane.lock && pic.quantity === "value" && own && own[0] < own[1]) return own;
  const { p01, p99 } = layer.stats;
  return typeof p01 === "number" && typeof p99 === "number" ? [p01, p99] : [0, 1];
}

/** Whether the images of a stack compare: not if most of them have less than a quarter of the colors of all.
 * @param {Layer} layer */
export function sharesLimits(layer) {
  const { p01, p99 } = layer.stats;
  if (typeof p01 !== "number" || typeof p99 !== "number") return true;
  const known = layer.item_percentiles.flatMap((own) => (own && own[0] < own[1] ? [own] : []));
  const dull = known.filter((own) => Math.min(own[1], p99) - Math.max(own[0], p01) < (p99 - p01) / 4);
  return 2 * dull.length <= known.length;
}
