// One picture: a map of tiles that are colored here, with what they mean around it.

/** @import { App } from "./main.js" */
/** @import { Coloring } from "./color.js" */
/** @import { Layer } from "./data.js" */
/** @import { Picture } from "./picture.js" */
/** @import { Place, View } from "./state.js" */

import { addCoast } from "./coast.js";
import { lookup } from "./color.js";
import { edgeMarks } from "./edges.js";
import { element, number, placeText } from "./format.js";
import { captionOf, drawBar } from "./legend.js";
import { markOf, plusMark, referenceMark } from "./marks.js";
import { coloring, picture, told, wrapped } from "./picture.js";
import { addCredit, addScale, aspectOf, MAP_ZOOM, planeOf, TILE, zoomOfLevel0 } from "./plane.js";
import { Tiles } from "./tiles.js";

export class Pane {
  /**
   * @param {number} index
   * @param {App} app what all panes share: state, and what to do when something happens
   */
  constructor(index, app) {
    this.index = index;
    this.app = app;
    this.caption = element("p", { className: "caption" });
    this.mapElement = element("div", { className: "map" });
    this.crosshair = element("div", { className: "crosshair" });
    this.crosshair.setAttribute("aria-hidden", "true");
    this.edges = element("div", { className: "edges" });
    this.edges.setAttribute("aria-hidden", "true");
    this.incomplete = element("p", { className: "incomplete", hidden: true });
    this.bar = element("canvas", { className: "bar", width: 255, height: 1 });
    this.bar.setAttribute("aria-hidden", "true");
    this.barTicks = element("div", { className: "bar-ticks" });
    this.barText = element("p", { className: "bar-text" });
    this.readout = element("p", { className: "readout" });
    this.mapBox = element("div", { className: "map-box" }, this.mapElement, this.crosshair, this.edges, this.incomplete);
    this.root = element(
      "section",
      { className: "pane" },
      this.caption,
      this.mapBox,
      element("div", { className: "legend" }, element("div", { className: "bar-box" }, this.bar, this.barTicks), this.barText),
      this.readout,
    );
    this.root.addEventListener("focusin", () => app.activate(this.index));
    this.root.addEventListener("pointerdown", () => app.activate(this.index));
    new ResizeObserver(() => this.resized()).observe(this.mapElement);
    this.tiles = new Tiles(this);
    /** @type {any[]} */
    this.marks = [];
    /** @type {any} of Leaflet, as what is on it */
    this.map = null;
    /** @type {any} */
    this.grid = null;
    /** @type {any} */
    this.hatch = null;
    /** @type {any} */
    this.pointer = null;
    // until the first update there are none, and nobody asks for them
    /** @type {Layer} */
    this.layer = /** @type {any} */ (null);
    /** @type {Picture} */
    this.picture = /** @type {any} */ (null);
    /** @type {Coloring} */
    this.coloring = /** @type {any} */ (null);
    /** @type {ReturnType<typeof planeOf>["toMap"]} */
    this.toMap = /** @type {any} */ (null);
    /** @type {ReturnType<typeof planeOf>["fromMap"]} */
    this.fromMap = /** @type {any} */ (null);
    this.pixels = new Uint32Array(0);
    this.pixelsKey = "";
    this.pictureKey = "";
    this.planeKey = "";
    this.aspect = 1;
    this.isFitting = false;
    /** @type {(number|null)[]|null} */
    this.constants = null;
    /** @type {[number, number]|null} what is under the crosshair */
    this.aim = null;
    /** @type {[number, number]|null} */
    this.pointed = null;
    /** @type {[number, number]|null} */
    this.told = null;
  }

  get state() {
    return this.app.state.panes[this.index];
  }

  get plane() {
    return this.app.state.plane(this.layer);
  }

  // -- what is shown

  /** Show what the state says. */
  update() {
    const layer = this.app.state.layerOf(this.state);
    const plane = this.app.state.plane(layer);
    const planeKey = `${layer.grid} ${plane.aspect}`;
    if (layer !== this.layer || planeKey !== this.planeKey) this.changeLayer(layer, planeKey);
    const next = picture(layer, this.state, this.app.isStatic);
    const key = JSON.stringify([layer.id, next.product.name, next.items, layer.stamp]);
    this.picture = next;
    this.findConstants();
    if (key !== this.pictureKey) {
      this.pictureKey = key;
      this.recolor({ paint: false });
      this.tiles.refill();
    } else this.recolor({ paint: true });
    drawBar(this);
    this.describe();
    this.drawMarks();
    this.tell();
  }

