// What the colors of a picture mean, and what it is, in words.

/** @import { Pane } from "./pane.js" */

import { rgb } from "./color.js";
import { element, number, placeText, ticks } from "./format.js";
import { meaning, needs, told } from "./picture.js";

/** @type {[number, string][]} */
const PHASES = [[-Math.PI, "−π"], [-Math.PI / 2, "−π/2"], [0, "0"], [Math.PI / 2, "π/2"], [Math.PI, "π"]];

const NAMES = {
  intf: "interferogram",
  coh: "phase of a pair",
  coh_abs: "coherence",
  diff: "difference",
  phase: "phase",
  amp: "amplitude",
  value: "",
};

/** Draw the bar of colors, with numbers, quantity, unit and sign. @param {Pane} pane */
export function drawBar(pane) {
  const { low, high, cycle, table, reversed } = pane.coloring;
  const image = new ImageData(255, 1);
  for (let k = 0; k < 255; k += 1) image.data.set([...rgb(table, reversed ? 254 - k : k), 255], 4 * k);
  pane.bar.getContext("2d")?.putImageData(image, 0, 0);
  const { factor } = told(pane.layer, pane.picture.quantity);
  const isPhase = pane.picture.quantity === "phase";
  /** @type {[number, string][]} */
  const marks = isPhase ? PHASES : ticks(low * factor, high * factor, 5).map((v) => [v / factor, number(v)]);
  pane.barTicks.replaceChildren(
    ...marks.map(([value, text]) => {
      const mark = element("span", {}, text);
      mark.style.left = `${(100 * (value - low)) / (high - low)}%`;
      return mark;
    }),
  );
  const { text, sign } = meaning(pane.layer, pane.state, pane.picture.quantity);
  const wrapped = !isPhase && cycle > 0 ? `, every ${number(cycle * factor)} the same color` : "";
  pane.barText.textContent = `${text}${wrapped}${sign ? `; ${sign}` : ""}`;
}

/** What is seen: layer, kind, dates, looks, reference. @param {Pane} pane */
export function captionOf(pane) {
  const { state, layer } = pane;
  const need = needs(layer, state.show, pane.app.isStatic);
  let when = "";
  if (need === "pair") when = `${layer.images[state.a]} ${state.show === "diff" ? "−" : "→"} ${layer.images[state.b]}`;
  if (need === "item") when = layer.items[state.k];
  const looks = state.show === "intf" && state.looks > 1 ? `${state.looks} × ${state.looks} looks` : "";
  return [layer.name, NAMES[state.show], when, looks, referenceText(pane)].filter(Boolean).join(" · ");
}

/** @param {Pane} pane */
function referenceText(pane) {
  if (!pane.isReferenced) return "";
  const { ref } = pane.plane;
  if (!ref) return "no reference";
  const known = pane.constants ? (isZeroKnown(pane) ? "" : " (no data there)") : " …";
  return `reference ${placeText(pane.layer.is_map, ref[0], ref[1])} ± ${ref[2]}${known}`;
}

/** @param {Pane} pane */
function isZeroKnown({ state, constants }) {
  if (state.show === "coh" || !constants) return true;
  const used = state.show === "diff" ? [state.a, state.b] : [state.show === "intf" ? state.b : state.k];
  return used.every((k) => constants[k] !== null && constants[k] !== undefined);
}
