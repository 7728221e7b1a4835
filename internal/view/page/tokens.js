// How tokens are written, and what is seen of an axis: tokens or words, with or without marks.

import { lens, state } from "./state.js";

// What cannot be seen, or would turn the line around, is spelt out.
const unseen = /[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu;

export function visible(token) {
  if (token === "") return "∅";
  // The marks that tokenizers put where a space was are heavy to read: a lone one is a box, others a dot.
  const shown = token.replace(/^[ \u0120▁](?=.)/su, "·").replace(/[ \u0120▁]/gu, "␣")
    .replace(unseen, (c) => ({ "\n": "⏎", "\t": "⇥" })[c] ?? "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
  return /^\p{M}/u.test(shown) ? "◌" + shown : shown;
}

// joined writes the pieces of a word as a word.
const joined = (pieces) => visible(pieces.map((p, i) => (i > 0 ? p.replace(/^##/, "") : p)).join("")).replace(/^·(?=.)/u, "");

// seen returns what the lens leaves of an axis: spans of tokens, their labels, and which of them are marks.
export function seen(axis) {
  const special = new Set(axis.special);
  let spans = state.w ? axis.words : axis.tokens.map((_, i) => [i, i + 1]);
  const mark = ([from, to]) => {
    for (let i = from; i < to; i++) if (!special.has(i)) return false;
    return true;
  };
  if (state.x) spans = spans.filter((s) => !mark(s));
  return { spans, labels: spans.map(([from, to]) => (state.w ? joined(axis.tokens.slice(from, to)) : visible(axis.tokens[from]))), marks: spans.map(mark), block: 1 };
}

// part returns some of what is seen, several to a block if the matrix has them so.
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

// find returns the place of a token in what is seen, -1 if it is hidden.
export function find(view, token) {
  return view.spans.findIndex(([from, to]) => from <= token && token < to);
}

// chosen returns the place of the chosen token among queries or keys.
export function chosen(q, k) {
  if (!state.tok) return null;
  const side = state.tok[0];
  const at = find(side === "q" ? q : k, Number(state.tok.slice(1)));
  return at < 0 ? null : { side, at };
}

// choose returns the state that chooses a place, or none if it is chosen already.
export function choose(side, view, at) {
  const tok = side + view.spans[at][0];
  return { tok: state.tok === tok ? "" : tok };
}

// shorten cuts a label to what a place can show.
export function shorten(label, most) {
  const letters = [...label];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : label;
}

const kept = new Map(); // axes through the lens, so that views can tell that nothing has changed

// axesOf returns what the lens leaves of the axes of a layer.
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

// numberOf returns the number of a head in its model, of which some heads may have been pruned.
export const numberOf = (layer, head) => layer.numbers?.[head] ?? head;

// keyHeadOf returns the number of the key/value head that a head shares with others, undefined if it has its own.
export const keyHeadOf = (layer, head) => layer.key_heads?.[head];

// headsOf returns what there is to open in a layer: its heads by number, and the means and so on that the server knows.
export const headsOf = (layer) => [...Array(layer.heads).keys(), ...(layer.summaries ?? [])];

const summaries = { mean: "mean of its heads", all: "mean of all layers", rollout: "rollout up to this layer" };

// headName names a head, or a summary, within its layer.
export const headName = (layer, head) => summaries[head] ?? `head ${numberOf(layer, head)}`;

// headTitle names a head or a summary of a record.
export function headTitle(record, { layer: at, head }) {
  const layer = record.layers[at], n = record.layers.filter((l) => l.kind === layer.kind).length;
  if (head === "mean") return `${layer.kind} layer ${layer.index}, mean of ${layer.heads} heads`;
  if (head === "all") return `${layer.kind}, mean of ${n} layers`;
  if (head === "rollout") return layer.index === 0 ? `${layer.kind}, rollout of layer 0` : `${layer.kind}, rollout of layers 0 to ${layer.index}`;
  const shared = keyHeadOf(layer, head);
  return `${layer.kind} layer ${layer.index}, ${headName(layer, head)}` + (shared === undefined ? "" : `, key/value head ${shared}`);
}

// headSign is a head's name where there is little room.
export const headSign = (head) => String(head);

// sameHead returns the place in another record of a head, null if it is not there.
export function sameHead(record, at, other) {
  const layer = record.layers[at.layer];
  const found = other.layers.findIndex((l) => layer && l.kind === layer.kind && l.index === layer.index);
  if (found < 0) return null;
  if (typeof at.head !== "number") return headsOf(other.layers[found]).includes(at.head) ? { layer: found, head: at.head } : null;
  const number = numberOf(layer, at.head);
  const head = Array.from({ length: other.layers[found].heads }, (_, h) => numberOf(other.layers[found], h)).indexOf(number);
  return head < 0 ? null : { layer: found, head };
}

// sameAxis reports whether two views of an axis are of the same tokens.
export const sameAxis = (a, b) => a === b || (a.labels.length === b.labels.length && a.labels.every((l, i) => l === b.labels[i]));

// visibleKeys returns for each query how many of the keys it can attend to; null if all. Blocks count if any of their
// tokens do.
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

// whyNoVectors says why a record has no queries and keys.
export const whyNoVectors = (record) => record.no_vectors || "This record has weights only, no queries and keys.";

// direction returns the direction in which tokens run: that of most of their letters.
export function direction(view) {
  let by = 0;
  view.labels.forEach((label, i) => {
    if (view.marks[i]) return;
    by += (label.match(/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu) ?? []).length;
    by -= (label.match(/[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Han}]/gu) ?? []).length;
  });
  return by > 0 ? "rtl" : "ltr";
}
