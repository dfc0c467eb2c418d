// The controls beside the pictures: native ones, each with a label, for the pane that is active.

import { TABLES } from "./color.js";
import { element, number, placeText } from "./format.js";
import { markOf } from "./pane.js";
import { limits, looksOf, needs, shows, told } from "./picture.js";
import { draw, resize, save, table } from "./plots.js";

const $ = (id) => document.getElementById(id);

let serial = 0;

function labeled(text, control, ...more) {
  control.id ||= `control-${(serial += 1)}`;
  return element("div", { className: "row" }, element("label", { htmlFor: control.id }, text), control, ...more);
}

function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

function fill(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...options.map(([name, text]) => element("option", { value: name }, text)));
  }
  select.value = String(value);
}

export class Panel {
  constructor(app) {
    this.app = app;
    this.makePicture();
    this.makeColors();
    this.makeReference();
    this.makePlaces();
    this.makeProfile();
    new ResizeObserver(() => [$("series-plot"), $("profile-plot")].forEach(resize)).observe($("side"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.update());
    addEventListener("beforeprint", () => this.update());
  }

  get pane() {
    return this.app.panes[this.app.active];
  }

  set(values, options) {
    this.app.change(() => Object.assign(this.pane.state, values), options);
  }

  makePicture() {
    const choice = (name, isNumber = true) =>
      element("select", { onchange: (event) => this.set({ [name]: isNumber ? Number(event.target.value) : event.target.value }, { isStep: true }) });
    this.layer = element("select", { onchange: (event) => this.app.chooseLayer(this.pane, event.target.value) });
    this.show = choice("show", false);
    this.a = choice("a");
    this.b = choice("b");
    this.k = choice("k");
    this.looks = choice("looks");
    const steps = (what) => [
      button("‹", () => this.app.stepDate(-1), { title: "earlier ( [ )", ariaLabel: `earlier ${what}` }),
      button("›", () => this.app.stepDate(1), { title: "later ( ] )", ariaLabel: `later ${what}` }),
    ];
    this.rowA = labeled("Reference image", this.a);
    this.rowB = labeled("Secondary image", this.b, ...steps("secondary image"));
    this.rowK = labeled("Image", this.k, ...steps("image"));
    this.rowLooks = labeled("Looks", this.looks);
    this.aspect = element("input", {
      type: "number",
      min: 0.1,
      max: 20,
      step: 0.1,
      onchange: (event) => {
        const aspect = Number(event.target.value);
        if (aspect >= 0.1 && aspect <= 20) this.app.change(() => (this.pane.plane.aspect = aspect));
        else this.app.say("line height: a number from 0.1 to 20");
      },
    });
    this.rowAspect = labeled("Line height (pixel widths)", this.aspect);
    $("picture-controls").append(
      labeled("Layer", this.layer),
      labeled("Show", this.show),
      this.rowA,
      this.rowB,
      this.rowK,
      this.rowLooks,
      this.rowAspect,
      element("div", { className: "buttons" }, button("Show everything", () => this.app.fit())),
    );
  }

  makeColors() {
    const typed = () => {
      const { factor } = told(this.pane.layer, this.pane.picture.quantity);
      const pair = [this.low, this.high].map((input) => Number(input.value.replace("−", "-")) / factor);
      const isRight = this.low.value !== "" && this.high.value !== "" && pair.every(Number.isFinite) && pair[0] < pair[1];
      for (const input of [this.low, this.high]) input.setAttribute("aria-invalid", String(!isRight));
      if (isRight) this.set({ lim: pair });
      else this.app.say("limits: two numbers, the lower one first");
    };
    const entry = (onchange) => element("input", { type: "text", inputMode: "decimal", size: 8, autocomplete: "off", onchange });
    this.low = entry(typed);
    this.high = entry(typed);
    this.limitRow = element(
      "div",
      { className: "pair" },
      labeled("Lowest", this.low),
      labeled("Highest", this.high),
    );
    this.limitButtons = element(
      "div",
      { className: "buttons", role: "group", ariaLabel: "Limits" },
      button("1–99 %", () => this.set({ lim: "auto" })),
      button("2–98 % of the view", () => this.viewLimits()),
      button("Symmetric", () => this.symmetric()),
      button("Full range", () => this.set({ lim: "full" })),
    );
    this.lock = element("input", { type: "checkbox", onchange: (event) => this.set({ lock: event.target.checked }) });
    this.lockRow = element("label", { className: "check" }, this.lock, " same limits for all images");
    this.table = element("select", { onchange: (event) => this.set({ cm: event.target.value }) });
    fill(this.table, [["auto", "what suits the data"], ...TABLES], "auto");
    this.rev = element("input", { type: "checkbox", onchange: (event) => this.set({ rev: event.target.checked }) });
    this.wrap = entry((event) => {
      const { factor } = told(this.pane.layer, this.pane.picture.quantity);
      const value = Number(event.target.value) / factor;
      this.set({ wrap: value > 0 && Number.isFinite(value) ? value : 0 });
    });
    this.wrapRow = labeled("Repeat every", this.wrap);
    $("color-controls").append(
      this.limitRow,
      this.limitButtons,
      this.lockRow,
      this.wrapRow,
      labeled("Table", this.table),
      element("label", { className: "check" }, this.rev, " reversed"),
    );
  }

  viewLimits() {
    const found = this.pane.percentiles(0.02, 0.98);
    if (found && found[0] < found[1]) this.set({ lim: found.map((v) => Number(v.toPrecision(4))) });
    else this.app.say("nothing is seen whose limits could be taken");
  }

  symmetric() {
    const { low, high } = this.pane.coloring;
    const most = Math.max(Math.abs(low), Math.abs(high));
    this.set({ lim: [-most, most] });
  }

  makeReference() {
    this.radius = element("input", {
      type: "number",
      min: 0,
      max: 32,
      step: 1,
      onchange: (event) => {
        const radius = Math.min(Math.max(Math.round(Number(event.target.value) || 0), 0), 32);
        this.app.radius = radius;
        this.app.change(() => {
          if (this.pane.plane.ref) this.pane.plane.ref = [...this.pane.plane.ref.slice(0, 2), radius];
        });
      },
    });
    $("reference-controls").append(
      labeled("Half window (pixels)", this.radius),
      element(
        "div",
        { className: "buttons" },
        button("Set at last place", () => this.app.referenceAtPick()),
        button("Set at center", () => this.app.setReference(this.pane, this.pane.center())),
        button("No reference", () => this.app.clearReference()),
      ),
    );
  }

  makePlaces() {
    $("places-buttons").append(
      button("Pick at center", () => this.app.pickAt(this.pane, this.pane.center())),
      (this.csv = button("Save as CSV", () => this.saveSeries())),
      (this.clear = button("Drop all", () => this.app.dropPick(null))),
    );
  }

  makeProfile() {
    this.draw = button("Draw a line", () => this.app.toggleLine(), { ariaPressed: "false" });
    this.width = element("input", {
      type: "number",
      min: 1,
      max: 64,
      step: 1,
      onchange: (event) => this.app.change(() => (this.app.state.width = Math.min(Math.max(Math.round(Number(event.target.value) || 1), 1), 64))),
    });
    this.widthRow = labeled("Width (samples)", this.width);
    $("profile-controls").append(
      element(
        "div",
        { className: "buttons" },
        this.draw,
        button("Begin or end at center", () => this.app.lineAt(this.pane, this.pane.center())),
        (this.dropLine = button("Drop", () => this.app.change(() => (this.pane.plane.line = null)))),
        (this.profileCsv = button("Save as CSV", () => this.saveProfile())),
      ),
      this.widthRow,
    );
  }

  // -- bring everything up to date

  update() {
    const { app, pane } = this;
    const { layer, state } = pane;
    if (!layer || !pane.picture) return;
    $("which-pane").textContent = app.panes.length > 1 ? ` in pane ${app.active + 1}` : "";
    fill(this.layer, app.meta.layers.map((found) => [found.name, found.error ? `${found.name} (${found.error})` : found.name]), state.layer);
    fill(this.show, shows(layer, app.isStatic).map(([name, text]) => [name, text]), state.show);
    const need = needs(layer, state.show, app.isStatic);
    const images = layer.images.map((text, k) => [String(k), text]);
    fill(this.a, images, state.a);
    fill(this.b, images, state.b);
    fill(this.k, layer.items.map((text, k) => [String(k), text]), state.k);
    this.rowA.hidden = this.rowB.hidden = need !== "pair";
    this.rowA.firstChild.textContent = state.show === "diff" ? "First image" : "Reference image";
    this.rowB.firstChild.textContent = state.show === "diff" ? "Second image" : "Secondary image";
    this.rowK.hidden = need !== "item";
    this.rowK.firstChild.textContent = layer.axis === "pairs" ? "Image pair" : layer.axis === "images" ? "Image" : "Item";
    fill(this.looks, (app.isStatic ? [1] : looksOf(layer)).map((n) => [String(n), n === 1 ? "1 (no averaging)" : `${n} × ${n}`]), state.looks);
    this.rowLooks.hidden = state.show !== "intf" || (looksOf(layer).length < 2 && !app.isStatic);
    this.looks.disabled = app.isStatic;
    this.rowLooks.title = app.isStatic ? "an export has no looks: averaging phases would be wrong" : "";
    this.rowAspect.hidden = layer.is_map;
    if (document.activeElement !== this.aspect) this.aspect.value = String(pane.plane.aspect);
    this.updateColors(pane, layer, state, need);
    this.updateReference(pane);
    this.updatePlaces();
    this.updateProfile();
  }

  updateColors(pane, layer, state, need) {
    const { quantity } = pane.picture;
    const isPhase = quantity === "phase";
    this.limitRow.hidden = this.limitButtons.hidden = isPhase || state.wrap > 0;
    this.wrapRow.hidden = !["value", "difference"].includes(quantity) || layer.dtype === "bool";
    this.lockRow.hidden = isPhase || need !== "item" || !layer.item_percentiles.length;
    this.lock.checked = state.lock;
    const { factor, unit } = told(layer, quantity);
    const [low, high] = limits(layer, state, pane.picture, pane.constants);
    const show = (v) => String(Number((v * factor).toPrecision(5)));
    if (document.activeElement !== this.low) this.low.value = show(low);
    if (document.activeElement !== this.high) this.high.value = show(high);
    for (const input of [this.low, this.high]) input.setAttribute("aria-invalid", "false");
    const suffix = unit ? ` (${unit})` : "";
    this.limitRow.children[0].firstChild.textContent = `Lowest${suffix}`;
    this.limitRow.children[1].firstChild.textContent = `Highest${suffix}`;
    this.wrapRow.firstChild.textContent = `Repeat every${suffix || " (0: not)"}`;
    if (document.activeElement !== this.wrap) this.wrap.value = state.wrap > 0 ? show(state.wrap) : "0";
    const [lower, , symmetric, full] = this.limitButtons.children;
    lower.setAttribute("aria-pressed", String(state.lim === "auto"));
    full.setAttribute("aria-pressed", String(state.lim === "full"));
    symmetric.disabled = quantity === "share" || quantity === "decibel";
    this.table.value = state.cm;
    this.rev.checked = state.rev;
  }

  updateReference(pane) {
    const { ref } = pane.plane;
    $("reference-text").textContent = ref
      ? `${placeText(pane.layer.is_map, ref[0], ref[1])}, window of ${2 * ref[2] + 1} × ${2 * ref[2] + 1}`
      : "None: values are as in the data.";
    if (document.activeElement !== this.radius) this.radius.value = String(ref ? ref[2] : this.app.radius);
  }

  // -- places

  updatePlaces() {
    const { app, pane } = this;
    const { picks } = pane.plane;
    $("places-hint").textContent = picks.length ? "" : "Click into the picture, or press Enter in it.";
    const found = picks.map((pick) => app.series(pane, pick));
    $("places").replaceChildren(
      ...picks.map(([x, y], k) => {
        const text = placeText(pane.layer.is_map, x, y);
        const value = found[k]?.error ?? pane.valueText(x, y);
        return element(
          "li",
          {},
          markOf(k),
          element("span", {}, `${text}${value ? `: ${value}` : ""}`),
          button("×", () => app.dropPick(k), { ariaLabel: `Drop the place at ${text}` }),
        );
      }),
    );
    this.rows = this.seriesOf(found);
    const plot = this.rows && {
      ...this.rows,
      label: `Series of ${picks.length} places; the values are in the table below.`,
    };
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

  /** Series of the places in what the active pane shows, in its unit and relative to its reference. */
  seriesOf(found) {
    const { pane } = this;
    const { layer, state, constants } = pane;
    const known = found.map((answer, k) => [answer, k]).filter(([answer]) => answer?.ref);
    if (!known.length) return null;
    const { factor, unit } = told(layer, pane.picture.quantity);
    const wrapped = (v) => v - 2 * Math.PI * Math.round(v / (2 * Math.PI));
    const at = (k) => constants?.[k] ?? 0;
    const values = (answer) => {
      if (answer.values) {
        const zero = state.show === "diff" ? answer.values[state.a] : 0;
        const shift = (k) => (state.show === "diff" ? at(state.a) - at(k) : at(k));
        return answer.values.map((v, k) => {
          if (v === null || zero === null) return null;
          return ((state.show === "diff" ? zero - v : v) - shift(k)) * factor;
        });
      }
      if (state.show === "amp") return answer.amplitude.map((v) => (v > 0 ? 20 * Math.log10(v) : null));
      if (state.show === "coh_abs") return answer.amplitude;
      if (state.show === "intf") {
        const first = answer.phase[state.a];
        return answer.phase.map((v, k) => (v === null || first === null ? null : wrapped(first - v - at(k))));
      }
      return answer.phase.map((v, k) => (v === null ? null : wrapped(v - (state.show === "coh" ? at(k) : 0))));
    };
    const isPhase = pane.picture.quantity === "phase";
    const dates = layer.axis === "images" && layer.dates.length ? layer.dates.map(seconds) : null;
    const isTime = Boolean(dates?.every(Number.isFinite));
    const what = { intf: `phase to ${layer.images[state.a]}`, diff: `${layer.images[state.a]} minus image` }[state.show] ?? "value";
    return {
      x: isTime ? dates : layer.items.map((_, k) => k),
      names: layer.items.map((text) => text || "value"),
      isTime,
      xLabel: isTime ? "date" : layer.axis === "pairs" ? "image pair" : "image",
      yLabel: `${isPhase ? (state.show === "intf" ? what : "phase") : state.show === "diff" ? what : layer.name}${unit ? ` (${unit})` : ""}`,
      isJoined: !isPhase,
      columns: known.map(([answer, k]) => ({
        name: placeText(layer.is_map, ...pane.plane.picks[k]),
        values: values(answer),
        mark: k,
      })),
    };
  }

  saveSeries() {
    const { rows, pane } = this;
    const { ref } = pane.plane;
    const unit = rows.yLabel;
    const reference = ref && pane.constants ? `reference ${placeText(pane.layer.is_map, ref[0], ref[1])} ± ${ref[2]}` : "no reference";
    save(`${pane.layer.name}-series.csv`, [rows.xLabel, ...rows.columns.map((c) => `${c.name}; ${unit}; ${reference}`)],
      rows.names.map((name, i) => [name, ...rows.columns.map((c) => c.values[i])]));
  }

  // -- profile

  updateProfile() {
    const { app, pane } = this;
    const { line } = pane.plane;
    this.draw.setAttribute("aria-pressed", String(app.isDrawing));
    $("profile-hint").textContent = app.isDrawing
      ? app.lineBegun ? "Click where the line ends." : "Click where the line begins."
      : line ? "" : "A line between two places: the button or the key l.";
    this.width.value = String(app.state.width);
    this.dropLine.disabled = !line;
    this.width.disabled = app.isStatic;
    this.widthRow.title = app.isStatic ? "an export has no swaths; they need the server" : "";
    const { layer, picture } = pane;
    const level = pane.level();
    const key = line && JSON.stringify([layer.id, layer.stamp, picture.product.name, picture.items, line, level, app.state.width]);
    if (key === this.profileKey) {
      this.showProfile();
      return;
    }
    this.profileKey = key;
    this.profile = null;
    this.showProfile();
    if (!line) return;
    this.loadProfile(pane, line, level).then(
      (found) => {
        if (this.profileKey !== key) return;
        this.profile = found;
        this.showProfile();
      },
      (error) => app.say(error.message),
    );
  }

  async loadProfile(pane, line, level) {
    const { product, items, combine } = pane.picture;
    const question = (item) =>
      this.app.ask("profile", { layer: pane.layer.id, product: product.name, item, level, line: line.map((v) => v.toFixed(3)).join(","), width: this.app.state.width });
    const found = await Promise.all(items.map(question));
    if (!combine) return found[0];
    const [one, two] = found;
    return { distance: one.distance, values: one.values.map((v, k) => (v === null || two.values[k] === null ? null : v - two.values[k])) };
  }

  showProfile() {
    const { profile, pane } = this;
    const { layer, picture } = pane;
    $("profile-details").hidden = !profile;
    this.profileCsv.disabled = !profile;
    if (!profile) {
      draw($("profile-plot"), null);
      return;
    }
    const { factor, unit } = told(layer, picture.quantity);
    const isPhase = picture.quantity === "phase";
    const told_ = (v) => {
      if (v === null) return null;
      const value = v - pane.zero;
      return (isPhase ? value - 2 * Math.PI * Math.round(value / (2 * Math.PI)) : value) * factor;
    };
    const values = profile.values.map(told_);
    const away = (edge) => edge?.map((v, k) => (v === null ? null : values[k] + (v - profile.values[k]) * factor));
    const band = profile.low && { low: away(profile.low), high: away(profile.high) };
    const xLabel = layer.is_map ? "distance on the map (m)" : "distance (pixels)";
    const yLabel = `${isPhase ? "phase" : layer.name}${unit ? ` (${unit})` : ""}`;
    draw($("profile-plot"), {
      x: profile.distance, isTime: false, xLabel, yLabel, isJoined: !isPhase, band,
      columns: [{ name: yLabel, values, mark: isPhase ? 0 : -1 }],
      label: `Profile of ${values.length} samples; the values are in the table below.`,
    });
    this.profileRows = {
      head: [xLabel, yLabel, ...(band ? ["lower quartile", "upper quartile"] : [])],
      rows: profile.distance.map((d, k) => [d, values[k], ...(band ? [band.low[k], band.high[k]] : [])]),
    };
    $("profile-table").replaceChildren(
      table(this.profileRows.head, this.profileRows.rows.map((row) => row.map((v) => number(v, 5)))),
    );
  }

  saveProfile() {
    save(`${this.pane.layer.name}-profile.csv`, this.profileRows.head, this.profileRows.rows);
  }
}

function seconds(date) {
  const found = /^(\d{4})(\d{2})(\d{2})$/.exec(date);
  return found ? Date.UTC(Number(found[1]), Number(found[2]) - 1, Number(found[3])) / 1000 : Number.NaN;
}
