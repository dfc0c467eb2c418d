// The application: state, panes and controls, and what happens when something is done.

/** @import { Meta } from "./data.js" */
/** @import { PaneState, Place } from "./state.js" */

import { Answers, reachOf } from "./answers.js";
import { loadTables } from "./color.js";
import { $ } from "./controls.js";
import { ask, loadMeta, messageOf } from "./data.js";
import { placeText } from "./format.js";
import { Ground } from "./ground.js";
import { listen } from "./keys.js";
import { Pane } from "./pane.js";
import { Panel } from "./panel.js";
import { needs } from "./picture.js";
import { MOST_PICKS, State } from "./state.js";
import { answer } from "./static.js";
import { Swipe } from "./swipe.js";

const POLL = 30000;

export class App {
  /** @param {Meta} meta */
  constructor(meta) {
    this.meta = meta;
    this.isStatic = meta.static;
    this.state = new State(meta);
    /** @type {Pane[]} */
    this.panes = [];
    this.active = 0;
    this.radius = 2; // half window of a reference that is still to be set
    this.isDrawing = false;
    /** @type {{grid: string, x: number, y: number}|null} */
    this.lineBegun = null;
    this.written = "";
    this.isSyncing = false;
    this.isAsking = false;
    this.paneCount = /** @type {HTMLSelectElement} */ ($("pane-count"));
    this.answers = new Answers(this);
    this.ground = new Ground(this);
    this.swipe = new Swipe(this);
    this.panel = new Panel(this);
  }

  start() {
    this.read();
    listen(this);
    for (const event of ["popstate", "hashchange"]) {
      addEventListener(event, () => location.hash !== this.written && this.read());
    }
    this.paneCount.addEventListener("change", () => this.setPanes(Number(this.paneCount.value)));
    $("help-button").addEventListener("click", () => this.help());
    $("share").addEventListener("click", () => this.share());
    $("reload").addEventListener("click", () => location.reload());
    if (!this.isStatic) {
      setInterval(() => document.hidden || this.changed(), POLL);
      addEventListener("focus", () => this.changed());
    }
  }

  /** Ask the server, or find the answer in the files of an export.
   * @param {string} what @param {Record<string, string|number>} fields @returns {Promise<any>} */
  ask(what, fields) {
    return this.isStatic ? answer(this.meta, what, fields) : ask(what, fields);
  }

  /** Tell everybody, also those who do not see. @param {string|null} text */
  say(text) {
    $("status").textContent = text;
  }

  // -- state

  /** Take over what the address says. */
  read() {
    this.state.read(location.hash);
    this.matchPanes();
    this.panes.forEach((pane) => pane.update());
    this.swipe.update();
    this.panes.forEach((pane) => pane.map && pane.setView());
    this.panel.update();
    this.write(false);
  }

  /** Change the state; `isStep` makes it one to come back to.
   * @param {() => void} doIt @param {{isStep?: boolean}} options */
  change(doIt, { isStep = false } = {}) {
    doIt();
    this.panes.forEach((pane) => pane.update());
    this.swipe.update();
    this.panel.update();
    this.write(isStep);
  }

  /** @param {boolean} isStep */
  write(isStep) {
    const fragment = this.state.write();
    if (fragment !== location.hash) history[isStep ? "pushState" : "replaceState"](null, "", fragment);
    this.written = location.hash;
    const [pane] = this.state.panes;
    document.title = `${pane.layer} – moraine view`;
  }

  /** Change what the active pane shows. @param {Partial<PaneState>} values @param {{isStep?: boolean}} options */
  set(values, options = {}) {
    this.change(() => Object.assign(this.pane.state, values), options);
  }

  // -- panes

  /** The one that was touched last, whose controls are shown. */
  get pane() {
    return this.panes[this.active];
  }

  matchPanes() {
    const box = $("panes");
    while (this.panes.length > this.state.panes.length) this.panes.pop()?.remove();
    while (this.panes.length < this.state.panes.length) {
      const pane = new Pane(this.panes.length, this);
      box.append(pane.root);
      this.panes.push(pane);
    }
    box.dataset.count = String(this.panes.length);
    this.paneCount.value = String(this.panes.length);
    this.active = Math.min(this.active, this.panes.length - 1);
    this.markActive();
  }

  /** @param {number} count */
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

  /** Let a new pane show something else than the one before. @param {PaneState} state */
  suggest(state) {
    const layer = this.state.layerOf(state);
    const need = needs(layer, state.show, this.isStatic);
    if (need === "pair") state.b = Math.min(state.b + 1, layer.images.length - 1);
    else if (need === "item") state.k = Math.min(state.k + 1, layer.items.length - 1);
    else {
      const { layers } = this.meta;
      const other = layers.slice(layer.id + 1).concat(layers.slice(0, layer.id)).find((l) => !l.error && l.grid === layer.grid);
      if (other) Object.assign(state, this.state.fresh(other));
    }
  }

