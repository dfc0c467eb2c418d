// One of two pictures over the other, with a divider: a native slider that lies on them.

/** @import { App } from "./main.js" */

import { $ } from "./controls.js";
import { element } from "./format.js";

export class Swipe {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.box = $("panes");
    this.row = $("swipe-row");
    this.why = $("swipe-why");
    this.toggle = /** @type {HTMLInputElement} */ ($("swipe-on"));
    this.toggle.addEventListener("change", () =>
      app.change(() => (app.state.swipe = this.toggle.checked ? 50 : null), { isStep: true }),
    );
    this.slider = element("input", { type: "range", id: "swipe", min: 0, max: 100, ariaLabel: "Divider of the two pictures" });
    this.slider.addEventListener("input", () => {
      app.state.swipe = Number(this.slider.value);
      this.place();
    });
    this.slider.addEventListener("change", () => app.write(false));
    this.line = element("div", { className: "swipe-line" });
    this.line.setAttribute("aria-hidden", "true");
  }

  /** Whether there are two pictures of the same plane. */
  get isPossible() {
    const [one, two, more] = this.app.panes;
    return Boolean(two && !more && one.layer?.grid === two.layer?.grid);
  }

  update() {
    const { swipe, panes } = this.app.state;
    this.row.hidden = panes.length !== 2;
    this.toggle.disabled = !this.isPossible;
    this.why.textContent = this.isPossible ? "" : " (needs two pictures of one grid)";
    const isOn = this.isPossible && swipe !== null;
    this.toggle.checked = isOn;
    this.box.classList.toggle("swipe", isOn);
    if (!isOn) {
      this.slider.remove();
      this.line.remove();
      return;
    }
    if (!this.slider.isConnected) this.app.panes[1].mapBox.append(this.line, this.slider);
    this.slider.value = String(swipe);
    this.place();
  }

  place() {
    this.box.style.setProperty("--swipe", String(Number(this.slider.value) / 100));
    this.slider.setAttribute("aria-valuetext", `${this.slider.value} % of the width is picture 1, the rest picture 2`);
  }
}