  /** @param {Layer} layer @param {string} planeKey */
  changeLayer(layer, planeKey) {
    const isSame = this.planeKey === planeKey;
    this.layer = layer;
    this.planeKey = planeKey;
    this.aspect = aspectOf(layer, this.plane);
    this.pictureKey = "";
    this.root.classList.toggle("points", layer.kind === "points");
    if (!isSame) this.makeMap();
    else this.grid?.remove();
    this.hatch?.remove();
    this.hatch = null;
    if (layer.kind === "raster") {
      // what no pixel covers is missing; behind points there is nothing
      const [x0, y0, x1, y1] = layer.extent;
      const bounds = L.latLngBounds(this.toMap(x0, y0), this.toMap(x1, y1));
      this.hatch = L.rectangle(bounds, { pane: "hatch", stroke: false, fillColor: "url(#hatch)", fillOpacity: 1, interactive: false });
      this.hatch.addTo(this.map);
    }
    this.grid = this.tiles.makeGrid().addTo(this.map);
  }

  makeMap() {
    this.map?.remove();
    this.grid = null;
    this.hatch = null;
    this.pointer = null;
    this.aim = null;
    this.tiles.clear();
    this.marks = [];
    const { crs, toMap, fromMap } = planeOf(this.layer, this.aspect);
    this.toMap = toMap;
    this.fromMap = fromMap;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.map = L.map(this.mapElement, {
      crs,
      attributionControl: false,
      zoomSnap: 0.25,
      minZoom: this.layer.is_map ? 1 : -14,
      maxZoom: this.layer.is_map ? MAP_ZOOM : 6,
      zoomAnimation: !isCalm,
      fadeAnimation: false,
      markerZoomAnimation: !isCalm,
      inertia: !isCalm,
      doubleClickZoom: false,
      boxZoom: false,
      keyboardPanDelta: 64,
      worldCopyJump: false,
    });
    this.map.createPane("hatch").style.zIndex = "100";
    if (this.layer.is_map) this.addBackground();
    addScale(this.map, this.layer, this.plane.aspect === "true");
    this.mapElement.setAttribute("role", "application");
    this.mapElement.setAttribute("aria-roledescription", "picture that can be moved");
    this.map.on("click", (/** @type {any} */ event) => this.app.clicked(this, this.fromMap(event.latlng), event.originalEvent));
    this.map.on("mousemove", (/** @type {any} */ event) => this.app.pointed(this, this.fromMap(event.latlng)));
    this.map.on("mouseout", () => this.app.pointed(this, null));
    this.map.on("move", () => this.moved());
    // between steps of the zoom, the edges of tiles fall between pixels of the screen and would show as lines
    this.map.on("zoom", () => {
      const isWhole = Number.isInteger(this.map.getZoom());
      this.mapElement.style.setProperty("--overlap", isWhole ? "0px" : "0.5px");
    });
    this.map.on("moveend", () => this.app.rested(this));
    this.setView();
  }

  /** The box of the picture has another size. */
  resized() {
    if (!this.map) return;
    this.isFitting = true; // the place in the middle stays there, and the address as it is
    this.map.invalidateSize({ pan: false });
    this.setView();
    this.isFitting = false;
    this.drawEdges();
  }

  /** What is behind points on the map: pictures from the user's own archive, or else the coastline. */
  addBackground() {
    const { basemap } = this.app.meta;
    if (!basemap) {
      const [x0, y0, x1, y1] = this.layer.extent;
      addCoast(this.map, L.latLngBounds(this.toMap(x0, y0), this.toMap(x1, y1)));
      return;
    }
    this.map.createPane("basemap").style.zIndex = "110";
    const [least, most] = basemap.zoom;
    const zooms = { minNativeZoom: least, maxNativeZoom: most, minZoom: 0, maxZoom: MAP_ZOOM };
    L.tileLayer("basemap/{z}/{x}/{y}", { pane: "basemap", ...zooms }).addTo(this.map);
    addCredit(this.map, `Basemap: ${basemap.credit}`);
  }

  /** Go where the state says, or show everything. */
  setView() {
    const { view } = this.plane;
    if (view) this.goTo([view[0], view[1]], view[2]);
    else this.fit();
  }

