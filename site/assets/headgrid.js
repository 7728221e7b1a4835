// All heads of a model for one text: a small map of each, and the chosen one large, with its numbers.

import { el, number, t } from "./page.js";
import { heatmap } from "./heatmap.js";

const kinds = { encoder: t`Encoder`, decoder: t`Decoder`, cross: t`Cross-attention` };
const axes = {
  encoder: [t`character that attends`, t`character attended to`],
  decoder: [t`character to write`, t`character written before`],
  cross: [t`character to write`, t`character read`],
};

/** Returns which cells of a layer the causal mask hides. */
const masked = (layer) => (layer.kind !== "decoder" ? null : layer.queries.flatMap((_, i) => layer.keys.map((_, j) => j > i)));

/** Returns the mean of the largest weight of each row: 1 if each query attends to one key only; null without weights. */
function sharpness(layer, weights) {
  if (weights.includes(null)) return null;
  const n = layer.keys.length;
  let sum = 0;
  for (let i = 0; i < layer.queries.length; i++) sum += Math.max(...weights.slice(i * n, (i + 1) * n));
  return sum / Math.max(1, layer.queries.length);
}

export const headName = (head) => t`${head.layer} head ${head.number}`;

/**
 * Returns a grid of heads: node has the small maps and the large one beside each other, small and large are for pages that
 * arrange them otherwise. Heads are {layer: name, number}; a layer is what lesson/look.go returns.
 * @param {{onPick?: (head: {layer: string, number: number}) => void,
 *   onToggle?: (head: {layer: string, number: number}, on: boolean) => void}} options with onToggle, each head has a switch
 */
export function headGrid({ onPick, onToggle } = {}) {
  const grid = el("div", { class: "head-grid" }), large = el("div", { class: "head-large" });
  const node = el("div", { class: "columns heads" }, grid, large);
  let known = "", items = new Map(), big = null, chosen = null, layers = [], off = [];

  const key = (head) => `${head.layer}/${head.number}`;
  const isOff = (head) => off.some((h) => key(h) === key(head));

  /** Builds the grid for the given layers: [{name, kind, all: numbers of its heads}]. */
  function build(shape) {
    const text = JSON.stringify(shape);
    if (text === known) return;
    known = text;
    items = new Map();
    grid.replaceChildren(...shape.map((l) => el("section", { "aria-label": kinds[l.kind] }, el("h3", { text: kinds[l.kind] }),
      el("div", { class: "head-row" }, ...l.all.map((n) => {
        const head = { layer: l.name, number: n }, map = heatmap({ small: true });
        const pick = el("button", { type: "button", class: "head", onclick: () => choose(head, true) }, map.node, el("span", { text: t`head ${n}` }));
        const box = onToggle && el("input", { type: "checkbox", checked: true, onchange: () => onToggle(head, box.checked) });
        items.set(key(head), { map, pick, box });
        return el("div", { class: "head-item" }, pick, ...(box ? [el("label", {}, box, el("span", { text: t`on` }), el("span", { class: "unseen", text: `, ${headName(head)}` }))] : []));
      })))));
  }

  function choose(head, byReader = false) {
    chosen = head;
    drawLarge();
    for (const [k, { pick }] of items) pick.setAttribute("aria-pressed", String(k === key(head)));
    if (byReader) onPick?.(head);
  }

  function drawLarge() {
    if (!chosen) return;
    const layer = layers.find((l) => l.name === chosen.layer), at = layer ? layer.numbers.indexOf(chosen.number) : -1;
    const kind = layer?.kind ?? kindOf(chosen.layer), title = t`${kinds[kind]}, head ${chosen.number}`;
    if (at < 0) {
      big = null;
      large.replaceChildren(el("h3", { text: title }), el("p", { class: "quiet small", text: t`This head is off: it adds nothing.` }));
      return;
    }
    if (big?.kind !== kind) {
      const map = heatmap({ title, rowTitle: axes[kind][0], columnTitle: axes[kind][1], largest: 34 });
      big = { map, kind };
      large.replaceChildren(map.node);
    }
    big.map.rename(title);
    big.map.show({ weights: layer.heads[at], rows: layer.queries, columns: layer.keys, hidden: masked(layer), scale: "one" });
  }

  const kindOf = (name) => (name.includes("cross") ? "cross" : name.startsWith("decoder") ? "decoder" : "encoder");

  return { node, small: grid, large,
    /** Draws the heads of a text. all are the layers with all heads, off those that are switched off. */
    show(next, all = null, without = []) {
      layers = next;
      off = without;
      build((all ?? next.map((l) => ({ name: l.name, heads: l.numbers.length }))).map((l) => ({ name: l.name, kind: kindOf(l.name), all: Array.from({ length: l.heads }, (_, i) => i) })));
      for (const [k, item] of items) {
        const slash = k.lastIndexOf("/"), head = { layer: k.slice(0, slash), number: Number(k.slice(slash + 1)) };
        const layer = layers.find((l) => l.name === head.layer), at = layer ? layer.numbers.indexOf(head.number) : -1;
        if (item.box) item.box.checked = !isOff(head);
        item.pick.classList.toggle("off", at < 0);
        if (at < 0) {
          item.map.show({ weights: [0], rows: [""], columns: [""], hidden: [true], label: t`off` });
          continue;
        }
        item.map.show({ weights: layer.heads[at], rows: layer.queries, columns: layer.keys, hidden: masked(layer), scale: "one",
          label: t`largest weight of a row, on average ${number(sharpness(layer, layer.heads[at]))}` });
      }
      const first = [...items.keys()].find((k) => k.includes("cross")) ?? [...items.keys()][0];
      if (!chosen || !items.has(key(chosen))) {
        const slash = first.lastIndexOf("/");
        chosen = { layer: first.slice(0, slash), number: Number(first.slice(slash + 1)) };
      }
      choose(chosen);
    },
    choose,
  };
}
