// Everything by keyboard: what keys do anywhere, and what they do in a picture.

/** @import { App } from "./main.js" */
/** @import { Pane } from "./pane.js" */

import { $ } from "./controls.js";

const OFF = "moraine-view-keys-off";

const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

/** @param {App} app */
export function listen(app) {
  const single = /** @type {HTMLInputElement} */ ($("single-keys"));
  single.checked = localStorage.getItem(OFF) === null;
  single.addEventListener("change", () => (single.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  document.addEventListener("pointerdown", () => document.body.classList.remove("by-keys"), true);
  document.addEventListener(
    "keydown",
    (event) => {
      if (["Tab", "Enter"].includes(event.key) || event.key.startsWith("Arrow")) document.body.classList.add("by-keys");
      const pane = app.panes.find((p) => p.mapElement.contains(/** @type {Node} */ (event.target)));
      if (pane && inPicture(app, pane, event)) {
        event.preventDefault();
        event.stopPropagation();
      }
    },
    true,
  );
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || TYPING.has(/** @type {Element} */ (event.target).tagName)) return;
    if (document.querySelector("dialog[open]") || !single.checked) return;
    if (anywhere(app, event.key)) event.preventDefault();
  });
}

/** @type {Record<string, [number, number]>} */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {App} app @param {Pane} pane @param {KeyboardEvent} event */
function inPicture(app, pane, event) {
  const isSelf = event.target === pane.mapElement;
  if (event.key === "Enter" && isSelf) {
    app.pickAt(pane, pane.center());
    return true;
  }
  if (event.altKey && event.key in STEPS) {
    pane.step(STEPS[event.key]);
    return true;
  }
  return false;
}

/** What keys do anywhere. @type {Record<string, (app: App) => void>} */
const ACTIONS = {
  "[": (app) => app.stepDate(-1),
  "]": (app) => app.stepDate(1),
  r: (app) => app.setReference(app.pane, app.pane.pointed ?? app.pane.center()),
  l: (app) => app.lineAt(app.pane, app.pane.pointed ?? app.pane.center()),
  Backspace: (app) => app.dropPick(-1),
  Delete: (app) => app.dropPick(-1),
  "?": (app) => app.help(),
};

/** Do what a key does; whether it does anything. @param {App} app @param {string} key */
function anywhere(app, key) {
  const pane = /^[1-4]$/.test(key) ? app.panes[Number(key) - 1] : undefined;
  if (!pane && !Object.hasOwn(ACTIONS, key)) return false;
  if (pane) pane.mapElement.focus();
  else ACTIONS[key](app);
  return true;
}