  /** Show everything, also after the window has changed. */
  fit() {
    const [x0, y0, x1, y1] = this.layer.extent;
    const before = this.isFitting;
    this.isFitting = true;
    this.map.fitBounds(L.latLngBounds(this.toMap(x0, y0), this.toMap(x1, y1)), { animate: false, padding: [8, 8] });
    this.isFitting = before;
  }

  /** Bring a place under the crosshair. Leaflet moves by whole pixels of the screen, so the place is kept.
   * @param {Place} place */
  goTo(place, zoom = this.map.getZoom()) {
    this.aim = place;
    this.map.setView(this.toMap(...place), zoom, { animate: false });
  }

  /** The place under the crosshair. @returns {Place} */
  center() {
    const place = this.fromMap(this.map.getCenter());
    if (!this.aim) return place;
    const [seen, meant] = [place, this.aim].map(([x, y]) => this.map.project(this.toMap(x, y)));
    return seen.distanceTo(meant) < 1.5 ? this.aim : place;
  }

  /** Move by pixels of the data. @param {Place} steps */
  step([right, down]) {
    const size = this.layer.kind === "raster" ? 1 : this.layer.cell;
    const [x, y] = this.center();
    this.goTo([x + right * size, y + down * size]);
  }

  /** The level that is drawn. */
  level() {
    const level = zoomOfLevel0(this.layer) - Math.round(this.map.getZoom());
    return Math.min(Math.max(level, this.layer.finest ?? 0), this.layer.levels.length - 1);
  }

  /** @returns {View} */
  view() {
    return [...this.center(), this.map.getZoom()];
  }

  moved() {
    this.drawEdges();
    this.app.moved(this);
  }

  // -- colors

  /** The constants of the reference, one per item or image; null if there is none or it is not known yet. */
  findConstants() {
    const then = () => {
      this.update();
      this.app.panel.update();
    };
    this.constants = (this.isReferenced && this.app.answers.reference(this, then)) || null;
  }

  /** Whether a reference means anything for what is shown. */
  get isReferenced() {
    return ["intf", "value", "diff", "coh"].includes(this.state.show) && this.layer.dtype !== "bool";
  }

  /** What the reference subtracts from the picture. */
  get zero() {
    const { constants, state, layer } = this;
    if (!constants) return 0;
    if (state.show === "diff") return (constants[state.a] ?? 0) - (constants[state.b] ?? 0);
    if (state.show === "coh") {
      const [low, high] = [Math.min(state.a, state.b), Math.max(state.a, state.b)];
      const k = layer.pairs.findIndex(([i, j]) => i === low && j === high);
      return k < 0 ? 0 : (constants[k] ?? 0) * (state.a > state.b ? -1 : 1);
    }
    return constants[state.show === "intf" ? state.b : state.k] ?? 0;
  }

  /** @param {{paint: boolean}} options */
  recolor({ paint: isPainted }) {
    this.coloring = coloring(this.layer, this.state, this.picture, this.constants, this.zero);
    const key = JSON.stringify([this.picture.coding, this.coloring]);
    if (key === this.pixelsKey) return;
    this.pixelsKey = key;
    this.pixels = lookup(this.picture.coding, this.coloring);
    if (isPainted) this.tiles.repaint();
  }

  /** Values between shares of what is seen, for limits; null if nothing is.
   * @param {number} low @param {number} high @returns {[number, number]|null} */
  percentiles(low, high) {
    const { coding } = this.picture;
    const counts = new Uint32Array(coding.nothing + 1);
    const bounds = this.map.getPixelBounds();
    const zoom = this.grid._tileZoom;
    const scale = this.map.getZoomScale(this.map.getZoom(), zoom);
    let total = 0;
    for (const tile of this.tiles.values()) {
      if (!tile.codes || tile.coords.z !== zoom) continue;
      const { width, height } = tile.canvas;
      const x = tile.coords.x * TILE;
      const y = tile.coords.y * TILE;
      const [j0, j1] = [bounds.min.x / scale - x, bounds.max.x / scale - x].map((v) => Math.min(Math.max(Math.round(v), 0), width));
      const [i0, i1] = [bounds.min.y, bounds.max.y].map((v) => v / scale / this.aspect - y).map((v) => Math.min(Math.max(Math.round(v), 0), height));
      for (let i = i0; i < i1; i += 1) for (let j = j0; j < j1; j += 1) counts[tile.codes[TILE * i + j]] += 1;
    }
    counts[coding.nothing] = 0;
    for (const count of counts) total += count;
    if (!total) return null;
    /** @param {number} share */
    const at = (share) => {
      let passed = 0;
      for (let k = 0; k < counts.length; k += 1) if ((passed += counts[k]) >= share * total && counts[k]) return k;
      return coding.nothing - 1;
    };
    const [first, last] = [at(low), at(high)].map((k) => coding.offset + coding.step * k - this.zero);
    return [first, last];
  }

