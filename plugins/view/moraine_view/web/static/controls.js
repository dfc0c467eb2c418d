// Native controls, each with a label.

import { element } from "./format.js";

/** An element of the page that is always there. @param {string} id */
export const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

let serial = 0;

/** A row: label, control, and what follows it.
 * @param {string} text @param {HTMLElement} control @param {...HTMLElement} more */
export function labeled(text, control, ...more) {
  control.id ||= `control-${(serial += 1)}`;
  return element("div", { className: "row" }, element("label", { htmlFor: control.id }, text), control, ...more);
}

/** Change the label of such a row. @param {HTMLElement} row @param {string} text */
export function relabel(row, text) {
  row.firstElementChild?.replaceChildren(text);
}

/** @param {string} text @param {() => void} onclick @param {Record<string, unknown>} attributes */
export function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

/** A box to tick, inside its label. @param {string} text @param {(isOn: boolean) => void} onchange */
export function check(text, onchange) {
  const box = element("input", { type: "checkbox", onchange: () => onchange(box.checked) });
  return { box, row: element("label", { className: "check" }, box, ` ${text}`) };
}

/** A choice; its value is given to what happens then. @param {(value: string) => void} onchange */
export function choice(onchange) {
  const made = element("select", { onchange: () => onchange(made.value) });
  return made;
}

/** Write into a field, unless somebody types there. @param {HTMLInputElement} input @param {string} text */
export function show(input, text) {
  if (document.activeElement !== input) input.value = text;
}

/** Offer options, [value, text] each. @param {HTMLSelectElement} select @param {string[][]} options @param {unknown} value */
export function fill(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...options.map(([name, text]) => element("option", { value: name }, text)));
  }
  select.value = String(value);
}

/** Number of a field, rounded and within bounds. @param {HTMLInputElement} input @param {number} low @param {number} high */
export function wholeOf(input, low, high) {
  return Math.min(Math.max(Math.round(Number(input.value) || 0), low), high);
}
