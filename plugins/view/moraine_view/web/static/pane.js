// One picture: a map of tiles that are colored here, with what they mean around it.

/* global L */

import { coloring, meaning, picture, needs, told } from "./picture.js";
import { lookup, paint, rgb } from "./color.js";
import { cachedTile, dropTile, Failed, loadTile } from "./data.js";
import { degrees, element, meters, number, placeText, ticks } from "./format.js";

const TILE = 256;
const GRID_ZOOM = 6;
const MAP_ZOOM = 22;

export const SHAPES = ["circle", "square", "triangle", "diamond", "plus", "cross"];

/** Outlines of the marks, in a square from -8 to 8. */
export const PATHS = {
  circle: "M6,0A6,6 0 1 1 -6,0A6,6 0 1 1 6,0Z",
  square: "M-5.5,-5.5H5.5V5.5H-5.5Z",
  triangle: "M0,-7L6.5,5H-6.5Z",
  diamond: "M0,-7.5L6.5,0L0,7.5L-6.5,0Z",
  plus: "M-2,-7H2V-2H7V2H2V7H-2V2H-7V-2H-2Z",
  cross: "M-6.5,-4L-4,-6.5L0,-2.5L4,-6.5L6.5,-4L2.5,0L6.5,4L4,6.5L0,2.5L-4,6.5L-6.5,4L-2.5,0Z",
};

function svg(path, className) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "-9 -9 18 18");
  made.setAttribute("class", className);
  made.setAttribute("aria-hidden", "true");
  const outline = document.createElementNS("http://www.w3.org/2000/svg", "path");
  outline.setAttribute("d", path);
  made.append(outline);
  return made;
}

export function markOf(index) {
  return svg(PATHS[SHAPES[index % SHAPES.length]], `mark mark-${index % SHAPES.length}`);
}

const REFERENCE = "M-8,-8H-2V-6H-6V-2H-8ZM8,-8V-2H6V-6H2V-8ZM8,8H2V6H6V2H8ZM-8,8V2H-6V6H-2V8ZM-1.5,-1.5H1.5V1.5H-1.5Z";

/** Between places of the plane and those of Leaflet. */
function planeOf(layer, aspect) {
  if (layer.is_map) {
    return {
      crs: L.CRS.EPSG3857,
      toMap: (x, y) => {
        const [lon, lat] = degrees(x, y);
        return L.latLng(lat, lon);
      },
      fromMap: (place) => meters(place.lng, place.lat),
    };
  }
  const crs = L.extend({}, L.CRS.Simple, { transformation: new L.Transformation(1, 0, aspect, 0), infinite: true });
  return { crs, toMap: (x, y) => L.latLng(y, x), fromMap: (place) => [place.lng, place.lat] };
}

/** Zoom of Leaflet and level of a layer add up to this. */
function zoomOfLevel0(layer) {
  if (layer.is_map) return MAP_ZOOM;
  return layer.kind === "raster" ? 0 : GRID_ZOOM;
}

