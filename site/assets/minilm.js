// Lesson 7: opens heads of the exported page, which is in a frame, and keeps what is chosen there in the address.

import "./own.js";
import { byId, complain, drawn, el, onTheme, state, t, theme } from "./page.js";
import { nameFrame } from "./words.js";

// The heads and numbers are those that docs/lessons.md names.
const patterns = {
  previous: { at: "0.2", text: t`Layer 0, head 2: each token after the first gives all of its weight to the token before it. The line is one cell below the diagonal.` },
  sink: { at: "4.5", text: t`Layer 4, head 5: on average [CLS], the first column, gets 0.90 of the weight.` },
  separator: { at: "3.11", text: t`Layer 3, head 11: the full stop and [SEP], the last two columns, get 0.38 of the weight.` },
  it: { at: "3.1", tok: "q10", text: t`Layer 3, head 1: the selected query “it” gives 0.68 of its weight to “animal”.` },
};

// sentences are those of minilm-heads.html, minilm-more.html and chinese.html, whose records have the numbers 0, 1, …
const sentences = ["The animal didn't cross the street because it was too tired.", "The animal didn't cross the street because it was too wide.",
  "She poured water from the bottle into the cup until it was full.", "Time flies like an arrow; fruit flies like a banana.", "The keys to the old cabinet are on the table.",
  "注意力就是加权平均。", "编码器把每个词元变成一个向量。", "数值相同，只是在内存中的位置不同。"];
const pages = [["minilm-heads.html", 0], ["minilm-more.html", 1], ["chinese.html", 5]]; // and the number of their first sentence
const chinese = 5;
const sentence = () => Math.max(0, Math.min(sentences.length - 1, Math.round(state.get("sentence", 0))));

// chosen are the settings of the page in the frame that the address contains, by name. That page checks their values.
const chosen = ["r", "a", "b", "r2", "side", "cmp", "v", "tok", "n", "hs", "c", "x", "vw", "w", "z", "g", "go", "gz", "o", "m"];

const none = Object.fromEntries(chosen.map((key) => [key, null]));

// settings returns the part of values that is in chosen, in one order.
const settings = (values) => new URLSearchParams(chosen.filter((key) => values.get(key)).map((key) => [key, values.get(key)]));

// first returns the settings that a pattern opens the page with.
const first = ({ at, tok = "" }) => settings(new Map([["a", at], ["c", "one"], ["tok", tok]]));

const pattern = () => (Object.hasOwn(patterns, state.get("find")) ? patterns[state.get("find")] : null);

function showAnswer() {
  const found = pattern();
  for (const button of document.querySelectorAll("[data-find]")) button.setAttribute("aria-pressed", found === patterns[button.dataset.find]);
  byId("answer").textContent = found?.text ?? t`Nothing is opened yet: look first.`;
}

nameFrame(byId("heads"));

/** Shows which head is open. Sliders reach each head on a phone, whose small maps are smaller than a finger. */
function showHead(values) {
  const [layer, head] = (values.get("a") || "0.0").split(".");
  byId("layer").value = byId("layer-out").textContent = layer;
  byId("head").value = byId("head-out").textContent = head;
}

function open() {
  showAnswer();
  let values = settings(state);
  if (values.size === 0 && pattern()) values = first(pattern());
  values.set("theme", theme());
  byId("sentence").value = String(sentence());
  const [name, from] = pages.findLast(([, from]) => sentence() >= from), small = sentence() >= chinese;
  if (sentence() > from) values.set("r", String(sentence() - from));
  byId("layer").max = small ? 2 : 5;
  byId("head").max = small ? 3 : 11;
  showHead(values);
  byId("heads").title = small ? t`All 12 heads of the small model that reads Chinese` : t`All 72 heads of all-MiniLM-L6-v2`;
  if (!navigator.onLine && !kept[name]) complain(t`this sentence needs a network: its heads are not loaded yet`);
  byId("heads").src = navigator.onLine || !kept[name] ? new URL(`${name}#${values}`, import.meta.url) : `${kept[name]}#${values}`;
}

// kept are the addresses of the pages in this tab's memory: without a network the frame opens them there.
const kept = {};

async function keepPages() {
  for (const [name] of pages) {
    const page = await fetch(new URL(name, import.meta.url)).catch(() => null);
    if (page?.ok) kept[name] = URL.createObjectURL(await page.blob());
  }
}

// keep writes the settings of the frame into the address. Those that a pattern begins with are its name, and the page as
// it begins has neither: the browser's back button may lead to both.
function keep(values) {
  showHead(values);
  if (sentence() > 0) values.delete("r"); // it follows from the sentence
  const name = sentence() === 0 && Object.keys(patterns).find((name) => String(first(patterns[name])) === String(values));
  if (name || values.size === 0) state.set({ ...none, find: name || null });
  else state.set({ ...none, ...Object.fromEntries(values) });
  showAnswer();
}

for (const button of document.querySelectorAll("[data-find]")) button.addEventListener("click", () => {
  state.set({ ...none, find: button.dataset.find === state.get("find") ? null : button.dataset.find, sentence: null }); // patterns are of the first
  open();
});
for (const id of ["layer", "head"]) byId(id).addEventListener("input", () => {
  state.set({ find: null, a: `${byId("layer").value}.${byId("head").value}` });
  open();
});
const option = (text, n) => el("option", { value: n, text });
byId("sentence").append(el("optgroup", { label: "all-MiniLM-L6-v2" }, ...sentences.slice(0, chinese).map(option)),
  el("optgroup", { label: t`a small model that reads Chinese` }, ...sentences.slice(chinese).map((text, n) => option(text, chinese + n))));
byId("sentence").addEventListener("change", () => {
  state.set({ ...none, find: null, sentence: Number(byId("sentence").value) || null });
  open();
});
let works = false; // the page in the frame, which sends its state once it is drawn
window.addEventListener("message", ({ source, data }) => {
  if (source !== byId("heads").contentWindow || typeof data?.attn !== "string") return;
  complain("");
  if (!works) keepPages();
  works = true;
  keep(settings(new URLSearchParams(data.attn)));
});
byId("heads").addEventListener("load", () => setTimeout(() => {
  if (!works) complain(t`the heads cannot be shown: assets/minilm-heads.html is missing or damaged`, true);
}, 5000));
onTheme(open);
state.onChange(open);
open();
drawn();
