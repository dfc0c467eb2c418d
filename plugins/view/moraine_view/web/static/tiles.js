// The tiles of a picture: fetched, put together, colored; and what is said of those that fail.

/** @import { Codes } from "./data.js" */
/** @import { Pane } from "./pane.js" */

import { paint } from "./color.js";
import { cachedTile, dropTile, Failed, isAborted, loadTile, messageOf } from "./data.js";
import { element } from "./format.js";
import { TILE, zoomOfLevel0 } from "./plane.js";

/** @typedef {{x: number, y: number, z: number}} Coords of a tile, as Leaflet has them
 * @typedef {{coords: Coords, level: number, row: number, col: number, canvas: HTMLCanvasElement, urls: string[],
 *   codes: Codes|null, turn: number}} Tile */

/** @param {Coords} coords */
const keyOf = ({ x, y, z }) => `${x}:${y}:${z}`;

export class Tiles {
  /** @param {Pane} pane */
  constructor(pane) {
    this.pane = pane;
    /** @type {Map<string, Tile>} */
    this.all = new Map();
    /** @type {Map<Tile, string>} */
    this.failures = new Map();
  }

  values() {
    return this.all.values();
  }

  /** @param {Coords} coords */
  find(coords) {
    return this.all.get(keyOf(coords));
  }

  clear() {
    this.all.clear();
    this.failures.clear();
    this.showFailures();
  }

  /** The layer of Leaflet that asks for tiles where they are seen. */
  makeGrid() {
    const { layer, aspect, toMap } = this.pane;
    const top = zoomOfLevel0(layer);
    const [x0, y0, x1, y1] = layer.extent;
    const Grid = L.GridLayer.extend({
      createTile: (/** @type {Coords} */ coords) => this.make(coords, top - coords.z),
    });
    const grid = new Grid({
      tileSize: L.point(TILE, TILE * aspect),
      minNativeZoom: top - (layer.levels.length - 1),
      maxNativeZoom: top - (layer.finest ?? 0),
      minZoom: -20,
      maxZoom: 30,
      noWrap: true,
      keepBuffer: 1,
      updateWhenIdle: false,
      updateWhenZooming: false,
      bounds: L.latLngBounds(toMap(x0, y0), toMap(x1, y1)),
    });
    grid.on("tileunload", (/** @type {{coords: Coords}} */ event) => this.unload(event.coords));
    this.clear();
    return grid;
  }

  /** @param {Coords} coords @param {number} level */
  make(coords, level) {
    const { shape, origin } = this.pane.layer.levels[level];
    const row = coords.y - origin[0];
    const col = coords.x - origin[1];
    const height = Math.min(TILE, shape[0] - row * TILE);
    const width = Math.min(TILE, shape[1] - col * TILE);
    if (row < 0 || col < 0 || height <= 0 || width <= 0) return element("canvas", { width: 1, height: 1 });
    const canvas = element("canvas", { width, height, className: "tile" });
    // Leaflet gives every tile the full size
    const box = element("div", {}, canvas);
    [canvas.style.width, canvas.style.height] = [width, height].map((n) => `calc(${(100 * n) / TILE}% + var(--overlap, 0px))`);
    /** @type {Tile} */
    const tile = { coords: { ...coords }, level, row, col, canvas, urls: [], codes: null, turn: 0 };
    this.all.set(keyOf(coords), tile);
    if (this.pane.picture) this.fill(tile);
    return box;
  }

  /** @param {Coords} coords */
  unload(coords) {
    const tile = this.find(coords);
    if (!tile) return;
    tile.turn += 1;
    if (!tile.codes) tile.urls.forEach(dropTile);
    this.all.delete(keyOf(coords));
    this.settled();
    if (this.failures.delete(tile)) this.showFailures();
  }

  /** @param {Tile} tile */
  urlsOf(tile) {
    const { app, layer, picture } = this.pane;
    const version = app.isStatic ? "" : `?v=${layer.stamp}`;
    const folder = `z/${layer.id}/${picture.product.name}/${tile.level}/c/${tile.row}/${tile.col}`;
    return picture.items.map((item) => `${folder}/${item}${version}`);
  }

  /** Another picture is shown. */
  refill() {
    this.failures.clear();
    this.showFailures();
    for (const tile of this.all.values()) this.fill(tile);
  }

  /** Other colors are shown. */
  repaint() {
    for (const { canvas, codes } of this.all.values()) if (codes) paint(canvas, codes, this.pane.pixels);
  }

  /** Get the codes of a tile and color it; what it shows now stays until then. @param {Tile} tile */
  async fill(tile) {
    const turn = (tile.turn += 1);
    const { app, picture, root } = this.pane;
    const { combine, product } = picture;
    if (!tile.codes) tile.urls.forEach(dropTile);
    root.setAttribute("aria-busy", "true");
    tile.urls = this.urlsOf(tile);
    tile.codes = null;
    const here = tile.urls.flatMap((url) => cachedTile(url) ?? []);
    try {
      const parts = here.length === tile.urls.length ? here : await Promise.all(tile.urls.map((url) => loadTile(url, product.dtype)));
      if (turn !== tile.turn) return;
      tile.codes = combine ? combine(...parts) : parts[0];
      tile.canvas.classList.remove("failed");
      tile.canvas.classList.add("filled");
      if (this.failures.delete(tile)) this.showFailures();
      paint(tile.canvas, tile.codes, this.pane.pixels);
    } catch (error) {
      if (turn !== tile.turn || isAborted(error)) return;
      tile.canvas.classList.remove("filled");
      tile.canvas.classList.add("failed");
      tile.canvas.getContext("2d")?.clearRect(0, 0, TILE, TILE);
      if (error instanceof Failed && error.status === 409) app.changed();
      this.failures.set(tile, messageOf(error));
      this.showFailures();
    }
    this.settled();
  }

  /** Something has come: say so when it was the last. */
  settled() {
    if ([...this.all.values()].some((tile) => !tile.codes && !tile.canvas.classList.contains("failed"))) return;
    this.pane.root.setAttribute("aria-busy", "false");
    this.pane.app.painted(this.pane);
  }

  showFailures() {
    const { incomplete } = this.pane;
    const [first] = this.failures.values();
    const n = this.failures.size;
    incomplete.hidden = !first;
    incomplete.textContent = first ? `${n === 1 ? "a tile is" : `${n} tiles are`} not shown: ${first}` : "";
  }
}