export class Pane {
  /**
   * @param {number} index
   * @param app what all panes share: state, and what to do when something happens
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
    this.root = element(
      "section",
      { className: "pane" },
      this.caption,
      element("div", { className: "map-box" }, this.mapElement, this.crosshair, this.edges, this.incomplete),
      element("div", { className: "legend" }, element("div", { className: "bar-box" }, this.bar, this.barTicks), this.barText),
      this.readout,
    );
    this.root.addEventListener("focusin", () => app.activate(this.index));
    this.root.addEventListener("pointerdown", () => app.activate(this.index));
    new ResizeObserver(() => this.resized()).observe(this.mapElement);
    /** @type {Map<string, {coords: any, canvas: HTMLCanvasElement, urls: string[], codes: any}>} */
    this.tiles = new Map();
    this.marks = [];
    this.map = null;
    this.layer = null;
    this.failures = new Map();
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
    const layer = this.app.state.layer(this.state.layer);
    const { aspect } = this.app.state.plane(layer);
    if (layer !== this.layer || aspect !== this.aspect) this.changeLayer(layer, aspect);
    const next = picture(layer, this.state, this.app.isStatic);
    const key = JSON.stringify([layer.id, next.product.name, next.items, layer.stamp]);
    this.picture = next;
    this.findConstants();
    if (key !== this.pictureKey) {
      this.pictureKey = key;
      this.failures.clear();
      this.recolor({ paint: false });
      for (const tile of this.tiles.values()) this.fill(tile);
    } else this.recolor({ paint: true });
    this.showFailures();
    this.describe();
    this.drawMarks();
    this.tell();
  }

  changeLayer(layer, aspect) {
    const isSame = this.layer?.grid === layer.grid && this.aspect === aspect;
    this.layer = layer;
    this.aspect = aspect;
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
    this.grid = this.makeGrid().addTo(this.map);
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
    this.addBasemap();
    if (this.layer.is_map) L.control.scale({ imperial: false, position: "bottomleft" }).addTo(this.map);
    this.mapElement.setAttribute("role", "application");
    this.mapElement.setAttribute("aria-roledescription", "picture that can be moved");
    this.map.on("click", (event) => this.app.clicked(this, this.fromMap(event.latlng), event.originalEvent));
    this.map.on("mousemove", (event) => this.app.pointed(this, this.fromMap(event.latlng)));
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

  /** Pictures behind points on the map, from the user's own archive. */
  addBasemap() {
    const { basemap } = this.app.meta;
    if (!basemap || !this.layer.is_map) return;
    this.map.createPane("basemap").style.zIndex = "110";
    const [least, most] = basemap.zoom;
    const zooms = { minNativeZoom: least, maxNativeZoom: most, minZoom: 0, maxZoom: MAP_ZOOM };
    L.tileLayer("basemap/{z}/{x}/{y}", { pane: "basemap", ...zooms }).addTo(this.map);
    const credit = L.control({ position: "bottomleft" });
    credit.onAdd = () => element("p", { className: "credit" }, `Basemap: ${basemap.credit}`);
    credit.addTo(this.map);
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

  /** Bring a place under the crosshair. Leaflet moves by whole pixels of the screen, so the place is kept. */
  goTo(place, zoom = this.map.getZoom()) {
    this.aim = place;
    this.map.setView(this.toMap(...place), zoom, { animate: false });
  }

  /** The place under the crosshair. */
  center() {
    const place = this.fromMap(this.map.getCenter());
    if (!this.aim) return place;
    const [seen, meant] = [place, this.aim].map((found) => this.map.project(this.toMap(...found)));
    return seen.distanceTo(meant) < 1.5 ? this.aim : place;
  }

  /** Move by pixels of the data. */
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

  view() {
    return [...this.center(), this.map.getZoom()];
  }

  moved() {
    this.drawEdges();
    this.app.moved(this);
  }

  makeGrid() {
    const pane = this;
    const top = zoomOfLevel0(this.layer);
    const last = this.layer.levels.length - 1;
    const finest = this.layer.finest ?? 0;
    const [x0, y0, x1, y1] = this.layer.extent;
    const Grid = L.GridLayer.extend({
      createTile(coords) {
        return pane.makeTile(coords, top - coords.z);
      },
    });
    const grid = new Grid({
      tileSize: L.point(TILE, TILE * this.aspect),
      minNativeZoom: top - last,
      maxNativeZoom: top - finest,
      minZoom: -20,
      maxZoom: 30,
      noWrap: true,
      keepBuffer: 1,
      updateWhenIdle: false,
      updateWhenZooming: false,
      bounds: L.latLngBounds(this.toMap(x0, y0), this.toMap(x1, y1)),
    });
    grid.on("tileunload", (event) => this.unload(event.coords));
    this.tiles.clear();
    return grid;
  }

  makeTile(coords, level) {
    const { shape, origin } = this.layer.levels[level];
    const row = coords.y - origin[0];
    const col = coords.x - origin[1];
    const height = Math.min(TILE, shape[0] - row * TILE);
    const width = Math.min(TILE, shape[1] - col * TILE);
    if (row < 0 || col < 0 || height <= 0 || width <= 0) return element("canvas", { width: 1, height: 1 });
    const canvas = element("canvas", { width, height, className: "tile" });
    // Leaflet gives every tile the full size
    const box = element("div", {}, canvas);
    [canvas.style.width, canvas.style.height] = [width, height].map((n) => `calc(${(100 * n) / TILE}% + var(--overlap, 0px))`);
    const tile = { coords: { ...coords }, level, row, col, canvas, urls: [], codes: null, turn: 0 };
    this.tiles.set(`${coords.x}:${coords.y}:${coords.z}`, tile);
    if (this.picture) this.fill(tile);
    return box;
  }

  unload(coords) {
    const key = `${coords.x}:${coords.y}:${coords.z}`;
    const tile = this.tiles.get(key);
    if (!tile) return;
    tile.turn += 1;
    if (!tile.codes) tile.urls.forEach(dropTile);
    this.tiles.delete(key);
    this.settled();
    if (this.failures.delete(tile)) this.showFailures();
  }

  urlsOf(tile) {
    const { product, items } = this.picture;
    const version = this.app.isStatic ? "" : `?v=${this.layer.stamp}`;
    const folder = `z/${this.layer.id}/${product.name}/${tile.level}/c/${tile.row}/${tile.col}`;
    return items.map((item) => `${folder}/${item}${version}`);
  }

  /** Get the codes of a tile and color it; what it shows now stays until then. */
  async fill(tile) {
    const turn = (tile.turn += 1);
    const { combine, product } = this.picture;
    if (!tile.codes) tile.urls.forEach(dropTile);
    this.root.setAttribute("aria-busy", "true");
    tile.urls = this.urlsOf(tile);
    tile.codes = null;
    const here = tile.urls.map(cachedTile);
    try {
      const parts = here.every(Boolean) ? here : await Promise.all(tile.urls.map((url) => loadTile(url, product.dtype)));
      if (turn !== tile.turn) return;
      tile.codes = combine ? combine(...parts) : parts[0];
      tile.canvas.classList.remove("failed");
      tile.canvas.classList.add("filled");
      if (this.failures.delete(tile)) this.showFailures();
      paint(tile.canvas, tile.codes, this.pixels);
      this.settled();
    } catch (error) {
      if (turn !== tile.turn || error.name === "AbortError") return;
      tile.canvas.classList.remove("filled");
      tile.canvas.classList.add("failed");
      tile.canvas.getContext("2d").clearRect(0, 0, TILE, TILE);
      if (error instanceof Failed && error.status === 409) this.app.changed();
      this.failures.set(tile, error.message);
      this.showFailures();
      this.settled();
    }
  }

  /** Something has come: say so when it was the last. */
  settled() {
    if (this.isBusy) return;
    this.root.setAttribute("aria-busy", "false");
    this.app.painted(this);
  }

  showFailures() {
    const [first] = this.failures.values();
    this.incomplete.hidden = !first;
    this.incomplete.textContent = first ? `${this.failures.size === 1 ? "a tile is" : `${this.failures.size} tiles are`} not shown: ${first}` : "";
  }

  get isBusy() {
    return [...this.tiles.values()].some((tile) => !tile.codes && !tile.canvas.classList.contains("failed"));
  }

  // -- colors

  /** The constants of the reference, one per item or image; null if there is none or it is not known yet. */
  findConstants() {
    const { ref } = this.plane;
    this.constants = null;
    if (!ref || !this.isReferenced) return;
    const image = this.layer.axis === "images" && this.layer.products.phase ? this.state.a : 0;
    const found = this.app.reference(this.layer, ref, image, () => this.update());
    this.constants = found ?? null;
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

  recolor({ paint: isPainted }) {
    this.coloring = coloring(this.layer, this.state, this.picture, this.constants, this.zero);
    const key = JSON.stringify([this.picture.coding, this.coloring]);
    if (key === this.pixelsKey) return;
    this.pixelsKey = key;
    this.pixels = lookup(this.picture.coding, this.coloring);
    if (isPainted) {
      for (const tile of this.tiles.values()) if (tile.codes) paint(tile.canvas, tile.codes, this.pixels);
    }
    this.drawBar();
  }

  drawBar() {
    const { low, high, cycle, table, reversed } = this.coloring;
    const image = new ImageData(255, 1);
    for (let k = 0; k < 255; k += 1) image.data.set([...rgb(table, reversed ? 254 - k : k), 255], 4 * k);
    this.bar.getContext("2d").putImageData(image, 0, 0);
    const { factor } = told(this.layer, this.picture.quantity);
    const isPhase = this.picture.quantity === "phase";
    const marks = isPhase
      ? [[-Math.PI, "−π"], [-Math.PI / 2, "−π/2"], [0, "0"], [Math.PI / 2, "π/2"], [Math.PI, "π"]]
      : ticks(low * factor, high * factor, 5).map((v) => [v / factor, number(v)]);
    this.barTicks.replaceChildren(
      ...marks.map(([value, text]) => {
        const mark = element("span", {}, text);
        mark.style.left = `${(100 * (value - low)) / (high - low)}%`;
        return mark;
      }),
    );
    const { text, sign } = meaning(this.layer, this.state, this.picture.quantity);
    const wrapped = !isPhase && cycle > 0 ? `, every ${number(cycle * factor)} the same color` : "";
    this.barText.textContent = `${text}${wrapped}${sign ? `; ${sign}` : ""}`;
  }

  /** Values between shares of what is seen, for limits; null if nothing is. */
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
    const at = (share) => {
      let passed = 0;
      for (let k = 0; k < counts.length; k += 1) if ((passed += counts[k]) >= share * total && counts[k]) return k;
      return coding.nothing - 1;
    };
    return [at(low), at(high)].map((k) => coding.offset + coding.step * k - this.zero);
  }

  // -- values and text

  /** The value shown at a place: undefined where no tile is, null where data are missing. */
  valueAt(x, y) {
    const zoom = this.grid?._tileZoom;
    if (zoom === undefined) return undefined;
    const point = this.map.project(this.toMap(x, y), zoom);
    const [row, col] = [Math.floor(point.y / this.aspect + 1e-9), Math.floor(point.x + 1e-9)];
    const tile = this.tiles.get(`${Math.floor(col / TILE)}:${Math.floor(row / TILE)}:${zoom}`);
    if (!tile?.codes) return undefined;
    const i = row - tile.coords.y * TILE;
    const j = col - tile.coords.x * TILE;
    if (i >= tile.canvas.height || j >= tile.canvas.width) return undefined;
    const { coding, quantity } = this.picture;
    const code = tile.codes[TILE * i + j];
    if (code === coding.nothing) return null;
    const value = coding.offset + coding.step * code - this.zero;
    if (quantity !== "phase") return value;
    return value - 2 * Math.PI * Math.round(value / (2 * Math.PI));
  }

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
    this.readout.textContent = `${placeText(this.layer.is_map, ...place)}${value ? `: ${value}` : ""}`;
  }

  /** What is seen, in words. */
  describe() {
    const { state, layer } = this;
    const need = needs(layer, state.show, this.app.isStatic);
    const names = { intf: "interferogram", coh: "coherence phase", coh_abs: "coherence", diff: "difference", phase: "phase", amp: "amplitude", value: "" };
    const what = names[state.show];
    let when = "";
    if (need === "pair") when = `${layer.images[state.a]} ${state.show === "diff" ? "−" : "→"} ${layer.images[state.b]}`;
    if (need === "item") when = layer.items[state.k];
    const looks = state.show === "intf" && state.looks > 1 ? `${state.looks} × ${state.looks} looks` : "";
    const text = [layer.name, what, when, looks, this.referenceText()].filter(Boolean).join(" · ");
    this.caption.textContent = text;
    this.root.setAttribute("aria-label", `Pane ${this.index + 1}: ${text}`);
    this.mapElement.setAttribute("aria-label", `Picture ${this.index + 1}: ${text}`);
  }

  referenceText() {
    if (!this.isReferenced) return "";
    const { ref } = this.plane;
    if (!ref) return "no reference";
    const known = this.constants ? (this.zeroIsKnown ? "" : " (no data there)") : " …";
    return `reference ${placeText(this.layer.is_map, ref[0], ref[1])} ± ${ref[2]}${known}`;
  }

  get zeroIsKnown() {
    const { state, constants } = this;
    if (state.show === "coh") return true;
    const used = state.show === "diff" ? [state.a, state.b] : [state.show === "intf" ? state.b : state.k];
    return used.every((k) => constants[k] !== null && constants[k] !== undefined);
  }

  // -- marks

  drawMarks() {
    this.marks.forEach((mark) => mark.remove());
    this.marks = [];
    const { picks, ref, line } = this.plane;
    const add = (x, y, html, className) => {
      const icon = L.divIcon({ html, className, iconSize: [18, 18] });
      this.marks.push(L.marker(this.toMap(x, y), { icon, interactive: false, keyboard: false }).addTo(this.map));
    };
    if (line) {
      const ends = [this.toMap(line[0], line[1]), this.toMap(line[2], line[3])];
      for (const className of ["line-halo", "line"]) {
        this.marks.push(L.polyline(ends, { className, interactive: false }).addTo(this.map));
      }
    }
    const begun = this.app.lineBegun;
    if (begun && begun.grid === this.layer.grid) add(begun.x, begun.y, svg(PATHS.plus, "mark line-begin"), "mark-box");
    if (ref) add(ref[0], ref[1], svg(REFERENCE, "mark reference"), "mark-box");
    picks.forEach(([x, y], k) => add(x, y, markOf(k), "mark-box"));
  }

  /** A small cross where the pointer is in another pane. */
  pointAt(place) {
    this.pointer?.remove();
    this.pointer = null;
    if (!place || !this.map) return;
    const icon = L.divIcon({ html: svg(PATHS.plus, "mark pointer"), className: "mark-box", iconSize: [18, 18] });
    this.pointer = L.marker(this.toMap(...place), { icon, interactive: false, keyboard: false }).addTo(this.map);
  }

  /** Numbers along two edges: range and azimuth, or degrees. */
  drawEdges() {
    if (!this.map) return;
    const size = this.map.getSize();
    if (!size.x || !size.y) return;
    const isMap = this.layer.is_map;
    const corner = (x, y) => {
      const place = this.fromMap(this.map.containerPointToLatLng([x, y]));
      return isMap ? degrees(...place) : [place[0] - 0.5, place[1] - 0.5];
    };
    const [x0, y0] = corner(0, 0);
    const [x1, y1] = corner(size.x, size.y);
    const found = [];
    const mark = (value, side, step) => {
      const place = isMap ? meters(side === "x" ? value : x0, side === "x" ? y0 : value) : [(side === "x" ? value : x0) + 0.5, (side === "x" ? y0 : value) + 0.5];
      const point = this.map.latLngToContainerPoint(this.toMap(...place));
      if (side === "y" ? point.y > size.y - 26 : point.x > size.x - 16) return; // the corner belongs to neither
      const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
      const span = element("span", { className: `edge edge-${side}` }, `${value.toFixed(isMap ? digits : 0).replace("-", "−")}${isMap ? "°" : ""}`);
      span.style[side === "x" ? "left" : "top"] = `${side === "x" ? point.x : point.y}px`;
      found.push(span);
    };
    for (const [side, low, high, count] of [["x", x0, x1, size.x / 110], ["y", Math.min(y0, y1), Math.max(y0, y1), size.y / 80]]) {
      const marks = ticks(low, high, count).filter((v) => isMap || Number.isInteger(Number(v.toFixed(6))));
      const step = marks.length > 1 ? Math.abs(marks[1] - marks[0]) : 1;
      for (const value of marks) mark(value, side, step);
    }
    this.edges.replaceChildren(...found);
  }

  remove() {
    this.map?.remove();
    this.map = null;
    this.root.remove();
  }
}
