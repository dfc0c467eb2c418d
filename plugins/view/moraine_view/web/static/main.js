// The application: state, panes and controls, and what happens when something is done.

import { loadTables } from "./color.js";
import { ask, loadMeta } from "./data.js";
import { answer } from "./static.js";
import { placeText } from "./format.js";
import { listen } from "./keys.js";
import { Pane } from "./pane.js";
import { Panel } from "./panel.js";
import { needs } from "./picture.js";
import { MOST_PICKS, State } from "./state.js";

const POLL = 30000;
const NEAR = 10; // pixels of the screen within which a point counts as clicked

class App {
  constructor(meta) {
    this.meta = meta;
    this.isStatic = meta.static;
    this.state = new State(meta);
    /** @type {Pane[]} */
    this.panes = [];
    this.active = 0;
    this.radius = 2;
    this.isDrawing = false;
    this.lineBegun = null;
    this.answers = new Map();
    this.constants = new Map();
    this.written = "";
    this.isSyncing = false;
  }

  start() {
    this.panel = new Panel(this);
    this.read();
    listen(this);
    for (const event of ["popstate", "hashchange"]) {
      addEventListener(event, () => location.hash !== this.written && this.read());
    }
    document.getElementById("pane-count").addEventListener("change", (event) => this.setPanes(Number(event.target.value)));
    document.getElementById("help-button").addEventListener("click", () => this.help());
    document.getElementById("share").addEventListener("click", () => this.share());
    document.getElementById("reload").addEventListener("click", () => location.reload());
    if (!this.isStatic) {
      setInterval(() => document.hidden || this.changed(), POLL);
      addEventListener("focus", () => this.changed());
    }
  }

  /** Ask the server, or find the answer in the files of an export. */
  ask(what, fields) {
    return this.isStatic ? answer(this.meta, what, fields) : ask(what, fields);
  }

  say(text) {
    document.getElementById("status").textContent = text;
  }

  // -- state

  /** Take over what the address says. */
  read() {
    this.state.read(location.hash);
    this.matchPanes();
    this.panes.forEach((pane) => pane.update());
    this.panes.forEach((pane) => pane.map && pane.setView());
    this.panel.update();
    this.write(false);
  }

  /** Change the state; `isStep` makes it one to come back to. */
  change(doIt, { isStep = false } = {}) {
    doIt();
    this.panes.forEach((pane) => pane.update());
    this.panel.update();
    this.write(isStep);
  }

  write(isStep) {
    const fragment = this.state.write();
    if (fragment !== location.hash) history[isStep ? "pushState" : "replaceState"](null, "", fragment);
    this.written = location.hash;
    const [pane] = this.state.panes;
    document.title = `${pane.layer} – moraine view`;
  }

  // -- panes

  matchPanes() {
    const box = document.getElementById("panes");
    while (this.panes.length > this.state.panes.length) this.panes.pop().remove();
    while (this.panes.length < this.state.panes.length) {
      const pane = new Pane(this.panes.length, this);
      box.append(pane.root);
      this.panes.push(pane);
    }
    box.dataset.count = String(this.panes.length);
    document.getElementById("pane-count").value = String(this.panes.length);
    this.active = Math.min(this.active, this.panes.length - 1);
    this.markActive();
  }

  setPanes(count) {
    while (this.state.panes.length > count) this.state.panes.pop();
    while (this.state.panes.length < count) {
      const last = this.state.panes[this.state.panes.length - 1];
      this.state.panes.push({ ...last });
      this.suggest(this.state.panes[this.state.panes.length - 1]);
    }
    this.matchPanes();
    this.change(() => {}, { isStep: true });
  }

  /** Let a new pane show something else than the one before. */
  suggest(state) {
    const layer = this.state.layer(state.layer);
    const need = needs(layer, state.show, this.isStatic);
    if (need === "pair") state.b = Math.min(state.b + 1, layer.images.length - 1);
    else if (need === "item") state.k = Math.min(state.k + 1, layer.items.length - 1);
    else {
      const { layers } = this.meta;
      const other = layers.slice(layer.id + 1).concat(layers.slice(0, layer.id)).find((l) => !l.error && l.grid === layer.grid);
      if (other) Object.assign(state, this.state.fresh(other));
    }
  }

  activate(index) {
    if (index === this.active) return;
    this.active = index;
    this.markActive();
    this.panel.update();
  }

  markActive() {
    this.panes.forEach((pane, k) => pane.root.classList.toggle("active", k === this.active && this.panes.length > 1));
  }