  /** @param {number} index */
  activate(index) {
    if (index === this.active) return;
    this.active = index;
    this.markActive();
    this.panel.update();
  }

  markActive() {
    this.panes.forEach((pane, k) => pane.root.classList.toggle("active", k === this.active && this.panes.length > 1));
  }

  /** @param {Pane} pane @param {string} name */
  chooseLayer(pane, name) {
    const layer = this.state.find(name);
    if (!layer) {
      this.panel.update();
      return;
    }
    this.change(() => (this.state.panes[pane.index] = this.state.fresh(layer)), { isStep: true });
  }

  /** @param {number} by */
  stepDate(by) {
    const pane = this.pane;
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
    const pane = this.pane;
    pane.plane.view = null;
    pane.fit();
    this.write(false);
  }

  // -- view

  /** @param {Pane} pane */
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

  /** @param {Pane} pane */
  rested(pane) {
    if (this.isSyncing || pane.isFitting || !pane.picture) return;
    pane.plane.view = pane.view();
    if (this.written) this.write(false);
    if (document.body.classList.contains("by-keys")) {
      const place = pane.center();
      const tell = () => {
        pane.tell(place);
        this.say(pane.readout.textContent);
      };
      tell();
      this.ground.rest(pane.layer, place, tell);
    }
    if (pane.plane.line && pane.index === this.active) this.panel.profile.update();
  }

  /** @param {Pane} pane @param {Place|null} place */
  pointed(pane, place) {
    pane.pointed = place;
    const others = this.panes.filter((other) => other.layer?.grid === pane.layer.grid);
    for (const other of others) {
      other.tell(place);
      if (other !== pane) other.pointAt(place);
    }
    this.ground.rest(pane.layer, place, () => others.forEach((other) => other.tell()));
  }

  /** @param {Pane} pane */
  painted(pane) {
    if (pane.index === this.active && pane.layer) this.panel.places.update();
    pane.tell();
  }

  // -- places

  /** @param {Pane} pane @param {Place} place @param {MouseEvent} event */
  clicked(pane, place, event) {
    if (this.isDrawing) this.lineAt(pane, place);
    else if (event.shiftKey) this.setReference(pane, place);
    else this.pickAt(pane, place);
  }

  /** @param {Pane} pane @param {Place} place */
  async pickAt(pane, place) {
    const { layer } = pane;
    try {
      const at = await this.answers.nearest(pane, place);
      if (pane.layer !== layer) return;
      this.change(() => {
        const { picks } = pane.plane;
        if (picks.some(([x, y]) => Math.abs(x - at[0]) < 0.01 && Math.abs(y - at[1]) < 0.01)) return;
        if (picks.length >= MOST_PICKS) picks.shift();
        picks.push(at);
      });
      pane.tell(at);
      this.say(pane.readout.textContent);
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /** @param {number|null} index from the first, or -1 for the last; null drops all */
  dropPick(index) {
    const { picks } = this.pane.plane;
    if (!picks.length) return;
    this.change(() => (index === null ? picks.splice(0) : picks.splice(index, 1)));
    this.say(index === null ? "all places dropped" : "place dropped");
  }

  // -- reference

  /** @param {Pane} pane @param {Place} place */
  setReference(pane, [x, y]) {
    if (!pane.isReferenced) {
      this.say("what is shown here has no reference");
      return;
    }
    /** @type {Place} */
    const at = pane.layer.kind === "raster" ? [Math.floor(x) + 0.5, Math.floor(y) + 0.5] : [x, y];
    const reach = reachOf(pane);
    const near = reach > 0 && pane.plane.picks.find((pick) => Math.hypot(pick[0] - x, pick[1] - y) <= reach);
    this.change(() => (pane.plane.ref = [...(near || at), this.answers.radius(pane)]));
    this.say(`reference: ${placeText(pane.layer.is_map, ...at)}`);
  }

  referenceAtPick() {
    const pane = this.pane;
    const last = pane.plane.picks[pane.plane.picks.length - 1];
    if (last) this.setReference(pane, last);
    else this.say("pick a place first");
  }

  clearReference() {
    this.change(() => (this.pane.plane.ref = null));
    this.say("no reference");
  }

  // -- profile

  toggleLine() {
    this.isDrawing = !this.isDrawing;
    this.lineBegun = null;
    this.change(() => {});
  }

  /** @param {Pane} pane @param {Place} place */
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
    /** @type {HTMLDialogElement} */ ($("help")).showModal();
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

  /** @param {string} text */
  notice(text) {
    const box = $("notice");
    box.firstElementChild?.replaceChildren(text);
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
  $("status").textContent = messageOf(error);
});
