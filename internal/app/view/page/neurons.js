// The neuron view: the scores of one query from the query, each key, and their products per dimension.

import { el, number, svg } from "./dom.js";
import { change, state } from "./state.js";
import { signedCSS } from "./colour.js";
import { neurons, row, weight } from "./data.js";
import { isMasked } from "./output.js";
import { chosen, labelOf, shorten, whyNoVectors } from "./tokens.js";
import { t } from "./words.js";

const most = 200; // keys to show

// queryOf returns the index of the selected query token, by default the first; -1 if this head has no queries and keys.
export function queryOf(what) {
  const layer = what.record.layers[what.layer];
  if (!layer.vectors || typeof what.head !== "number" || what.q.spans.length === 0) return -1;
  const pick = chosen(what.q, what.k);
  const place = pick?.side === "q" ? pick.at : pick && what.same ? Math.min(pick.at, what.q.spans.length - 1) : 0;
  return what.q.spans[place][0];
}

// parts returns a row for each key: { j, label, mark, k, product, score, weight, masked }.
function parts(what, found, query) {
  const { q, k, weights, size } = found, layer = what.record.layers[what.layer], seen = layer.visible ? layer.visible[query] : Infinity;
  const keys = what.k.spans.flatMap(([from, to], at) => Array.from({ length: to - from }, (_, i) => ({ j: from + i, mark: what.k.marks[at] })));
  const list = keys.map(({ j, mark }) => {
    const key = k.subarray(j * size, (j + 1) * size), product = key.map((x, d) => x * q[d]);
    return { j, mark, key, product, score: layer.scale * product.reduce((sum, x) => sum + x, 0), weight: weights[j] ?? NaN, masked: j >= seen };
  });
  if (list.length <= most) return list;
  const bound = list.map((p) => p.weight || 0).sort((a, b) => b - a)[most - 1];
  return list.filter((p) => (p.weight || 0) >= bound).slice(0, most);
}

// rounded returns the rounded weights of a query from the map: an exported page has no exact ones.
const rounded = ({ m, q, k }, query) => {
  const i = q.spans.findIndex(([from]) => from === query), list = [];
  k.spans.forEach(([from, to], j) => { list[from] = i >= 0 && to === from + 1 && m.blockQ * m.blockK === 1 ? weight(m, i, j) : NaN; });
  return list;
};

const largest = (lists) => lists.reduce((most, list) => list.reduce((m, x) => Math.max(m, Math.abs(x)), most), 0) || 1;

