// Longitude and latitude of the pixels of radar grids, for which the server is asked when the pointer rests.

/** @import { App } from "./main.js" */
/** @import { Layer } from "./data.js" */

import { degreesText } from "./format.js";

const REST = 120; // ms
const MOST = 5000; // places that are remembered

export class Ground {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Map<string, string>} */
    this.known = new Map();
    /** @type {Map<string, Promise<void>>} */
    this.asked = new Map();
    this.timer = 0;
  }

  /** @param {Layer} layer @param {number} x @param {number} y */
  keyOf(layer, x, y) {
    return `${layer.grid} ${Math.floor(x)} ${Math.floor(y)}`;
  }

  /** What is known of a place: " (lat 52.37312°, lon 4.89210°)", or nothing.
   * @param {Layer} layer @param {number} x @param {number} y */
  text(layer, x, y) {
    return this.known.get(this.keyOf(layer, x, y)) ?? "";
  }

  /** Find it out; then do something, if there was anything to find out.
   * @param {Layer} layer @param {[number, number]} place @param {() => void} then */
  async find(layer, [x, y], then) {
    const key = this.keyOf(layer, x, y);
    if (!layer.ground || this.known.has(key)) return;
    const asked = this.asked.get(key) ?? this.ask(layer, x, y).then((text) => this.keep(key, text));
    this.asked.set(key, asked);
    await asked;
    then();
  }

  /** Nothing is said of places outside, and where it is not known. @param {Layer} layer @param {number} x @param {number} y */
  async ask(layer, x, y) {
    try {
      const { lon, lat } = await this.app.ask("ground", { layer: layer.id, x: Math.floor(x) + 0.5, y: Math.floor(y) + 0.5 });
      return ` (${degreesText(lon, lat)})`;
    } catch {
      return "";
    }
  }

  /** @param {string} key @param {string} text */
  keep(key, text) {
    if (this.known.size > MOST) this.known.clear();
    this.known.set(key, text);
    this.asked.delete(key);
  }

  /** The same once the pointer rests. @param {Layer} layer @param {[number, number]|null} place @param {() => void} then */
  rest(layer, place, then) {
    clearTimeout(this.timer);
    if (place && layer.ground) this.timer = setTimeout(() => this.find(layer, place, then), REST);
  }
}
