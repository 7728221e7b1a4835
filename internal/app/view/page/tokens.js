// Labels of tokens and names of heads, and the visible part of an axis: tokens or words, with or without special
// tokens.

import { lens, state } from "./state.js";
import { t, tr } from "./words.js";

// Invisible characters and those that change the direction of the text, which are written as U+….
const unseen = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu;

export function visible(token) {
  if (token === "") return "∅";
  const shown = token.replaceAll(" ", "▁")
    .replace(unseen, (c) => ({ "\n": "⏎", "\t": "⇥" })[c] ?? "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
  return /^\p{M}/u.test(shown) ? "◌" + shown : shown;
}

// labelsOf returns the texts of the tokens of an axis.
const labelsOf = (axis) => axis.labels ?? axis.tokens;

// labelOf returns the label of a token: ∎ for a special token that ends the text, if the text has no other. Beside
// other special tokens, as [SEP] beside [CLS], it keeps its name. Terminal, SVG and PNG do the same.
export function labelOf(axis, at) {
  const ends = axis.special.length === 1 && axis.special[0] === at && at === axis.tokens.length - 1;
  return ends ? "∎" : visible(labelsOf(axis)[at]);
}

// seen returns the visible part of an axis: spans of tokens, their labels, and marks, which is true for special tokens.
export function seen(axis) {
  const special = new Set(axis.special);
  let spans = state.w ? axis.words : axis.tokens.map((_, i) => [i, i + 1]);
  const mark = ([from, to]) => {
    for (let i = from; i < to; i++) if (!special.has(i)) return false;
    return true;
  };
  if (state.x) spans = spans.filter((s) => !mark(s));
  const label = ([from, to]) => (to - from > 1 ? visible(labelsOf(axis).slice(from, to).join("")) : labelOf(axis, from));
  const labels = spans.map((s) => (state.w ? label(s).replace(/^▁(?=.)/u, "") : label(s))); // words need no mark of a space
  return { spans, labels, marks: spans.map(mark), block: 1 };
}

// part returns a range of the visible tokens, several in a block if the matrix has blocks.
export function part(view, from, to, block) {
  const out = { spans: [], labels: [], marks: [], block };
  for (let i = from; i < to; i += block) {
    const last = Math.min(i + block, to) - 1;
    out.spans.push([view.spans[i][0], view.spans[last][1]]);
    out.labels.push(last > i ? view.labels[i] + "…" + view.labels[last] : view.labels[i]);
    out.marks.push(view.marks[i] && view.marks[last]);
  }
  return out;
}

// find returns the index of a token among the visible ones, -1 if it is hidden.
export function find(view, token) {
  return view.spans.findIndex(([from, to]) => from <= token && token < to);
}

// chosen returns the side and index of the selected token, null if none is selected or visible.
export function chosen(q, k) {
  if (!state.tok) return null;
  const side = state.tok[0];
  const at = find(side === "q" ? q : k, Number(state.tok.slice(1)));
  return at < 0 ? null : { side, at };
}

// choose returns the state that selects a token, or deselects it if it is selected.
export function choose(side, view, at) {
  const tok = side + view.spans[at][0];
  return { tok: state.tok === tok ? "" : tok };
}

// shorten cuts a label to a number of characters.
export function shorten(label, most) {
  const letters = [...label];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : label;
}

const kept = new Map(); // results of axesOf, so that views can compare them by identity

// axesOf returns the visible parts of the axes of a layer.
export function axesOf(record, layer) {
  const get = (i) => {
    const name = [record.id, i, lens()].join();
    if (!kept.has(name)) {
      if (kept.size > 40) kept.clear();
      kept.set(name, seen(record.axes[i]));
    }
    return kept.get(name);
  };
  return { q: get(layer.q), k: get(layer.k) };
}

// numberOf returns the number of a head in the model, which differs from its index if heads were pruned.
export const numberOf = (layer, head) => layer.numbers?.[head] ?? head;

// keyHeadOf returns the number of the key/value head that a head shares with others, undefined if it shares none.
export const keyHeadOf = (layer, head) => layer.key_heads?.[head];

// headsOf returns everything that can be opened in a layer: the indices of its heads and the names of its summaries.
export const headsOf = (layer) => [...Array(layer.heads).keys(), ...(layer.summaries ?? [])];

const summaries = { mean: t`mean of its heads`, all: t`mean of all layers`, rollout: t`rollout up to this layer` };

// layerName returns "cross-attention, layer 0".
export const layerName = (layer) => t`${kindName(layer)}, layer ${layer.index}`;

const kindName = (layer) => tr(layer.kind === "cross" ? "cross-attention" : layer.kind);

// headName returns the name of a head or a summary within its layer.
export const headName = (layer, head) => summaries[head] ?? t`head ${numberOf(layer, head)}`;

// headTitle returns the name of a head or a summary in a record.
export function headTitle(record, { layer: at, head }) {
  const layer = record.layers[at], n = record.layers.filter((l) => l.kind === layer.kind).length;
  if (head === "mean") return t`${layerName(layer)}, mean of ${layer.heads} heads`;
  if (head === "all") return t`${kindName(layer)}, mean of ${n} layers`;
  if (head === "rollout") return layer.index === 0 ? t`${kindName(layer)}, rollout of layer 0` : t`${kindName(layer)}, rollout of layers 0 to ${layer.index}`;
  const shared = keyHeadOf(layer, head);
  return t`${layerName(layer)}, ${headName(layer, head)}` + (shared === undefined ? "" : t`, key/value head ${shared}`);
}

// headShort returns a short name of a head in a record, "cross 0.2" for layer 0, head 2.
export const headShort = (layer, head) => `${tr(layer.kind)} ${layer.index}.${numberOf(layer, head)}`;

// headSign returns a name of a head or a summary in the row of its layer.
export const headSign = (head) => String(head);

// sameHead returns the layer and head in another record that correspond to a head, null if there is no such head.
export function sameHead(record, at, other) {
  const layer = record.layers[at.layer];
  const found = other.layers.findIndex((l) => layer && l.kind === layer.kind && l.index === layer.index);
  if (found < 0) return null;
  if (typeof at.head !== "number") return headsOf(other.layers[found]).includes(at.head) ? { layer: found, head: at.head } : null;
  const number = numberOf(layer, at.head);
  const head = Array.from({ length: other.layers[found].heads }, (_, h) => numberOf(other.layers[found], h)).indexOf(number);
  return head < 0 ? null : { layer: found, head };
}

// sameAxis reports whether two axes have the same labels.
export const sameAxis = (a, b) => a === b || (a.labels.length === b.labels.length && a.labels.every((l, i) => l === b.labels[i]));

// visibleKeys returns the number of keys that each query can attend to; null if nothing is masked. A block counts if
// any of its tokens does.
export function visibleKeys(layer, q, k) {
  if (!layer.visible) return null;
  let at = 0;
  return q.spans.map(([, to]) => {
    const keys = layer.visible[to - 1];
    while (at > 0 && k.spans[at - 1][0] >= keys) at--;
    while (at < k.spans.length && k.spans[at][0] < keys) at++;
    return at;
  });
}

// whyNoVectors returns the reason why a record has no queries and keys.
export const whyNoVectors = (record) => tr(record.no_vectors || "This record contains weights but no queries and keys.");

// direction returns the writing direction of most letters of the tokens.
export function direction(view) {
  let by = 0;
  view.labels.forEach((label, i) => {
    if (view.marks[i]) return;
    by += (label.match(/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu) ?? []).length;
    by -= (label.match(/[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Han}]/gu) ?? []).length;
  });
  return by > 0 ? "rtl" : "ltr";
}
