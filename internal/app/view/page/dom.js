// Helpers for elements. Texts enter the page only as text: no code of the page parses markup.

const svgNS = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNS, tag), attributes, children);
}

// embedded reports whether this page is in a frame of another page: an exported page in a notebook or a blog.
export const embedded = window.self !== window.top;

let printing = false;

// paper returns the largest width and height of a picture in print, 0 on a screen.
export const paper = () => (printing ? 560 : 0);

// onPaper calls run before and after printing.
export function onPaper(run) {
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) window.addEventListener(event, () => {
    printing = on;
    run();
  });
}

export const byId = (id) => document.getElementById(id);

// number formats a weight or a measure; – is a missing value.
export function number(x, digits = 3) {
  if (x == null || Number.isNaN(x)) return "–";
  if (Number.isInteger(x)) return String(x).replace("-", "−");
  if (Math.abs(x) < 10 ** -digits / 2) return (x < 0 ? ">−" : "<") + (10 ** -digits).toFixed(digits);
  return (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
}

// later returns a function that calls run once, ms milliseconds after its last call.
export function later(ms, run) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), ms);
  };
}

// fillToken writes a token at 0, 0 of a canvas. ▁, the sign of a space, is heavy in most fonts: it is lighter.
export function fillToken(context, text, most) {
  if (!text.includes("▁")) return context.fillText(text, 0, 0, most);
  const wide = context.measureText(text).width, squeeze = Math.min(1, most / wide);
  let x = { left: 0, start: 0, center: -wide / 2, right: -wide }[context.textAlign] ?? 0;
  context.textAlign = "left";
  context.scale(squeeze, 1);
  for (const part of text.split(/(▁+)/)) {
    context.globalAlpha = part.startsWith("▁") ? 0.4 : 1;
    context.fillText(part, x, 0);
    x += context.measureText(part).width;
  }
}

// lighter returns the parts of a token as nodes that make has made, the sign of a space in the class "space". The text
// of the nodes together is the token, so copying gives the token.
export const lighter = (text, make = el, tag = "span") => text.split(/(▁+)/).filter(Boolean).map((part) => (part.startsWith("▁") ? make(tag, { class: "space", text: part }) : part));

// canvasFor sizes a canvas for the resolution of the screen and returns its context, in CSS pixels.
export function canvasFor(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
