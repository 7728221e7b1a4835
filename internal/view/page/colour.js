// One colour map, from paper to ink, the other way round on dark. Lightness alone tells the order, so it reads with any
// kind of colour vision and in grey; between the anchors it runs straight in OKLab.

import { el, number } from "./dom.js";
import { state } from "./state.js";

// Anchors as lightness, chroma, hue.
const light = [[0.975, 0.008, 230], [0.84, 0.075, 200], [0.66, 0.11, 215], [0.48, 0.14, 255], [0.27, 0.12, 285]];
const dark = [[0.215, 0.02, 270], [0.37, 0.12, 285], [0.55, 0.13, 250], [0.74, 0.12, 195], [0.95, 0.13, 105]];

function toRGB(L, a, b) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s]
    .map((x) => Math.round(255 * (x <= 0.0031308 ? 12.92 * Math.max(0, x) : 1.055 * Math.min(1, x) ** (1 / 2.4) - 0.055)));
}

function ramp(anchors) {
  const lab = anchors.map(([L, c, h]) => [L, c * Math.cos((h * Math.PI) / 180), c * Math.sin((h * Math.PI) / 180)]);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (lab.length - 1);
    const k = Math.min(Math.floor(at), lab.length - 2);
    return toRGB(...lab[k].map((x, d) => x + (at - k) * (lab[k + 1][d] - x)));
  });
}

const ramps = { light: ramp(light), dark: ramp(dark) };
const broken = { light: [214, 60, 110], dark: [255, 92, 138] }; // not finite: a hue that the map does not have

const dimmed = window.matchMedia("(prefers-color-scheme: dark)");

// theme returns "light" or "dark".
export const theme = () => state.theme || (dimmed.matches ? "dark" : "light");

export function onSystemTheme(run) {
  dimmed.addEventListener("change", run);
}

// share returns where on the map a weight stands, from 0 to 1.
export function share(w, m) {
  const scale = state.c;
  if (scale === "one") return Math.max(0, Math.min(1, w));
  if (m.hi <= m.lo) return 0;
  const t = Math.max(0, Math.min(1, (w - m.lo) / (m.hi - m.lo)));
  return scale === "log" ? Math.max(0, 1 + Math.log(Math.max(t, 1e-9)) / Math.log(254)) : t;
}

export function rgb(t) {
  return ramps[theme()][Math.round(255 * t)];
}

export const css = (t) => `rgb(${rgb(t).join(",")})`;
export const brokenCSS = () => `rgb(${broken[theme()].join(",")})`;

// inkOn returns a colour for text that can be read on rgb(t).
export function inkOn(t) {
  const [r, g, b] = rgb(t).map((x) => (x / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.26 ? "#10131a" : "#ffffff";
}

// palette returns the pixel of every code of a matrix, as numbers of four bytes.
export function palette(m) {
  const pixels = new Uint32Array(256);
  const bytes = new Uint8ClampedArray(pixels.buffer);
  for (let code = 0; code < 256; code++) {
    const colour = code === 255 ? broken[theme()] : rgb(share(m.lo + (code / 254) * (m.hi - m.lo), m));
    bytes.set([...colour, 255], 4 * code);
  }
  return pixels;
}

// image draws a matrix with a pixel for each cell, or, if that is too much, for the largest of step × step cells.
export function image(m, step = 1) {
  const rows = Math.ceil(m.rows / step), cols = Math.ceil(m.cols / step);
  const canvas = el("canvas", { width: Math.max(1, cols), height: Math.max(1, rows) });
  if (rows === 0 || cols === 0) return canvas;
  const context = canvas.getContext("2d");
  const data = context.createImageData(cols, rows);
  const out = new Uint32Array(data.data.buffer);
  const pixels = palette(m);
  if (step === 1) {
    for (let i = 0; i < out.length; i++) out[i] = pixels[m.codes[i]];
  } else {
    const largest = new Uint8Array(rows * cols);
    for (let i = 0; i < m.rows; i++) {
      const to = Math.floor(i / step) * cols;
      for (let j = 0; j < m.cols; j++) {
        const at = to + Math.floor(j / step), code = m.codes[i * m.cols + j];
        if (code > largest[at]) largest[at] = code;
      }
    }
    for (let i = 0; i < out.length; i++) out[i] = pixels[largest[i]];
  }
  context.putImageData(data, 0, 0);
  return canvas;
}

// ends returns what the ends of the legend stand for.
export function ends(m) {
  if (state.c === "one") return [0, 1];
  return state.c === "log" ? [m.lo + (m.hi - m.lo) / 254, m.hi] : [m.lo, m.hi];
}

// legend returns an element that explains the shades.
export function legend(m) {
  const bar = el("canvas", { width: 128, height: 1, class: "ramp", "aria-hidden": "true" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 128; x++) {
    context.fillStyle = css(x / 127);
    context.fillRect(x, 0, 1, 1);
  }
  const [from, to] = ends(m);
  const parts = [el("span", { text: number(from) }), bar, el("span", { text: number(to) + (state.c === "log" ? ", logarithmic" : "") })];
  if (m.codes && m.codes.includes(255)) {
    const mark = el("i", { class: "broken" });
    parts.push(mark, el("span", { text: "not a number" }));
  }
  return el("p", { class: "legend", "aria-label": `Shades from ${number(from)} to ${number(to)}` }, ...parts);
}
