// The colours of weights: those of package viz, which the server sends, so that the page, the terminal and pictures
// agree. Lightness alone tells the order, so it reads with any kind of colour vision and in grey.

import { el, number } from "./dom.js";
import { state } from "./state.js";

let ramps = null, signed = null;

// prepareColours takes the colours, each a base64 of 256 times red, green and blue.
export function prepareColours(given) {
  const read = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Array.from({ length: bytes.length / 3 }, (_, i) => [...bytes.subarray(3 * i, 3 * i + 3)]);
  };
  ramps = { light: read(given.light), dark: read(given.dark) };
  const arms = (text) => [read(text).slice(0, 256).reverse(), read(text).slice(256)];
  signed = { light: arms(given.lightSigned), dark: arms(given.darkSigned) };
}

const broken = { light: [214, 60, 110], dark: [255, 92, 138] }; // not finite: a hue that the map does not have
const mask = { light: [[240, 241, 244], [178, 183, 194]], dark: [[32, 35, 44], [88, 95, 110]] }; // ground and stripes

const dimmed = window.matchMedia("(prefers-color-scheme: dark)");

// theme returns "light" or "dark".
export const theme = () => state.theme || (dimmed.matches ? "dark" : "light");

export function onSystemTheme(run) {
  dimmed.addEventListener("change", run);
}

// share returns where on the map a weight stands, from 0 to 1. scale is what its colours span: { lo, hi }.
export function share(w, scale) {
  if (state.c === "one") return Math.max(0, Math.min(1, w));
  if (scale.hi <= scale.lo) return 0;
  const t = Math.max(0, Math.min(1, (w - scale.lo) / (scale.hi - scale.lo)));
  return state.c === "log" ? Math.max(0, 1 + Math.log(Math.max(t, 1e-9)) / Math.log(254)) : t;
}

export function rgb(t) {
  return ramps[theme()][Math.round(255 * t)];
}

// signedRGB returns the colour of a difference from -1 to 1: the paper is 0.
export function signedRGB(t) {
  const ends = signed[theme()];
  return ends[t < 0 ? 0 : 1][Math.round(255 * Math.min(1, Math.abs(t)))];
}

export const css = (t) => `rgb(${rgb(t).join(",")})`;
export const signedCSS = (t) => `rgb(${signedRGB(t).join(",")})`;
export const brokenRGB = () => broken[theme()];
export const brokenCSS = () => `rgb(${broken[theme()].join(",")})`;
export const maskRGB = () => mask[theme()];

// inkOn returns a colour for text that can be read on rgb(t).
export function inkOn(t) {
  const [r, g, b] = rgb(t).map((x) => (x / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.26 ? "#10131a" : "#ffffff";
}

// ends returns what the ends of the legend stand for.
export function ends({ m, scale }) {
  if (m.signed) return [-scale.hi, scale.hi];
  if (state.c === "one") return [0, 1];
  return state.c === "log" ? [scale.lo + (scale.hi - scale.lo) / 254, scale.hi] : [scale.lo, scale.hi];
}

// legendCSS returns the colour of a place on the legend, from 0 to 1.
export const legendCSS = (m, t) => (m.signed ? signedCSS(2 * t - 1) : css(t));

// legendWords tells of the legend what its ends do not: a scale that is no line, or that two panels share.
export const legendWords = (what) => (what.m.signed ? "" : (state.c === "log" ? ", logarithmic" : "") + (what.shared ? ", the same for both" : ""));

// legend returns an element that explains the colours, and in a note what else is to be known.
export function legend(what, note) {
  const { m } = what;
  const bar = el("canvas", { width: 128, height: 1, class: "ramp", "aria-hidden": "true" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 128; x++) {
    context.fillStyle = legendCSS(m, x / 127);
    context.fillRect(x, 0, 1, 1);
  }
  const [from, to] = ends(what);
  const parts = [el("span", { text: number(from) }), bar, el("span", { text: number(to) + legendWords(what) })];
  if (m.codes.includes(255)) {
    const mark = el("i", { class: "broken" });
    parts.push(mark, el("span", { text: "not a number" }));
  }
  if (m.seen) parts.push(el("i", { class: "masked" }), el("span", { text: "masked" }));
  if (note) parts.push(el("span", { class: "pooling", text: note }));
  return el("p", { class: "legend", "aria-label": `Colours from ${number(from)} to ${number(to)}` }, ...parts);
}