  chooseLayer(pane, name) {
    const layer = this.state.layer(name);
    if (!layer) {
      this.panel.update();
      return;
    }
    this.change(() => (this.state.panes[pane.index] = this.state.fresh(layer)), { isStep: true });
  }

  stepDate(by) {
    const pane = this.panes[this.active];
    const { layer, state } = pane;
    const need = needs(layer, state.show, this.isStatic);
    if (need === "none") return;
    const name = need === "pair" ? "b" : "k";
    const n = (need === "pair" ? layer.images : layer.items).length;
    const next = Math.min(Math.max(state[name] + by, 0), n - 1);
    if (next === state[name]) {
      this.say(by > 0 ? "this is the last one" : "this is the first one");
      return;
    }
    this.change(() => (state[name] = next));
    this.say(pane.caption.textContent);
  }

  fit() {
    const pane = this.panes[this.active];
    pane.plane.view = null;
    pane.fit();
    this.write(false);
  }

  // -- view

  moved(pane) {
    if (this.isSyncing) return;
    this.isSyncing = true;
    const [x, y, zoom] = pane.view();
    for (const other of this.panes) {
      if (other !== pane && other.map && other.layer.grid === pane.layer.grid) {
        other.goTo([x, y], zoom);
        other.drawEdges();
      }
    }
    this.isSyncing = false;
  }

  rested(pane) {
    if (this.isSyncing || pane.isFitting || !pane.picture) return;
    pane.plane.view = pane.view();
    if (this.written) this.write(false);
    if (document.body.classList.contains("by-keys")) {
      pane.tell(pane.center());
      this.say(pane.readout.textContent);
    }
    if (pane.plane.line && pane.index === this.active) this.panel.updateProfile();
  }

  pointed(pane, place) {
    pane.pointed = place;
    for (const other of this.panes) {
      if (other.layer?.grid !== pane.layer.grid) continue;
      other.tell(place);
      if (other !== pane) other.pointAt(place);
    }
  }

  painted(pane) {
    if (pane.index === this.active && pane.layer) this.panel.updatePlaces();
    pane.tell();
  }

  // -- places

  clicked(pane, place, event) {
    if (this.isDrawing) this.lineAt(pane, place);
    else if (event.shiftKey) this.setReference(pane, place);
    else this.pickAt(pane, place);
  }

  /** How far a point may be from where one clicks. */
  reach(pane) {
    if (pane.layer.kind === "raster") return 0;
    const [x0] = pane.fromMap(pane.map.containerPointToLatLng([0, 0]));
    const [x1] = pane.fromMap(pane.map.containerPointToLatLng([NEAR, 0]));
    return Math.abs(x1 - x0);
  }

  question(pane, [x, y], r, a, reach) {
    return { layer: pane.layer.id, x: x.toFixed(3), y: y.toFixed(3), r, a, reach: reach.toFixed(3) };
  }

  imageOf(pane) {
    return pane.layer.axis === "images" && pane.layer.products.phase ? pane.state.a : 0;
  }

  keyOf(layer, x, y, more) {
    return JSON.stringify([layer.id, layer.stamp, Number(x.toFixed(2)), Number(y.toFixed(2)), more]);
  }

  async pickAt(pane, place) {
    const { layer } = pane;
    const { ref } = pane.plane;
    const radius = ref ? ref[2] : this.radius;
    const image = this.imageOf(pane);
    try {
      const found = await this.ask("series", this.question(pane, place, radius, image, this.reach(pane)));
      if (pane.layer !== layer) return;
      const at = layer.kind === "raster" ? [found.x + 0.5, found.y + 0.5] : [found.x, found.y];
      this.answers.set(this.keyOf(layer, at[0], at[1]), found);
      this.constants.set(this.keyOf(layer, at[0], at[1], [radius, image]), found.ref);
      this.change(() => {
        const { picks } = pane.plane;
        const same = picks.findIndex(([x, y]) => Math.abs(x - at[0]) < 0.01 && Math.abs(y - at[1]) < 0.01);
        if (same >= 0) return;
        if (picks.length >= MOST_PICKS) picks.shift();
        picks.push(at);
      });
      pane.tell(at);
      this.say(pane.readout.textContent);
    } catch (error) {
      this.say(error.message);
    }
  }