export function neuronsView(say, tell) {
  const select = el("select", { onchange: () => change({ tok: "q" + select.value }) });
  const head = el("thead"), body = el("tbody"), note = el("p", { class: "quiet small" });
  const table = el("table", { class: "neurons" }, head, body);
  const node = el("div", {}, el("div", { class: "ofquery" }, el("label", {}, t`Query` + " ", select)), el("div", { class: "scroll", tabindex: "0", "aria-label": t`Query and keys per dimension` }, table), note);
  const key = el("p", { class: "legend" });
  let what = null, turn = 0, strips = [];

  // strip draws numbers as a row of coloured cells; the tooltip of each cell is its number.
  function strip(values, scale, tells) {
    const canvas = el("canvas", { width: values.length, height: 1, class: "strip", "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    values.forEach((x, d) => {
      context.fillStyle = signedCSS(Math.max(-1, Math.min(1, x / scale)));
      context.fillRect(d, 0, 1, 1);
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      canvas.title = tells(Math.max(0, Math.min(values.length - 1, Math.floor(((event.clientX - box.left) / box.width) * values.length))));
    });
    strips.push(canvas);
    return canvas;
  }

  function options() {
    const { q } = what;
    if (select.children.length !== q.spans.length || select.dataset.of !== q.labels.join("\u0000")) {
      select.dataset.of = q.labels.join("\u0000");
      select.replaceChildren(...q.labels.map((label, i) => el("option", { value: q.spans[i][0], text: `${q.spans[i][0]}  ${shorten(label, 24)}` })));
    }
  }

  async function draw() {
    const mine = ++turn, query = queryOf(what);
    options();
    select.value = String(query);
    if (query < 0) {
      head.replaceChildren();
      body.replaceChildren();
      key.replaceChildren();
      note.textContent = typeof what.head === "number" ? whyNoVectors(what.record) : t`Means and rollouts have no queries and keys; choose a head.`;
      return;
    }
    let found;
    try {
      const asked = what, { q, k, size } = await neurons(what.record, what.layer, what.head);
      const weights = await row(asked.record, asked.layer, asked.head, query, "").catch(() => rounded(asked, query));
      found = { q: q.subarray(query * size, (query + 1) * size), k, size, weights };
    } catch (problem) {
      if (mine === turn) note.textContent = problem.message;
      return;
    }
    if (mine !== turn) return;
    const list = parts(what, found, query), { q, size } = found, axis = what.record.axes[what.record.layers[what.layer].k];
    const scale = largest([q, ...list.map((p) => p.key)]), products = largest(list.map((p) => p.product)), most = Math.max(...list.map((p) => p.weight || 0), 1e-9);
    strips = [];
    head.replaceChildren(
      el("tr", {}, el("th", { scope: "col", text: t`key` }), el("th", { scope: "col", text: t`k, ${size} dimensions` }), el("th", { scope: "col", text: "q ∘ k" }), el("th", { scope: "col", text: t`score` }), el("th", { scope: "col", text: t`weight` })),
      el("tr", { class: "query" }, el("th", { scope: "row", text: "q" }), el("td", {}, strip(q, scale, (d) => t`dimension ${d}: q ${number(q[d])}`)), el("td"), el("td"), el("td")));
    body.replaceChildren(...list.map((p) => {
      const label = labelOf(axis, p.j);
      const weight = el("td", { text: p.masked ? t`masked` : number(p.weight) });
      weight.style.setProperty("--part", (100 * (p.weight || 0) / most).toFixed(1) + "%");
      const tells = (d) => t`dimension ${d}: q ${number(q[d])} · k ${number(p.key[d])} = ${number(p.product[d])}`;
      return el("tr", { class: p.masked ? "hidden-key" : "", onpointerenter: () => tell({ side: "k", at: spanAt(p.j) }), onpointerleave: () => tell(null) },
        el("th", { scope: "row", class: (p.mark ? "mark" : "") + (isMasked(what, "k", spanAt(p.j)) ? " struck" : ""), title: t`key ${p.j}`, text: shorten(label, 16) }), el("td", {}, strip(p.key, scale, tells)), el("td", {}, strip(p.product, products, tells)),
        el("td", { text: number(p.score, 2) }), weight);
    }));
    note.textContent = (what.k.spans.length > list.length ? t`The ${list.length} keys with the largest weights.` + " " : "") + (state.w ? t`Words are shown as their tokens.` + " " : "");
    key.replaceChildren(el("span", { text: t`q and k from ${number(-scale)} to ${number(scale)}, products from ${number(-products)} to ${number(products)}; blue is less than 0, orange is more. The score is ${number(what.record.layers[what.layer].scale)} times the sum of the products, before soft-cap, bias and mask.` }));
  }

  const spanAt = (j) => what.k.spans.findIndex(([from, to]) => from <= j && j < to);

  return {
    node, key, flows: true,
    show(next) {
      what = next;
      draw();
    },
    cancel: () => false,
    mirror() {},
    // svg returns a picture of the table.
    svg() {
      const box = table.getBoundingClientRect(), group = svg("g", {}), style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      for (const c of table.querySelectorAll("th, td")) {
        const r = c.getBoundingClientRect(), x = r.left - box.left, y = r.top - box.top, canvas = c.querySelector("canvas");
        if (canvas) {
          const at = canvas.getBoundingClientRect();
          group.append(svg("image", { x: at.left - box.left, y: at.top - box.top, width: at.width, height: at.height, href: canvas.toDataURL("image/png"), preserveAspectRatio: "none", "image-rendering": "pixelated" }));
        } else if (c.textContent) {
          const right = c.tagName === "TD";
          group.append(svg("text", { x: right ? x + r.width - 8 : x + 4, y: y + r.height / 2, "dominant-baseline": "central", "text-anchor": right ? "end" : "start", "font-size": 12, fill: colour("--ink"), text: c.textContent }));
        }
      }
      return { node: group, width: Math.ceil(box.width), height: Math.ceil(box.height), legend: key.textContent };
    },
  };
}
