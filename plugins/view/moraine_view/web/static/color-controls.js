// Which value has which color: limits, table, cycle.

/** @import { App } from "./main.js" */

import { TABLES } from "./color.js";
import { $, button, check, choice, fill, labeled, relabel, show } from "./controls.js";
import { element } from "./format.js";
import { limits, needs, told } from "./picture.js";

/** A field for a number. @param {() => void} onchange */
function entry(onchange) {
  return element("input", { type: "text", inputMode: "decimal", size: 8, autocomplete: "off", onchange });
}

export class ColorControls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.low = entry(() => this.setLimits());
    this.high = entry(() => this.setLimits());
    this.rowLow = labeled("Lowest", this.low);
    this.rowHigh = labeled("Highest", this.high);
    this.limits = element("div", { className: "pair" }, this.rowLow, this.rowHigh);
    this.usual = button("1–99 %", () => app.set({ lim: "auto" }));
    this.symmetric = button("Symmetric", () => this.setSymmetric());
    this.full = button("Full range", () => app.set({ lim: "full" }));
    this.buttons = element(
      "div",
      { className: "buttons", role: "group", ariaLabel: "Limits" },
      this.usual,
      button("2–98 % of the view", () => this.setToView()),
      this.symmetric,
      this.full,
    );
    this.lock = check("same limits for all images", (isOn) => app.set({ lock: isOn }));
    this.wrap = entry(() => this.setWrap());
    this.rowWrap = labeled("Repeat every", this.wrap);
    this.table = choice((name) => app.set({ cm: name }));
    fill(this.table, [["auto", "what suits the data"], ...TABLES], "auto");
    this.reversed = check("reversed", (isOn) => app.set({ rev: isOn }));
    $("color-controls").append(
      this.limits,
      this.buttons,
      this.lock.row,
      this.rowWrap,
      labeled("Table", this.table),
      this.reversed.row,
    );
  }

  get told() {
    return told(this.app.pane.layer, this.app.pane.picture.quantity);
  }

  setLimits() {
    const [low, high] = [this.low, this.high].map((input) => Number(input.value.replace("−", "-") || "none") / this.told.factor);
    const isRight = Number.isFinite(low) && Number.isFinite(high) && low < high;
    for (const input of [this.low, this.high]) input.setAttribute("aria-invalid", String(!isRight));
    if (isRight) this.app.set({ lim: [low, high] });
    else this.app.say("limits: two numbers, the lower one first");
  }

  setToView() {
    const found = this.app.pane.percentiles(0.02, 0.98);
    if (found && found[0] < found[1]) {
      const [low, high] = found.map((v) => Number(v.toPrecision(4)));
      this.app.set({ lim: [low, high] });
    } else this.app.say("nothing is seen whose limits could be taken");
  }

  setSymmetric() {
    const { low, high } = this.app.pane.coloring;
    const most = Math.max(Math.abs(low), Math.abs(high));
    this.app.set({ lim: [-most, most] });
  }

  setWrap() {
    const value = Number(this.wrap.value) / this.told.factor;
    this.app.set({ wrap: value > 0 && Number.isFinite(value) ? value : 0 });
  }

  update() {
    const { layer, state, picture, constants } = this.app.pane;
    const { quantity } = picture;
    const isPhase = quantity === "phase";
    this.limits.hidden = this.buttons.hidden = isPhase || state.wrap > 0;
    this.rowWrap.hidden = !["value", "difference"].includes(quantity) || layer.dtype === "bool";
    const isItem = needs(layer, state.show, this.app.isStatic) === "item";
    this.lock.row.hidden = isPhase || !isItem || !layer.item_percentiles.length;
    this.lock.box.checked = state.lock;
    const { factor, unit } = this.told;
    /** @param {number} v */
    const text = (v) => String(Number((v * factor).toPrecision(5)));
    const [low, high] = limits(layer, state, picture, constants);
    show(this.low, text(low));
    show(this.high, text(high));
    for (const input of [this.low, this.high]) input.setAttribute("aria-invalid", "false");
    const suffix = unit ? ` (${unit})` : "";
    relabel(this.rowLow, `Lowest${suffix}`);
    relabel(this.rowHigh, `Highest${suffix}`);
    relabel(this.rowWrap, `Repeat every${suffix || " (0: not)"}`);
    show(this.wrap, state.wrap > 0 ? text(state.wrap) : "0");
    this.usual.setAttribute("aria-pressed", String(state.lim === "auto"));
    this.full.setAttribute("aria-pressed", String(state.lim === "full"));
    this.symmetric.disabled = quantity === "share" || quantity === "decibel";
    this.table.value = state.cm;
    this.reversed.box.checked = state.rev;
  }
}
