// The best examples of the open head in a corpus, if attn view has them: each text with the weights of one query.

import { byId, el, lighter, number } from "./dom.js";
import { change } from "./state.js";
import { css, inkOn } from "./colour.js";
import { examples } from "./data.js";
import { headTitle, visible } from "./tokens.js";

const around = 24; // tokens on each side of the query and of the key
let about = null, typed = false, turn = 0;

export function prepareExamples(given) {
  about = given.examples;
  typed = given.models.length > 0;
}

export const hasExamples = () => about !== null;

// showExamples shows the examples of a head of a record.
export async function showExamples(record, place) {
  const box = byId("examples"), mine = ++turn;
  box.hidden = !about || typeof place.head !== "number" || !record.layers[place.layer];
  if (box.hidden) return;
  const list = await examples(record, place.layer, place.head).catch(() => []);
  if (mine !== turn) return;
  const text = `Where ${headTitle(record, place)} scores highest by “${about.criterion}” among ${about.texts.toLocaleString("en")} texts of ${about.data}`;
  box.replaceChildren(el("h2", { text: "Examples" }), el("p", { class: "quiet", text: list.length ? text : "This head has no examples." }), el("ol", {}, ...list.map(item)));
}

function item(x) {
  const open = typed && el("button", { type: "button", text: "Open", title: "Show all heads for this text",
    onclick: () => change({ s: x.source, t: x.target ?? "", f: "", z: "", tok: "q" + x.query }) });
  const keys = tokens(x.k, [x.key, ...(x.q ? [] : [x.query])], (chip, j) => {
    if (x.weights[j] >= 0.01) { // others have the colour of the panel
      chip.style.background = css(x.weights[j]);
      chip.style.color = inkOn(x.weights[j]);
    }
    chip.title = number(x.weights[j]);
    chip.classList.toggle("picked", !x.q && j === x.query);
  });
  const queries = x.q ? [...tokens(x.q, [x.query], (chip, i) => chip.classList.toggle("picked", i === x.query)), el("span", { class: "quiet", text: "attends to" })] : [];
  return el("li", {}, el("p", { class: "quiet small" }, `score ${number(x.score)}, weight ${number(x.weight)}, line ${x.line}`, ...(open ? [" ", open] : [])), el("p", { class: "flow", dir: "auto" }, ...queries, ...keys));
}

// tokens returns chips of the tokens near some of them.
function tokens(labels, near, dress) {
  const out = [];
  labels.forEach((label, i) => {
    if (near.some((c) => Math.abs(c - i) <= around)) {
      const chip = el("span", { class: "chip" }, ...lighter(visible(label)));
      dress(chip, i);
      out.push(chip);
    } else if (i === 0 || out.at(-1).textContent !== "…") out.push(el("span", { class: "quiet", text: "…" }));
  });
  return out;
}
