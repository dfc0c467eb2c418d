// What was asked of places and answered: series, and the constants of references. Each place is asked for once.

/** @import { App } from "./main.js" */
/** @import { Layer, Series, Values } from "./data.js" */
/** @import { Pane } from "./pane.js" */
/** @import { Place } from "./state.js" */

import { messageOf } from "./data.js";

const NEAR = 10; // pixels of the screen within which a point counts as clicked

/** How far a point may be from where one clicks. @param {Pane} pane */
export function reachOf(pane) {
  if (pane.layer.kind === "raster") return 0;
  const [x0] = pane.fromMap(pane.map.containerPointToLatLng([0, 0]));
  const [x1] = pane.fromMap(pane.map.containerPointToLatLng([NEAR, 0]));
  return Math.abs(x1 - x0);
}

/** The image that constants are to. @param {Pane} pane */
const imageOf = ({ layer, state }) => (layer.axis === "images" && layer.products.phase ? state.a : 0);

/** @param {Layer} layer @param {Place} place @param {number[]} [more] */
const keyOf = (layer, [x, y], more) =>
  JSON.stringify([layer.id, layer.stamp, Number(x.toFixed(2)), Number(y.toFixed(2)), more]);

/** @param {Pane} pane @param {Place} place @param {number} r @param {number} reach */
const question = (pane, [x, y], r, reach) => ({
  layer: pane.layer.id,
  x: x.toFixed(3),
  y: y.toFixed(3),
  r,
  a: imageOf(pane),
  reach: reach.toFixed(3),
});

export class Answers {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Map<string, Series|undefined>} by place; undefined while it is asked for, as below */
    this.found = new Map();
    /** @type {Map<string, Values|undefined>} */
    this.constants = new Map();
  }

  /** Half of the window around a place. @param {Pane} pane */
  radius(pane) {
    return pane.plane.ref ? pane.plane.ref[2] : this.app.radius;
  }

  /** The pixel or point that is nearest to a place, whose answer is kept. @param {Pane} pane @param {Place} place
   * @returns {Promise<Place>} */
  async nearest(pane, place) {
    const { layer } = pane;
    const more = [this.radius(pane), imageOf(pane)];
    /** @type {Series} */
    const found = await this.app.ask("series", question(pane, place, more[0], reachOf(pane)));
    /** @type {Place} */
    const at = layer.kind === "raster" ? [found.x + 0.5, found.y + 0.5] : [found.x, found.y];
    this.found.set(keyOf(layer, at), found);
    this.constants.set(keyOf(layer, at, more), found.ref);
    return at;
  }

  /** The answer for a place, or undefined while it is asked for; then something is done.
   * @param {Pane} pane @param {Place} place @param {() => void} then */
  series(pane, place, then) {
    const key = keyOf(pane.layer, place);
    if (!this.found.has(key)) {
      this.found.set(key, undefined);
      const reach = pane.layer.kind === "raster" ? 0 : Math.max(reachOf(pane), pane.layer.cell / 2);
      this.app.ask("series", question(pane, place, this.radius(pane), reach)).then(
        (found) => this.found.set(key, found),
        (error) => this.found.set(key, { x: place[0], y: place[1], ref: [], error: messageOf(error) }),
      ).then(then);
    }
    return this.found.get(key);
  }

  /** The constants of the reference of a pane, or undefined while they are asked for; then something is done.
   * @param {Pane} pane @param {() => void} then */
  reference(pane, then) {
    const { layer } = pane;
    if (!pane.plane.ref) return undefined;
    const [x, y, r] = pane.plane.ref;
    const key = keyOf(layer, [x, y], [r, imageOf(pane)]);
    if (!this.constants.has(key)) {
      this.constants.set(key, undefined);
      const reach = layer.kind === "raster" ? 0 : Math.max(reachOf(pane), layer.cell);
      this.app.ask("ref", question(pane, [x, y], r, reach)).then(
        (found) => this.constants.set(key, found.ref),
        (error) => {
          this.constants.set(key, layer.items.map(() => null));
          this.app.say(`reference: ${messageOf(error)}`);
        },
      ).then(then);
    }
    return this.constants.get(key);
  }
}
