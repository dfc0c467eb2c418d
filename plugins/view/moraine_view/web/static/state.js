// All that can be chosen, kept in the fragment of the address and nowhere else: by name, never by number or path.

/** @import { Layer, Meta } from "./data.js" */

import { fromLink, toLink } from "./format.js";
import { needs, sharesLimits, shows } from "./picture.js";

/**
 * @typedef {"intf"|"coh"|"coh_abs"|"diff"|"phase"|"amp"|"value"} Show
 * @typedef {[number, number]} Place x to the right, y down
 * @typedef {[number, number, number]} View place and zoom
 * @typedef {[number, number, number]} Ref place and half window
 * @typedef {[number, number, number, number]} Line
 * @typedef {{layer: string, show: Show, a: number, b: number, k: number, looks: number,
 *   lim: "auto"|"full"|[number, number], lock: boolean, cm: string, rev: boolean, wrap: number}} PaneState
 * @typedef {{view: View|null, ref: Ref|null, picks: Place[], line: Line|null, aspect: number|"true"}} Plane
 */

export const MOST_PICKS = 6;

/** What `--show` of the command means here. @type {Record<string, Show[]>} */
const WANTED = {
  phase: ["phase"],
  intf_0: ["intf", "diff"],
  intf_seq: ["intf", "diff"],
  intf_all: ["intf", "diff"],
  coh: ["coh"],
  coh_abs: ["coh_abs"],
};

/** @type {Plane} */
const CLEAN = { view: null, ref: null, picks: [], line: null, aspect: 1 };

export class State {
  /** @param {Meta} meta */
  constructor(meta) {
    this.meta = meta;
    /** @type {PaneState[]} */
    this.panes = [];
    /** @type {Record<string, Plane>} by grid: panes of one grid share view, reference, picks and line */
    this.planes = {};
    this.width = 1;
    /** @type {number|null} percent of the width that the first of two pictures has, if one lies over the other */
    this.swipe = null;
    this.read("");
  }

  /** The layer of a name, if there is one that can be shown. @param {string|null|undefined} name */
  find(name) {
    return this.meta.layers.find((layer) => layer.name === name && !layer.error);
  }

  /** The layer of a pane, which is always one that can be shown. @param {PaneState} pane */
  layerOf(pane) {
    return /** @type {Layer} */ (this.find(pane.layer));
  }

  /** What is shown when nothing is asked for: images that make pairs, else a stack, else what comes first. */
  first() {
    const layers = this.meta.layers.filter((layer) => !layer.error);
    /** @param {Layer} layer */
    const isOfImages = (layer) => layer.axis === "images" && layer.products.phase && layer.kind === "raster";
    return layers.find(isOfImages) ?? layers.find((layer) => layer.items.length > 1) ?? layers[0];
  }

  /** @param {Layer} layer */
  plane(layer) {
    this.planes[layer.grid] ??= { ...CLEAN, picks: [] };
    return this.planes[layer.grid];
  }

  /** A pane that shows a layer the way that suits it. @param {Layer} layer @returns {PaneState} */
  fresh(layer) {
    const n = layer.images.length;
    const offered = shows(layer, this.meta.static).map(([name]) => name);
    const wanted = WANTED[this.meta.show ?? ""] ?? [];
    return {
      layer: layer.name,
      show: wanted.find((name) => offered.includes(name)) ?? offered[0],
      a: 0,
      b: Math.min(1, Math.max(n - 1, 0)),
      k: 0,
      looks: 1,
      lim: "auto",
      lock: sharesLimits(layer),
      cm: "auto",
      rev: false,
      wrap: 0,
    };
  }

  /** Take over what a fragment says; what it does not say, or says wrongly, is as it comes. @param {string} fragment */
  read(fragment) {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const count = [1, 2, 4].includes(Number(given.get("panes"))) ? Number(given.get("panes")) : 1;
    this.planes = {};
    this.panes = [];
    this.width = clamp(whole(given.get("width"), 1), 1, 64);
    this.swipe = count === 2 && given.has("swipe") ? clamp(whole(given.get("swipe"), 50), 0, 100) : null;
    for (let i = 0; i < count; i += 1) {
      /** @param {string} name */
      const field = (name) => given.get(i ? `${i + 1}.${name}` : name);
      const layer = this.find(field("l")) ?? this.find(this.panes[0]?.layer) ?? this.first();
      if (!layer) return;
      this.panes.push(this.readPane(layer, field));
      if (!(layer.grid in this.planes)) this.readPlane(layer, field);
    }
  }

  /** @param {Layer} layer @param {(name: string) => string|null} field */
  readPane(layer, field) {
    const pane = this.fresh(layer);
    const offered = shows(layer, this.meta.static).map(([name]) => name);
    pane.show = offered.find((name) => name === field("show")) ?? pane.show;
    pane.a = indexOf(layer, field("a"), pane.a);
    pane.b = indexOf(layer, field("b"), pane.b);
    pane.k = itemOf(layer, field("k"), pane.k);
    pane.looks = [1, 2, 4, 8].includes(Number(field("looks"))) ? Number(field("looks")) : 1;
    const lim = field("lim");
    const pair = numbers(lim, 2);
    pane.lim = lim === "full" ? "full" : pair && pair[0] < pair[1] ? [pair[0], pair[1]] : "auto";
    if (field("lock") !== null) pane.lock = field("lock") === "1";
    pane.cm = ["cyclic", "diverging", "sequential", "gray"].find((name) => name === field("cm")) ?? pane.cm;
    pane.rev = field("rev") === "1";
    const wrap = Number(field("wrap"));
    pane.wrap = wrap > 0 && Number.isFinite(wrap) ? wrap : 0;
    return pane;
  }

