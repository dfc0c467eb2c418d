// What lies beside the pictures, for the pane that is active.

/** @import { App } from "./main.js" */

import { ColorControls } from "./color-controls.js";
import { $, button, labeled, show, wholeOf } from "./controls.js";
import { element, placeText } from "./format.js";
import { PictureControls } from "./picture-controls.js";
import { Places } from "./places.js";
import { Profile } from "./profile.js";

export class Panel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.picture = new PictureControls(app);
    this.colors = new ColorControls(app);
    this.reference = new ReferenceControls(app);
    this.places = new Places(app);
    this.profile = new Profile(app);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.update());
    addEventListener("beforeprint", () => this.update());
  }

  /** Bring everything up to date. */
  update() {
    const { panes, active } = this.app;
    if (!panes[active].picture) return;
    $("which-pane").textContent = panes.length > 1 ? ` in pane ${active + 1}` : "";
    for (const part of [this.picture, this.colors, this.reference, this.places, this.profile]) part.update();
  }
}

class ReferenceControls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.radius = element("input", { type: "number", min: 0, max: 32, step: 1, onchange: () => this.setRadius() });
    $("reference-controls").append(
      labeled("Half window (pixels)", this.radius),
      element(
        "div",
        { className: "buttons" },
        button("Set at last place", () => app.referenceAtPick()),
        button("Set at center", () => app.setReference(app.pane, app.pane.center())),
        button("No reference", () => app.clearReference()),
      ),
    );
  }

  setRadius() {
    const { app } = this;
    app.radius = wholeOf(this.radius, 0, 32);
    app.change(() => {
      const { plane } = app.pane;
      if (plane.ref) plane.ref = [plane.ref[0], plane.ref[1], app.radius];
    });
  }

  update() {
    const { layer, plane } = this.app.pane;
    const side = plane.ref && 2 * plane.ref[2] + 1;
    $("reference-text").textContent = plane.ref
      ? `${placeText(layer.is_map, plane.ref[0], plane.ref[1])}, window of ${side} × ${side}`
      : "None: values are as in the data.";
    show(this.radius, String(plane.ref ? plane.ref[2] : this.app.radius));
  }
}
