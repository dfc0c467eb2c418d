// All that can be chosen, kept in the fragment of the address and nowhere else: by name, never by number or path.

import { fromLink, toLink } from "./format.js";
import { needs, sharesLimits, shows } from "./picture.js";

/**
 * @typedef {{layer: string, show: string, a: number, b: number, k: number, looks: number, lim: "auto"|"full"|number[],
 *   lock: boolean, cm: string, rev: boolean, wrap: number}} Pane
 * @typedef {{view: number[]|null, ref: number[]|null, picks: number[][], line: number[]|null, aspect: number}} Plane
 */

export const MOST_PICKS = 6;

/** What `--show` of the command means here. */
const WANTED = {
  phase: ["phase"],
  intf_0: ["intf", "diff"],
  intf_seq: ["intf", "diff"],
  intf_all: ["intf", "diff"],
  coh: ["coh"],
  coh_abs: ["coh_abs"],
};

const CLEAN = { view: null, ref: null, picks: [], line: null, aspect: 1 };

export class State {
  constructor(meta) {
    this.meta = meta;
    /** @type {Pane[]} */
    this.panes = [];
    /** @type {Record<string, Plane>} by grid: panes of one grid share view, reference, picks and line */
    this.planes = {};
    this.width = 1;
    this.read("");
  }

  layer(name) {
    return this.meta.layers.find((layer) => layer.name === name && !layer.error);
  }

  /** What is shown when nothing is asked for: images that make pairs, else a stack, else what comes first. */
  first() {
    const layers = this.meta.layers.filter((layer) => !layer.error);
    const isOfImages = (layer) => layer.axis === "images" && layer.products.phase && layer.kind === "raster";
    return layers.find(isOfImages) ?? layers.find((layer) => layer.items.length > 1) ?? layers[0];
  }

  plane(layer) {
    this.planes[layer.grid] ??= { ...CLEAN, picks: [] };
    return this.planes[layer.grid];
  }

  /** A pane that shows a layer the way that suits it. */
  fresh(layer) {
    const n = layer.images.length;
    const offered = shows(layer, this.meta.static).map(([name]) => name);
    const wanted = WANTED[this.meta.show] ?? [];
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

  /** Take over what a fragment says; what it does not say, or says wrongly, is as it comes. */
  read(fragment) {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const count = [1, 2, 4].includes(Number(given.get("panes"))) ? Number(given.get("panes")) : 1;
    this.planes = {};
    this.panes = [];
    this.width = clamp(whole(given.get("width"), 1), 1, 64);
    for (let i = 0; i < count; i += 1) {
      const field = (name) => given.get(i ? `${i + 1}.${name}` : name);
      const layer = this.layer(field("l")) ?? this.layer(this.panes[0]?.layer) ?? this.first();
      if (!layer) return;
      this.panes.push(this.readPane(layer, field));
      if (!(layer.grid in this.planes)) this.readPlane(layer, field);
    }
  }

  readPane(layer, field) {
    const pane = this.fresh(layer);
    if (shows(layer, this.meta.static).some(([name]) => name === field("show"))) pane.show = field("show");
    pane.a = indexOf(layer, field("a"), pane.a);
    pane.b = indexOf(layer, field("b"), pane.b);
    pane.k = itemOf(layer, field("k"), pane.k);
    pane.looks = [1, 2, 4, 8].includes(Number(field("looks"))) ? Number(field("looks")) : 1;
    const lim = field("lim");
    const pair = numbers(lim, 2);
    pane.lim = lim === "full" ? "full" : pair && pair[0] < pair[1] ? pair : "auto";
    if (field("lock") !== null) pane.lock = field("lock") === "1";
    if (["cyclic", "diverging", "sequential", "gray"].includes(field("cm"))) pane.cm = field("cm");
    pane.rev = field("rev") === "1";
    const wrap = Number(field("wrap"));
    pane.wrap = wrap > 0 && Number.isFinite(wrap) ? wrap : 0;
    return pane;
  }

  readPlane(layer, field) {
    const plane = this.plane(layer);
    const place = (first, second) => fromLink(layer.is_map, first, second);
    const view = numbers(field("v"), 3);
    if (view) plane.view = [...place(view[0], view[1]), view[2]];
    const ref = numbers(field("ref"), 3);
    if (ref) plane.ref = [...place(ref[0], ref[1]), clamp(Math.round(ref[2]), 0, 32)];
    const picks = (field("p") ?? "").split(";").map((text) => numbers(text, 2));
    plane.picks = picks.filter(Boolean).slice(0, MOST_PICKS).map(([first, second]) => place(first, second));
    const aspect = Number(field("asp"));
    if (!layer.is_map && aspect >= 0.1 && aspect <= 20) plane.aspect = aspect;
    const line = numbers(field("line"), 4);
    if (line) plane.line = [...place(line[0], line[1]), ...place(line[2], line[3])];
  }

  /** The fragment of this state. */
  write() {
    const said = [];
    if (this.panes.length > 1) said.push(["panes", this.panes.length]);
    const seen = new Set();
    this.panes.forEach((pane, i) => {
      const layer = this.layer(pane.layer);
      const say = (name, value) => said.push([i ? `${i + 1}.${name}` : name, value]);
      this.writePane(layer, pane, say);
      if (seen.has(layer.grid)) return;
      seen.add(layer.grid);
      this.writePlane(layer, say);
    });
    if (this.width > 1) said.push(["width", this.width]);
    return `#${said.map(([name, value]) => `${name}=${encode(value)}`).join("&")}`;
  }

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

  writePlane(layer, say) {
    const plane = this.plane(layer);
    const place = (x, y) => toLink(layer.is_map, x, y);
    if (plane.aspect !== 1) say("asp", plane.aspect);
    if (plane.ref) say("ref", [...place(plane.ref[0], plane.ref[1]), plane.ref[2]].join(","));
    if (plane.picks.length) say("p", plane.picks.map(([x, y]) => place(x, y).join(",")).join(";"));
    if (plane.line) say("line", [...place(plane.line[0], plane.line[1]), ...place(plane.line[2], plane.line[3])].join(","));
    if (plane.view) say("v", [...place(plane.view[0], plane.view[1]), Number(plane.view[2].toFixed(2))].join(","));
  }
}

const encode = (value) => encodeURIComponent(String(value)).replace(/%2C/g, ",").replace(/%3B/g, ";");

function whole(text, fallback) {
  return /^\d{1,6}$/.test(text ?? "") ? Number(text) : fallback;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

function numbers(text, count) {
  const found = (text ?? "").split(",").map(Number);
  return text && found.length === count && found.every(Number.isFinite) ? found : null;
}

/** An image by date, or by number where dates are not known. */
function nameOf(layer, index) {
  return layer.dates[index] ?? String(index);
}

function indexOf(layer, name, fallback) {
  const found = layer.dates.indexOf(name ?? "");
  if (found >= 0) return found;
  return layer.dates.length ? fallback : Math.min(whole(name, fallback), Math.max(layer.images.length - 1, 0));
}

/** An item of a stack: an image, a pair of images, or a number. */
function itemName(layer, k) {
  if (layer.axis === "pairs") return layer.pairs[k].map((i) => nameOf(layer, i)).join("-");
  return layer.axis === "images" ? nameOf(layer, k) : String(k);
}

function itemOf(layer, name, fallback) {
  if (name === null) return fallback;
  const found = layer.items.findIndex((_, k) => itemName(layer, k) === name);
  return found >= 0 ? found : fallback;
}