  /** @param {Layer} layer @param {(name: string) => string|null} field */
  readPlane(layer, field) {
    const plane = this.plane(layer);
    /** @param {number} first @param {number} second */
    const place = (first, second) => fromLink(layer.is_map, first, second);
    const view = numbers(field("v"), 3);
    if (view) plane.view = [...place(view[0], view[1]), view[2]];
    const ref = numbers(field("ref"), 3);
    if (ref) plane.ref = [...place(ref[0], ref[1]), clamp(Math.round(ref[2]), 0, 32)];
    const picks = (field("p") ?? "").split(";").map((text) => numbers(text, 2));
    plane.picks = picks.filter((pick) => pick !== null).slice(0, MOST_PICKS).map(([first, second]) => place(first, second));
    const aspect = Number(field("asp"));
    if (field("asp") === "true" && layer.spacing) plane.aspect = "true";
    else if (!layer.is_map && aspect >= 0.1 && aspect <= 20) plane.aspect = aspect;
    const line = numbers(field("line"), 4);
    if (line) plane.line = [...place(line[0], line[1]), ...place(line[2], line[3])];
  }

  /** The fragment of this state. */
  write() {
    /** @type {[string, string|number][]} */
    const said = [];
    if (this.panes.length > 1) said.push(["panes", this.panes.length]);
    if (this.panes.length === 2 && this.swipe !== null) said.push(["swipe", this.swipe]);
    const seen = new Set();
    this.panes.forEach((pane, i) => {
      const layer = this.layerOf(pane);
      /** @param {string} name @param {string|number} value */
      const say = (name, value) => said.push([i ? `${i + 1}.${name}` : name, value]);
      this.writePane(layer, pane, say);
      if (seen.has(layer.grid)) return;
      seen.add(layer.grid);
      this.writePlane(layer, say);
    });
    if (this.width > 1) said.push(["width", this.width]);
    return `#${said.map(([name, value]) => `${name}=${encode(value)}`).join("&")}`;
  }

  /** @param {Layer} layer @param {PaneState} pane @param {(name: string, value: string|number) => void} say */
  writePane(layer, pane, say) {
    const usual = this.fresh(layer);
    say("l", pane.layer);
    say("show", pane.show);
    const need = needs(layer, pane.show, this.meta.static);
    if (need === "pair") {
      say("a", nameOf(layer, pane.a));
      say("b", nameOf(layer, pane.b));
    } else if (need === "item") say("k", itemName(layer, pane.k));
    if (pane.looks > 1) say("looks", pane.looks);
    if (pane.lim !== "auto") say("lim", Array.isArray(pane.lim) ? pane.lim.join(",") : pane.lim);
    if (pane.lock !== usual.lock) say("lock", pane.lock ? "1" : "0");
    if (pane.cm !== "auto") say("cm", pane.cm);
    if (pane.rev) say("rev", "1");
    if (pane.wrap > 0) say("wrap", pane.wrap);
  }

  /** @param {Layer} layer @param {(name: string, value: string|number) => void} say */
  writePlane(layer, say) {
    const plane = this.plane(layer);
    /** @param {number} x @param {number} y */
    const place = (x, y) => toLink(layer.is_map, x, y);
    if (plane.aspect !== 1) say("asp", plane.aspect);
    if (plane.ref) say("ref", [...place(plane.ref[0], plane.ref[1]), plane.ref[2]].join(","));
    if (plane.picks.length) say("p", plane.picks.map(([x, y]) => place(x, y).join(",")).join(";"));
    if (plane.line) say("line", [...place(plane.line[0], plane.line[1]), ...place(plane.line[2], plane.line[3])].join(","));
    if (plane.view) say("v", [...place(plane.view[0], plane.view[1]), Number(plane.view[2].toFixed(2))].join(","));
  }
}

/** @param {string|number} value */
const encode = (value) => encodeURIComponent(String(value)).replace(/%2C/g, ",").replace(/%3B/g, ";");

/** @param {string|null} text @param {number} fallback */
function whole(text, fallback) {
  return /^\d{1,6}$/.test(text ?? "") ? Number(text) : fallback;
}

/** @param {number} value @param {number} low @param {number} high */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** @param {string|null} text @param {number} count */
function numbers(text, count) {
  const found = (text ?? "").split(",").map(Number);
  return text && found.length === count && found.every(Number.isFinite) ? found : null;
}

/** An image by date, or by number where dates are not known. @param {Layer} layer @param {number} index */
function nameOf(layer, index) {
  return layer.dates[index] ?? String(index);
}

/** @param {Layer} layer @param {string|null} name @param {number} fallback */
function indexOf(layer, name, fallback) {
  const found = layer.dates.indexOf(name ?? "");
  if (found >= 0) return found;
  return layer.dates.length ? fallback : Math.min(whole(name, fallback), Math.max(layer.images.length - 1, 0));
}

/** An item of a stack: an image, a pair of images, or a number. @param {Layer} layer @param {number} k */
function itemName(layer, k) {
  if (layer.axis === "pairs") return layer.pairs[k].map((i) => nameOf(layer, i)).join("-");
  return layer.axis === "images" ? nameOf(layer, k) : String(k);
}

/** @param {Layer} layer @param {string|null} name @param {number} fallback */
function itemOf(layer, name, fallback) {
  if (name === null) return fallback;
  const found = layer.items.findIndex((_, k) => itemName(layer, k) === name);
  return found >= 0 ? found : fallback;
}
