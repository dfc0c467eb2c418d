// Series and profiles: drawn, as tables, and as files.

import { element, number } from "./format.js";
import { PATHS, SHAPES } from "./marks.js";

/** @import { Values } from "./data.js" */

/** @typedef {{name: string, values: Values, mark: number}} Column
 * @typedef {{x: number[], isTime: boolean, xLabel: string, yLabel: string, columns: Column[],
 *   band?: {low: Values, high: Values}, isJoined: boolean, label: string}} Plot */

/** Color of a name in the style sheet, which knows light and dark. @param {string} name */
function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @type {WeakMap<HTMLElement, any>} of uPlot */
const kept = new WeakMap();

/**
 * Draw columns over a first one.
 * @param {HTMLElement} box
 * @param {Plot|null} plot
 */
export function draw(box, plot) {
  kept.get(box)?.destroy();
  kept.delete(box);
  box.replaceChildren();
  box.hidden = !plot;
  if (!plot) return;
  const text = style("--text");
  const axis = { stroke: text, grid: { stroke: style("--faint"), width: 1 }, ticks: { stroke: style("--faint") }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18 };
  /** @param {any} u */
  const marked = (u) => {
    for (const [at, column] of plot.columns.entries()) {
      if (column.mark < 0) continue;
      const shape = new Path2D(PATHS[SHAPES[column.mark]]);
      u.ctx.fillStyle = style(`--mark-${column.mark}`);
      const size = 0.55 * devicePixelRatio;
      plot.x.forEach((x, k) => {
        const y = u.data[at + 1][k];
        if (y === null || y === undefined) return;
        u.ctx.save();
        u.ctx.translate(u.valToPos(x, "x", true), u.valToPos(y, "y", true));
        u.ctx.scale(size, size);
        u.ctx.fill(shape);
        u.ctx.restore();
      });
    }
  };
  /** @type {Record<string, unknown>[]} */
  const series = plot.columns.map((column) => ({
    label: column.name,
    stroke: style(column.mark < 0 ? "--accent" : `--mark-${column.mark}`),
    width: plot.isJoined ? 1.5 : 0,
    points: { show: false },
    spanGaps: false,
  }));
  /** @type {Values[]} */
  const data = [plot.x, ...plot.columns.map((column) => column.values)];
  const bands = [];
  if (plot.band) {
    const edge = { stroke: "transparent", points: { show: false } };
    series.push({ ...edge }, { ...edge });
    data.push(plot.band.high, plot.band.low);
    bands.push({ series: [data.length - 2, data.length - 1], fill: style("--band") });
  }
  const made = new uPlot(
    {
      width: Math.max(box.clientWidth || 320, 200),
      height: 200,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: plot.isTime } },
      /** @param {number} seconds */
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      series: [{}, ...series],
      bands,
      axes: [
        { ...axis, label: plot.xLabel, size: plot.isTime ? 44 : 36 },
        {
          ...axis,
          label: plot.yLabel,
          size: 52,
          /** @param {unknown} _ @param {number[]} found */
          values: (_, found) => found.map((v) => number(v)),
        },
      ],
      hooks: { draw: [marked] },
    },
    data,
    box,
  );
  const canvas = box.querySelector("canvas");
  canvas?.setAttribute("role", "img");
  canvas?.setAttribute("aria-label", plot.label);
  kept.set(box, made);
}

/** Fit drawings to their boxes after the window has changed. @param {HTMLElement} box */
export function resize(box) {
  const made = kept.get(box);
  if (made && box.clientWidth && made.width !== box.clientWidth) made.setSize({ width: box.clientWidth, height: 200 });
}

/** A table of a first column and others. @param {string[]} head @param {string[][]} rows */
export function table(head, rows) {
  /** @param {"th"|"td"} tag @param {string[]} values */
  const cells = (tag, values) => values.map((value, k) => element(k || tag === "th" ? tag : "th", { scope: tag === "th" ? "col" : k ? "" : "row" }, value));
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...cells("th", head))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row)))),
  );
}

/** Offer rows as a file. @param {string} name @param {string[]} head @param {(string|number|null)[][]} rows */
export function save(name, head, rows) {
  /** @param {string|number|null} value */
  const cell = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\n");
  const url = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
