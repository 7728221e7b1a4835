// The colours of weights: those of package viz, for the theme of the page.

import colours from "./colours.js";
import { broken, css, decode, inkOn, mask } from "./palette.js";
import { el, number, t, theme } from "./page.js";

export { css, inkOn };

const { weight, difference } = decode(colours);

/** Returns the colour [red, green, blue] of a place on the scale, from 0 to 1. */
export const rgb = (t) => weight(theme(), t);

/** Returns the colour of a value from −1 to 1; 0 has the colour of the page. */
export const signedRGB = (t) => difference(theme(), t);

/** Background and stripes of masked cells. */
export const maskRGB = () => mask[theme()];
export const brokenRGB = () => broken[theme()];

/**
 * Returns an explanation of the colours.
 * @param {number} low
 * @param {number} high
 * @param {{signed?: boolean, masked?: boolean, digits?: number}} [options]
 */
export function legend(low, high, { signed: both = false, masked = false, digits = 2 } = {}) {
  const bar = el("canvas", { width: 128, height: 1, class: "ramp", "aria-hidden": "true" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 128; x++) {
    context.fillStyle = css(both ? signedRGB((2 * x) / 127 - 1) : rgb(x / 127));
    context.fillRect(x, 0, 1, 1);
  }
  const parts = [el("span", { text: number(low, digits) }), bar, el("span", { text: number(high, digits) })];
  if (masked) parts.push(el("i", { class: "masked", "aria-hidden": "true" }), el("span", { text: t`masked` }));
  return el("p", { class: "legend" }, ...parts);
}

/**
 * Returns a table of weights with coloured cells, which shows the same numbers to the eye and to screen readers.
 * @param {{corner?: string, rows: string[], columns: string[], weights: number[][], hidden?: boolean[], caption: string}} what
 */
export function weightTable({ corner = "", rows, columns, weights, hidden, caption }) {
  const head = el("tr", {}, el("td"), ...columns.map((c) => el("th", { scope: "col", text: c })));
  head.firstChild.textContent = corner;
  const body = rows.map((name, i) => el("tr", {}, el("th", { scope: "row", text: name }), ...weights[i].map((w, j) => {
    const cell = hidden?.[j] ? el("td", { class: "masked", text: "–" }) : el("td", { text: number(w) });
    if (!hidden?.[j] && Number.isFinite(w)) {
      const colour = rgb(w);
      cell.style.background = css(colour);
      cell.style.color = inkOn(colour);
    }
    return cell;
  })));
  return el("table", { class: "weights" }, el("caption", { class: "unseen", text: caption }), el("thead", {}, head), el("tbody", {}, ...body));
}
