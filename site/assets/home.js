// The first page: the translator of dates writes what the reader types, and its heads light up, row by row.

import { css, inkOn, rgb } from "./colour.js";
import { heatmap } from "./heatmap.js";
import { ask, byId, calm, drawn, el, later, latest, onTheme, say, sentence, state, t } from "./page.js";

const usual = t`Tuesday, 5 March 2019`, pace = 170; // milliseconds a character
const samples = ["2019年3月5日 星期二", "Tuesday, 5 March 2019", "2019年3月5日(火)", "Montag, der 29. Februar 2016", "le 1er août 1987", "11 listopada 2018 r.", "07/04/76"];
const kinds = { encoder: t`Encoder`, decoder: t`Decoder`, cross: t`Cross-attention` };
const text = byId("text"), problem = byId("text-problem");
let shown = null, at = 0, timer = 0, heads = [];

byId("samples").append(...samples.filter((date) => date !== usual).map((date) => el("button", { type: "button", text: date, onclick: () => {
  text.value = date;
  changed();
} })));

/** Builds the small maps, and the boxes of the characters that are read and written. */
function build() {
  heads = shown.layers.flatMap((layer) => layer.heads.map((weights, n) => {
    const map = heatmap({ small: true }), name = `${kinds[layer.kind]}, ${t`head ${n}`}`;
    map.show({ weights, rows: layer.queries, columns: layer.keys, hidden: layer.kind === "decoder" ? weights.map((_, i) => i % layer.keys.length > Math.floor(i / layer.keys.length)) : null, scale: "one", label: name });
    const link = el("a", { class: "light", href: `dates.html#${new URLSearchParams({ look: `${layer.kind}-${n}`, text: shown.input })}`, title: name }, map.node);
    return { layer, weights, link };
  }));
  byId("lights").replaceChildren(...shown.layers.map((layer) => el("div", {}, el("h3", { text: kinds[layer.kind] }), el("div", { class: "lights" }, ...heads.filter((h) => h.layer === layer).map((h) => h.link)))));
  const { queries, keys } = cross();
  const words = [el("div")]; // which stay on one line
  for (const c of keys.slice(0, -1)) {
    if (c === "▁") words.push(el("span", { text: "\u00a0" }), el("div"));
    else words.at(-1).append(el("span", { text: c }));
  }
  byId("reads").replaceChildren(...words);
  byId("writes").replaceChildren(...queries.slice(0, -1).map((_, i) => el("button", { type: "button", onclick: () => finish(i), "aria-label": t`character ${i + 1}: ${queries[i]}` }, "\u00a0")));
}

const cross = () => shown.layers.find((l) => l.kind === "cross");

/** Shows the model as it writes character i: what it has written, and how much each character read counts for it. */
function step(i, written = i) {
  at = i;
  const { queries, keys, heads: maps } = cross(), n = keys.length;
  const mean = keys.map((_, j) => maps.reduce((sum, w) => sum + w[i * n + j], 0) / maps.length), most = Math.max(...mean.slice(0, -1), 1e-9);
  byId("reads").querySelectorAll("span").forEach((box, j) => {
    const colour = rgb((mean[j] / most) * 0.9);
    box.style.background = css(colour);
    box.style.color = inkOn(colour);
  });
  [...byId("writes").children].forEach((box, j) => {
    box.textContent = j <= written ? queries[j] : "\u00a0";
    box.setAttribute("aria-pressed", String(j === i));
  });
  for (const { layer, weights, link } of heads) {
    const rows = layer.queries.length, width = layer.keys.length, row = weights.slice(i * width, (i + 1) * width);
    link.style.setProperty("--lit", layer.kind === "encoder" ? 1 : Math.min(1, (written + 1) / (rows - 1)));
    link.classList.toggle("sure", layer.kind !== "encoder" && Math.max(...row) > 0.6);
  }
}

const last = () => cross().queries.length - 2;

/** Shows all that is written, and what counted for character i. */
function finish(i) {
  clearInterval(timer);
  step(i, last());
}

function play() {
  clearInterval(timer);
  if (last() < 0) return;
  if (early || calm()) return finish(last());
  let i = 0;
  step(i);
  timer = setInterval(() => (i < last() ? step(++i) : finish(last())), pace);
}
let early = true; // the program is being loaded: the page is still

const write = latest(async () => {
  try {
    shown = await ask("dates.look", { text: text.value, off: [] });
    build();
    play();
    problem.textContent = shown.unknown.length ? t`The training texts have no ${shown.unknown.join(" ")}: the model guesses.` : "";
    say(t`Writes ${shown.output || t`nothing`}`);
  } catch (e) {
    problem.textContent = sentence(e.message);
  }
});

const changed = later(150, () => {
  state.set({ text: text.value === usual ? null : text.value.slice(0, 100) });
  write();
});
text.oninput = changed;
byId("write").onclick = () => (shown?.input === text.value ? play() : changed());

async function load() {
  early = state.text() === "#";
  text.value = state.get("text", usual);
  await write();
}
onTheme(() => shown && step(at, last()));
state.onChange(load);
await load();
drawn();