  /** The answer for a place, or undefined while it is asked for. */
  series(pane, [x, y]) {
    const key = this.keyOf(pane.layer, x, y);
    if (!this.answers.has(key)) {
      this.answers.set(key, undefined);
      const { ref } = pane.plane;
      const reach = pane.layer.kind === "raster" ? 0 : Math.max(this.reach(pane), pane.layer.cell / 2);
      this.ask("series", this.question(pane, [x, y], ref ? ref[2] : this.radius, this.imageOf(pane), reach)).then(
        (found) => this.answers.set(key, found),
        (error) => this.answers.set(key, { error: error.message }),
      ).then(() => this.panel.updatePlaces());
    }
    return this.answers.get(key);
  }

  dropPick(index) {
    const { picks } = this.panes[this.active].plane;
    if (!picks.length) return;
    this.change(() => (index === null ? picks.splice(0) : picks.splice(index, 1)));
    this.say(index === null ? "all places dropped" : "place dropped");
  }

  // -- reference

  setReference(pane, [x, y]) {
    if (!pane.isReferenced) {
      this.say("what is shown here has no reference");
      return;
    }
    const radius = pane.plane.ref ? pane.plane.ref[2] : this.radius;
    const at = pane.layer.kind === "raster" ? [Math.floor(x) + 0.5, Math.floor(y) + 0.5] : [x, y];
    const near = pane.plane.picks.find((pick) => pane.layer.kind === "points" && Math.hypot(pick[0] - x, pick[1] - y) <= this.reach(pane));
    this.change(() => (pane.plane.ref = [...(near ?? at), radius]));
    this.say(`reference: ${placeText(pane.layer.is_map, ...at)}`);
  }

  referenceAtPick() {
    const pane = this.panes[this.active];
    const last = pane.plane.picks[pane.plane.picks.length - 1];
    if (last) this.setReference(pane, last);
    else this.say("pick a place first");
  }

  clearReference() {
    this.change(() => (this.panes[this.active].plane.ref = null));
    this.say("no reference");
  }

  /** The constants of a reference window, or undefined while they are asked for. */
  reference(layer, [x, y, r], image, then) {
    const key = this.keyOf(layer, x, y, [r, image]);
    if (!this.constants.has(key)) {
      this.constants.set(key, undefined);
      const pane = this.panes.find((found) => found.layer === layer);
      const reach = layer.kind === "raster" ? 0 : Math.max(pane.map ? this.reach(pane) : 0, layer.cell);
      this.ask("ref", this.question(pane, [x, y], r, image, reach)).then(
        (found) => {
          this.constants.set(key, found.ref);
          then();
          this.panel.update();
        },
        (error) => {
          this.constants.set(key, layer.items.map(() => null));
          this.say(`reference: ${error.message}`);
          then();
        },
      );
    }
    return this.constants.get(key);
  }

  // -- profile

  toggleLine() {
    this.isDrawing = !this.isDrawing;
    this.lineBegun = null;
    this.change(() => {});
  }

  lineAt(pane, place) {
    const [x, y] = pane.layer.kind === "raster" ? place.map((v) => Math.floor(v) + 0.5) : place;
    const begun = this.lineBegun;
    if (begun && begun.grid === pane.layer.grid) {
      this.lineBegun = null;
      this.isDrawing = false;
      this.change(() => (pane.plane.line = [begun.x, begun.y, x, y]));
      this.say("profile drawn");
    } else {
      this.lineBegun = { grid: pane.layer.grid, x, y };
      this.change(() => {});
      this.say("the profile begins here; press l where it ends");
    }
  }

  // -- around

  help() {
    document.getElementById("help").showModal();
  }

  async share() {
    const link = location.href;
    try {
      await navigator.clipboard.writeText(link);
      this.say("link copied");
    } catch {
      this.say(`the address of this page is the link`);
    }
  }

  /** Ask whether the data have been made again. */
  async changed() {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      const now = await loadMeta();
      const before = new Map(this.meta.layers.map((layer) => [layer.name, layer.stamp]));
      const differs = now.layers.filter((layer) => before.get(layer.name) !== layer.stamp || layer.error);
      if (differs.length) this.notice(`The data have changed: ${differs.map((layer) => layer.name).join(", ")}.`);
    } catch {
      this.notice("The server does not answer.");
    } finally {
      this.isAsking = false;
    }
  }

  notice(text) {
    const box = document.getElementById("notice");
    box.querySelector("span").textContent = text;
    box.hidden = false;
  }
}

async function begin() {
  const [meta] = await Promise.all([loadMeta(), loadTables()]);
  const app = new App(meta);
  if (!app.state.first()) {
    app.say(meta.layers[0]?.error ?? "there is nothing to show");
    return;
  }
  window.moraine = app; // for tests, and for the curious
  app.start();
}

begin().catch((error) => {
  console.error(error);
  document.getElementById("status").textContent = error.message;
});
