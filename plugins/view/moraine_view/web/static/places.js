// Places that were picked: a list, and their series as a plot, a table and a file.

/** @import { App } from "./main.js" */
/** @import { Series } from "./data.js" */
/** @import { Column } from "./plots.js" */

import { $, button } from "./controls.js";
import { element, number } from "./format.js";
import { markOf } from "./marks.js";
import { told, wrapped } from "./picture.js";
import { draw, resize, save, table } from "./plots.js";

/** @typedef {{x: number[], names: string[], isTime: boolean, xLabel: string, yLabel: string, isJoined: boolean,
 *   columns: Column[]}} Rows */

export class Places {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.csv = button("Save as CSV", () => this.save());
    this.clear = button("Drop all", () => app.dropPick(null));
    /** @type {Rows|null} */
    this.rows = null;
    $("places-buttons").append(
      button("Pick at center", () => app.pickAt(this.pane, this.pane.center())),
      this.csv,
      this.clear,
    );
    new ResizeObserver(() => resize($("series-plot"))).observe($("side"));
  }

  get pane() {
    return this.app.pane;
  }

  update() {
    const { app, pane } = this;
    const { picks } = pane.plane;
    $("places-hint").textContent = picks.length ? "" : "Click into the picture, or press Enter in it.";
    const found = picks.map((pick) => app.answers.series(pane, pick, () => this.update()));
    $("places").replaceChildren(...picks.map((pick, k) => this.entry(pick, k, found[k]?.error)));
    const isFound = () => {
      this.update();
      pane.tell();
    };
    for (const pick of picks) app.ground.find(pane.layer, pick, isFound);
    this.rows = this.seriesOf(found);
    const plot = this.rows && { ...this.rows, label: `Series of ${picks.length} places; the values are in the table below.` };
    draw($("series-plot"), plot && plot.x.length > 1 ? plot : null);
    $("series-details").hidden = !plot;
    this.csv.disabled = !plot;
    this.clear.disabled = !picks.length;
    if (plot) {
      const head = [plot.xLabel, ...plot.columns.map((c) => c.name)];
      const rows = plot.names.map((name, i) => [name, ...plot.columns.map((c) => number(c.values[i], 5))]);
      $("series-table").replaceChildren(table(head, rows));
    }
  }

  /** @param {[number, number]} place @param {number} k @param {string} [error] */
  entry([x, y], k, error) {
    const text = this.pane.placeText(x, y);
    const value = error ?? this.pane.valueText(x, y);
    return element(
      "li",
      {},
      markOf(k),
      element("span", {}, `${text}${value ? `: ${value}` : ""}`),
      button("×", () => this.app.dropPick(k), { ariaLabel: `Drop the place at ${text}` }),
    );
  }

  /** Series of the places in what the active pane shows, in its unit and relative to its reference.
   * @param {(Series|undefined)[]} found @returns {Rows|null} */
  seriesOf(found) {
    const { pane } = this;
    const { layer, state } = pane;
    /** @type {Column[]} */
    const columns = found.flatMap((answer, k) =>
      answer?.ref ? [{ name: pane.placeText(...pane.plane.picks[k]), values: this.valuesOf(answer), mark: k }] : [],
    );
    if (!columns.length) return null;
    const { unit } = told(layer, pane.picture.quantity);
    const isPhase = pane.picture.quantity === "phase";
    const dates = layer.axis === "images" && layer.dates.length ? layer.dates.map(seconds) : null;
    const isTime = Boolean(dates?.every(Number.isFinite));
    const kinds = { intf: `phase to ${layer.images[state.a]}`, diff: `${layer.images[state.a]} minus image` };
    const what = state.show === "intf" || state.show === "diff" ? kinds[state.show] : isPhase ? "phase" : layer.name;
    return {
      x: dates && isTime ? dates : layer.items.map((_, k) => k),
      names: layer.items.map((text) => text || "value"),
      isTime,
      xLabel: isTime ? "date" : layer.axis === "pairs" ? "image pair" : "image",
      yLabel: `${what}${unit ? ` (${unit})` : ""}`,
      isJoined: !isPhase,
      columns,
    };
  }

  /** @param {Series} answer @returns {(number|null)[]} */
  valuesOf({ values, phase = [], amplitude = [] }) {
    const { layer, state, constants, picture } = this.pane;
    /** @param {number} k */
    const at = (k) => constants?.[k] ?? 0;
    if (values) {
      const { factor } = told(layer, picture.quantity);
      if (state.show !== "diff") return values.map((v, k) => (v === null ? null : (v - at(k)) * factor));
      const first = values[state.a];
      return values.map((v, k) => (v === null || first === null ? null : (first - v - (at(state.a) - at(k))) * factor));
    }
    if (state.show === "amp") return amplitude.map((v) => (v !== null && v > 0 ? 20 * Math.log10(v) : null));
    if (state.show === "coh_abs") return amplitude;
    if (state.show === "intf") {
      const first = phase[state.a];
      return phase.map((v, k) => (v === null || first === null ? null : wrapped(first - v - at(k))));
    }
    return phase.map((v, k) => (v === null ? null : wrapped(v - (state.show === "coh" ? at(k) : 0))));
  }

  save() {
    const { rows, pane } = this;
    if (!rows) return;
    const { ref } = pane.plane;
    const reference = ref && pane.constants ? `reference ${pane.placeText(ref[0], ref[1])} ± ${ref[2]}` : "no reference";
    save(
      `${pane.layer.name}-series.csv`,
      [rows.xLabel, ...rows.columns.map((c) => `${c.name}; ${rows.yLabel}; ${reference}`)],
      rows.names.map((name, i) => [name, ...rows.columns.map((c) => c.values[i])]),
    );
  }
}

/** Seconds since 1970 of YYYYMMDD. @param {string} date */
function seconds(date) {
  const found = /^(\d{4})(\d{2})(\d{2})$/.exec(date);
  return found ? Date.UTC(Number(found[1]), Number(found[2]) - 1, Number(found[3])) / 1000 : Number.NaN;
}
