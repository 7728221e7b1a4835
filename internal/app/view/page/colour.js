// The colours of weights on the page: of its theme, on the scale that the reader has chosen. The server sends those of
// package viz, so that the page, the terminal and pictures agree.

import { el, number, paper } from "./dom.js";
import { broken, css as cssOf, decode, inkOn as inkOf, mask } from "./palette.js";
import { lens, state } from "./state.js";
import { t } from "./words.js";

let colours = null;

export function prepareColours(given) {
  colours = decode(given);
}

// headCSS returns the colour of head i of n in a picture of several heads: evenly spaced hues, far apart for
// neighbours, with enough contrast for thin lines. Source: Ottosson, "A perceptual color space for image processing",
// 2020.
export function headCSS(i, n) {
  const count = Math.max(n, 7), gcd = (a, b) => (b ? gcd(b, a % b) : a);
  let by = Math.round(0.4 * count);
  while (gcd(by, count) > 1) by--;
  const hue = ((25 + (360 * ((i * by) % count)) / count) * Math.PI) / 180, dark = theme() === "dark", odd = i % 2;
  const light = dark ? (odd ? 0.7 : 0.82) : odd ? 0.66 : 0.5, chroma = dark ? 0.13 : 0.16;
  const a = chroma * Math.cos(hue), b = chroma * Math.sin(hue);
  const [l, m, s] = [light + 0.3963377774 * a + 0.2158037573 * b, light - 0.1055613458 * a - 0.0638541728 * b, light - 0.0894841775 * a - 1.291485548 * b].map((x) => x ** 3);
  const linear = [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s];
  return `rgb(${linear.map((x) => Math.round(255 * Math.max(0, Math.min(1, x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055)))).join(",")})`;
}

const dimmed = window.matchMedia("(prefers-color-scheme: dark)");
let dark = dimmed.matches; // cached: reading .matches makes the browser recompute styles, and every colour needs it

// theme returns "light" or "dark"; paper is light.
export const theme = () => (paper() ? "light" : "") || state.theme || (dark ? "dark" : "light");

export function onSystemTheme(run) {
  dimmed.addEventListener("change", () => {
    dark = dimmed.matches;
    run();
  });
}

// unit reports whether the last colour means 1. For value-weighted heads, which have no bound, it means the largest.
const unit = () => state.c === "one" && !lens().includes("values");

// share returns the place of a weight on the colour map, from 0 to 1. scale is the range of the weights: { lo, hi }, and
// signed if 0 is its centre; then it is the place of the absolute value.
export function share(w, scale) {
  if (scale.signed) return Math.min(1, Math.abs(w) / (scale.hi || 1));
  if (unit()) return Math.max(0, Math.min(1, w));
  if (scale.hi <= scale.lo) return 0;
  const t = Math.max(0, Math.min(1, (w - scale.lo) / (scale.hi - scale.lo)));
  return state.c === "log" ? Math.max(0, 1 + Math.log(Math.max(t, 1e-9)) / Math.log(254)) : t;
}

export const rgb = (t) => colours.weight(theme(), t);

// signedRGB returns the colour of a difference or a signed weight from -1 to 1; 0 is the colour of the panel.
export const signedRGB = (t) => colours.difference(theme(), t);

export const css = (t) => cssOf(rgb(t));
export const signedCSS = (t) => cssOf(signedRGB(t));
export const brokenRGB = () => broken[theme()];
export const brokenCSS = () => cssOf(broken[theme()]);
export const maskRGB = () => mask[theme()];

// inkOn returns a colour for text that can be read on rgb(t).
export const inkOn = (t) => inkOf(rgb(t));

// weightRGB returns the colour of a weight on the scale of its matrix.
export const weightRGB = (m, scale, x) => (m.signed ? signedRGB(x / (scale.hi || 1)) : rgb(share(x, scale)));

// ends returns the values at the ends of the legend.
export function ends({ m, scale }) {
  if (m.signed) return [-scale.hi, scale.hi];
  if (scale.signed) return [0, scale.hi];
  if (unit()) return [0, 1];
  return state.c === "log" ? [scale.lo + (scale.hi - scale.lo) / 254, scale.hi] : [scale.lo, scale.hi];
}

// legendCSS returns the colour at a place on the legend, from 0 to 1.
export const legendCSS = (m, t) => (m.signed ? signedCSS(2 * t - 1) : css(t));

// legendWords returns the text after the last value of the legend: a logarithmic or shared scale, and the unit.
export const legendWords = (what) => (what.m.signed ? "" : (state.c === "log" ? t`, logarithmic` : "") + (what.shared ? t`, the same for both` : "") + (what.valued ? t`, weight × norm` : ""));

// ramp returns a bar of colours; colour returns the colour at a place, from 0 to 1.
export function ramp(colour) {
  const bar = el("canvas", { width: 128, height: 1, class: "ramp", "aria-hidden": "true" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 128; x++) {
    context.fillStyle = colour(x / 127);
    context.fillRect(x, 0, 1, 1);
  }
  return bar;
}

// legend returns an element that explains the colours, followed by a note.
export function legend(what, note) {
  const { m } = what;
  const bar = ramp((t) => legendCSS(m, t));
  const [from, to] = ends(what);
  const parts = [el("span", { text: number(from) }), bar, el("span", { text: number(to) + legendWords(what) })];
  if (m.codes.includes(255)) {
    const mark = el("i", { class: "broken" });
    parts.push(mark, el("span", { text: t`not a number` }));
  }
  if (m.seen) parts.push(el("i", { class: "masked" }), el("span", { text: t`masked` }));
  if (note) parts.push(el("span", { class: "pooling", text: note }));
  return el("p", { class: "legend", "aria-label": t`Colours from ${number(from)} to ${number(to)}` }, ...parts);
}
