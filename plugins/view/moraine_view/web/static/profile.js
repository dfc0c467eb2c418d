// Values along a line between two places.

/** @import { App } from "./main.js" */
/** @import { Sampled } from "./data.js" */
/** @import { Pane } from "./pane.js" */

import { $, button, labeled, wholeOf } from "./controls.js";
import { element, number } from "./format.js";
import { told, wrapped } from "./picture.js";
import { lengthOf } from "./plane.js";
import { draw, resize, save, table } from "./plots.js";

export class Profile {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Sampled|null} */
    this.found = null;
    /** @type {{head: string[], rows: (number|null)[][]}} */
    this.rows = { head: [], rows: [] };
    /** @type {string|null} */
    this.key = null;
    this.draw = button("Draw a line", () => app.toggleLine(), { ariaPressed: "false" });
    this.drop = button("Drop", () => app.change(() => (this.pane.plane.line = null)));
    this.csv = button("Save as CSV", () => this.save());
    this.width = element("input", {
      type: "number",
      min: 1,
      max: 64,
      step: 1,
      onchange: () => app.change(() => (app.state.width = wholeOf(this.width, 1, 64))),
    });
    this.widthRow = labeled("Width (samples)", this.width);
    $("profile-controls").append(
      element(
        "div",
        { className: "buttons" },
        this.draw,
        button("Begin or end at center", () => app.lineAt(this.pane, this.pane.center())),
        this.drop,
        this.csv,
      ),
      this.widthRow,
    );
    new ResizeObserver(() => resize($("profile-plot"))).observe($("side"));
  }

  get pane() {
    return this.app.pane;
  }

  update() {
    const { app, pane } = this;
    const { line } = pane.plane;
    this.draw.setAttribute("aria-pressed", String(app.isDrawing));
    $("profile-hint").textContent = app.isDrawing
      ? app.lineBegun ? "Click where the line ends." : "Click where the line begins."
      : line ? "" : "A line between two places: the button or the key l.";
    this.width.value = String(app.state.width);
    this.drop.disabled = !line;
    this.width.disabled = app.isStatic;
    this.widthRow.title = app.isStatic ? "an export has no swaths; they need the server" : "";
    const { layer, picture } = pane;
    const level = pane.level();
    const key = line && JSON.stringify([layer.id, layer.stamp, picture.product.name, picture.items, line, level, app.state.width]);
    if (key === this.key) {
      this.show();
      return;
    }
    this.key = key;
    this.found = null;
    this.show();
    if (!line) return;
    this.load(pane, line, level).then(
      (found) => {
        if (this.key !== key) return;
        this.found = found;
        this.show();
      },
      (error) => app.say(error.message),
    );
  }

  /** @param {Pane} pane @param {number[]} line @param {number} level @returns {Promise<Sampled>} */
  async load(pane, line, level) {
    const { product, items, combine } = pane.picture;
    /** @param {number} item @returns {Promise<Sampled>} */
    const ask = (item) =>
      this.app.ask("profile", {
        layer: pane.layer.id,
        product: product.name,
        item,
        level,
        line: line.map((v) => v.toFixed(3)).join(","),
        width: this.app.state.width,
      });
    const [one, two] = await Promise.all(items.map(ask));
    if (!combine) return one;
    /** @type {(a: number|null, b: number|null) => number|null} */
    const minus = (a, b) => (a === null || b === null ? null : a - b);
    return { distance: one.distance, values: one.values.map((v, k) => minus(v, two.values[k])) };
  }

  show() {
    const { found, pane } = this;
    const { layer, picture, plane } = pane;
    $("profile-details").hidden = !found;
    this.csv.disabled = !found;
    if (!found || !plane.line) {
      draw($("profile-plot"), null);
      return;
    }
    const { factor, unit } = told(layer, picture.quantity);
    const isPhase = picture.quantity === "phase";
    const values = found.values.map((v) => {
      if (v === null) return null;
      return (isPhase ? wrapped(v - pane.zero) : v - pane.zero) * factor;
    });
    /** @param {(number|null)[]} edge */
    const away = (edge) =>
      edge.map((v, k) => {
        const [own, value] = [found.values[k], values[k]];
        return v === null || own === null || value === null ? null : value + (v - own) * factor;
      });
    const band = found.low && found.high ? { low: away(found.low), high: away(found.high) } : undefined;
    const [x0, y0, x1, y1] = plane.line;
    const meters = lengthOf(layer, x1 - x0, y1 - y0);
    const pixels = Math.hypot(x1 - x0, y1 - y0);
    const x = found.distance.map((d) => (meters === null || !pixels ? d : (d * meters) / pixels));
    const along = layer.spacing?.is_ground ? "on the ground" : "in azimuth and slant range";
    const xLabel = `distance ${layer.is_map ? "on the map (m)" : meters === null ? "(pixels)" : `${along} (m)`}`;
    const yLabel = `${isPhase ? "phase" : layer.name}${unit ? ` (${unit})` : ""}`;
    draw($("profile-plot"), {
      x,
      isTime: false,
      xLabel,
      yLabel,
      isJoined: !isPhase,
      band,
      columns: [{ name: yLabel, values, mark: isPhase ? 0 : -1 }],
      label: `Profile of ${values.length} samples; the values are in the table below.`,
    });
    this.rows = {
      head: [xLabel, yLabel, ...(band ? ["lower quartile", "upper quartile"] : [])],
      rows: x.map((d, k) => [d, values[k], ...(band ? [band.low[k], band.high[k]] : [])]),
    };
    $("profile-table").replaceChildren(table(this.rows.head, this.rows.rows.map((row) => row.map((v) => number(v, 5)))));
  }

  save() {
    save(`${this.pane.layer.name}-profile.csv`, this.rows.head, this.rows.rows);
  }
}
