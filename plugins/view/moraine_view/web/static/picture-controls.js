// What is shown: layer, kind of picture, images, looks, and how high lines are.

/** @import { App } from "./main.js" */
/** @import { PaneState } from "./state.js" */

import { $, button, check, choice, fill, labeled, relabel, show } from "./controls.js";
import { element, number } from "./format.js";
import { looksOf, needs, shows } from "./picture.js";
import { rangeName } from "./plane.js";

export class PictureControls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @param {Partial<PaneState>} values */
    const set = (values) => app.set(values, { isStep: true });
    this.layer = choice((name) => app.chooseLayer(app.pane, name));
    this.show = choice((name) => set({ show: /** @type {PaneState["show"]} */ (name) }));
    this.a = choice((k) => set({ a: Number(k) }));
    this.b = choice((k) => set({ b: Number(k) }));
    this.k = choice((k) => set({ k: Number(k) }));
    this.looks = choice((n) => set({ looks: Number(n) }));
    /** @param {string} what */
    const steps = (what) => [
      button("‹", () => app.stepDate(-1), { title: "earlier ( [ )", ariaLabel: `earlier ${what}` }),
      button("›", () => app.stepDate(1), { title: "later ( ] )", ariaLabel: `later ${what}` }),
    ];
    this.rowA = labeled("Reference image", this.a);
    this.rowB = labeled("Secondary image", this.b, ...steps("secondary image"));
    this.rowK = labeled("Image", this.k, ...steps("image"));
    this.rowLooks = labeled("Looks", this.looks);
    this.whyTrue = element("p", { className: "why", id: "why-aspect" });
    this.isTrue = check("true aspect", (isOn) =>
      app.change(() => (app.pane.plane.aspect = isOn ? "true" : 1), { isStep: true }),
    );
    this.isTrue.box.setAttribute("aria-describedby", "why-aspect");
    this.rowTrue = element("div", {}, this.isTrue.row, this.whyTrue);
    this.aspect = element("input", { type: "number", min: 0.1, max: 20, step: 0.1, onchange: () => this.setAspect() });
    this.rowAspect = labeled("Line height (pixel widths)", this.aspect);
    $("picture-controls").append(
      labeled("Layer", this.layer),
      labeled("Show", this.show),
      this.rowA,
      this.rowB,
      this.rowK,
      this.rowLooks,
      this.rowTrue,
      this.rowAspect,
      element("div", { className: "buttons" }, button("Show everything", () => app.fit())),
    );
  }

  setAspect() {
    const { app } = this;
    const aspect = Number(this.aspect.value);
    if (aspect >= 0.1 && aspect <= 20) app.change(() => (app.pane.plane.aspect = aspect));
    else app.say("line height: a number from 0.1 to 20");
  }

  update() {
    const { meta, isStatic, pane } = this.app;
    const { layer, state } = pane;
    const layers = meta.layers.map(({ name, error }) => [name, error ? `${name} (${error})` : name]);
    fill(this.layer, layers, state.layer);
    fill(this.show, shows(layer, isStatic).map(([name, text]) => [name, text]), state.show);
    /** @param {string[]} texts */
    const numbered = (texts) => texts.map((text, k) => [String(k), text]);
    fill(this.a, numbered(layer.images), state.a);
    fill(this.b, numbered(layer.images), state.b);
    fill(this.k, numbered(layer.items), state.k);
    const need = needs(layer, state.show, isStatic);
    this.rowA.hidden = this.rowB.hidden = need !== "pair";
    this.rowK.hidden = need !== "item";
    relabel(this.rowA, state.show === "diff" ? "First image" : "Reference image");
    relabel(this.rowB, state.show === "diff" ? "Second image" : "Secondary image");
    relabel(this.rowK, { pairs: "Image pair", images: "Image", other: "Item", none: "Item" }[layer.axis]);
    const looks = isStatic ? [1] : looksOf(layer);
    fill(this.looks, looks.map((n) => [String(n), n === 1 ? "1 (no averaging)" : `${n} × ${n}`]), state.looks);
    this.rowLooks.hidden = state.show !== "intf" || (looks.length < 2 && !isStatic);
    this.looks.disabled = isStatic;
    this.rowLooks.title = isStatic ? "an export has no looks: averaging phases would be wrong" : "";
    this.updateAspect();
  }

  updateAspect() {
    const { layer, plane, aspect } = this.app.pane;
    const { spacing } = layer;
    this.rowAspect.hidden = this.rowTrue.hidden = layer.is_map;
    this.isTrue.box.disabled = !spacing;
    this.isTrue.box.checked = plane.aspect === "true";
    this.whyTrue.textContent = spacing
      ? `pixels of ${number(spacing.azimuth, 3)} m in azimuth, ${number(spacing.range, 3)} m in ${rangeName(layer)}`
      : layer.no_spacing;
    this.aspect.disabled = plane.aspect === "true";
    show(this.aspect, String(Number(aspect.toFixed(3))));
  }
}