  // -- values and text

  /** The value shown at a place: undefined where no tile is, null where data are missing.
   * @param {number} x @param {number} y */
  valueAt(x, y) {
    const zoom = this.grid?._tileZoom;
    if (zoom === undefined) return undefined;
    const point = this.map.project(this.toMap(x, y), zoom);
    const [row, col] = [Math.floor(point.y / this.aspect + 1e-9), Math.floor(point.x + 1e-9)];
    const tile = this.tiles.find({ x: Math.floor(col / TILE), y: Math.floor(row / TILE), z: zoom });
    if (!tile?.codes) return undefined;
    const i = row - tile.coords.y * TILE;
    const j = col - tile.coords.x * TILE;
    if (i >= tile.canvas.height || j >= tile.canvas.width) return undefined;
    const { coding, quantity } = this.picture;
    const code = tile.codes[TILE * i + j];
    if (code === coding.nothing) return null;
    const value = coding.offset + coding.step * code - this.zero;
    return quantity === "phase" ? wrapped(value) : value;
  }

  /** @param {number} x @param {number} y */
  valueText(x, y) {
    const value = this.valueAt(x, y);
    if (value === undefined) return "";
    if (value === null) return this.layer.kind === "points" ? "no point" : "no data";
    const { factor, unit } = told(this.layer, this.picture.quantity);
    const digits = this.picture.coding.dtype === "uint8" || this.picture.quantity === "phase" ? 3 : 4;
    return `${number(value * factor, digits)}${unit ? ` ${unit}` : ""}`;
  }

  /** Say the value at a place under the picture. */
  tell(place = this.told) {
    this.told = place;
    if (!place) {
      this.readout.textContent = "";
      return;
    }
    const value = this.valueText(...place);
    this.readout.textContent = `${this.placeText(...place)}${value ? `: ${value}` : ""}`;
  }

  /** A place for people, with longitude and latitude where they are known. @param {number} x @param {number} y */
  placeText(x, y) {
    return placeText(this.layer.is_map, x, y) + this.app.ground.text(this.layer, x, y);
  }

  /** What is seen, in words. */
  describe() {
    const text = captionOf(this);
    this.caption.textContent = text;
    this.root.setAttribute("aria-label", `Pane ${this.index + 1}: ${text}`);
    this.mapElement.setAttribute("aria-label", `Picture ${this.index + 1}: ${text}`);
  }

  // -- marks

  drawMarks() {
    this.marks.forEach((mark) => mark.remove());
    this.marks = [];
    const { picks, ref, line } = this.plane;
    /** @param {number} x @param {number} y @param {Element} html */
    const add = (x, y, html) => {
      const icon = L.divIcon({ html, className: "mark-box", iconSize: [18, 18] });
      this.marks.push(L.marker(this.toMap(x, y), { icon, interactive: false, keyboard: false }).addTo(this.map));
    };
    if (line) {
      const ends = [this.toMap(line[0], line[1]), this.toMap(line[2], line[3])];
      for (const className of ["line-halo", "line"]) {
        this.marks.push(L.polyline(ends, { className, interactive: false }).addTo(this.map));
      }
    }
    const begun = this.app.lineBegun;
    if (begun && begun.grid === this.layer.grid) add(begun.x, begun.y, plusMark("line-begin"));
    if (ref) add(ref[0], ref[1], referenceMark());
    picks.forEach(([x, y], k) => add(x, y, markOf(k)));
  }

  /** A small cross where the pointer is in another pane. @param {Place|null} place */
  pointAt(place) {
    this.pointer?.remove();
    this.pointer = null;
    if (!place || !this.map) return;
    const icon = L.divIcon({ html: plusMark("pointer"), className: "mark-box", iconSize: [18, 18] });
    this.pointer = L.marker(this.toMap(...place), { icon, interactive: false, keyboard: false }).addTo(this.map);
  }

  drawEdges() {
    if (this.map) this.edges.replaceChildren(...edgeMarks(this));
  }

  remove() {
    this.map?.remove();
    this.map = null;
    this.root.remove();
  }
}
