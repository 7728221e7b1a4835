// The measures of all heads as a table that can be sorted.

import { byId, el, number } from "./dom.js";
import { change, lens, headOn, state } from "./state.js";
import { measures } from "./data.js";
import { headShort, headTitle } from "./tokens.js";
import { t } from "./words.js";

const root = byId("measures");
const box = el("details", {}, el("summary", {}, el("h2", { text: t`Measures of all heads` })));
const area = el("div", { class: "scroll", tabindex: "0", "aria-label": t`Table of measures` });
box.append(area);
box.addEventListener("toggle", () => change({ m: box.open ? "1" : "" }));
root.append(box);

let columns = [], record = null, through = "", rows = null, turn = 0;

export function prepareTable(list) {
  columns = list;
}

// showTable fetches and draws the table, if it is open.
export async function showTable(next) {
  box.open = state.m === "1";
  if (!box.open) return;
  if (record !== next || through !== lens()) { // measures depend on the lens
    record = next;
    through = lens();
    rows = null;
    const mine = ++turn;
    area.replaceChildren(el("p", { class: "quiet", text: t`Measuring…` }));
    const found = [];
    let drawn = performance.now();
    try {
      for (let i = 0; i < next.layers.length; i++) { // one at a time: the server computes them on all processors
        const list = await measures(next, i);
        if (mine !== turn) return;
        list.forEach((values, head) => found.push({ layer: i, head, values }));
        rows = found;
        if (performance.now() - drawn > 400 && i + 1 < next.layers.length) { // show partial results
          draw();
          area.prepend(el("p", { class: "quiet", text: t`Measuring: ${i + 1} of ${next.layers.length} layers` }));
          drawn = performance.now();
        }
      }
    } catch (problem) {
      if (mine === turn) area.replaceChildren(el("p", { class: "note", text: problem.message }));
      record = null;
      return;
    }
    rows = found;
  }
  if (rows) draw();
}

function draw() {
  const key = state.o.replace(/-$/, ""), falling = state.o.endsWith("-");
  const at = columns.findIndex((c) => c.key === key);
  const sorted = [...rows];
  const order = (a, b) => a.layer - b.layer || a.head - b.head;
  if (at >= 0) {
    sorted.sort((a, b) => {
      const x = a.values[at], y = b.values[at];
      if (x == null || y == null) return (x == null) - (y == null) || order(a, b); // missing values last
      return (falling ? y - x : x - y) || order(a, b);
    });
  } else if (key === "head" && falling) sorted.reverse();
  const largest = columns.map((_, c) => Math.max(1e-9, ...rows.map((r) => Math.abs(r.values[c] ?? 0))));
  const sortable = (k, label, help) => {
    const on = k === (key || "head");
    const button = el("button", { type: "button", title: help, onclick: () => change({ o: on && !falling ? k + "-" : on ? k : k === "head" ? "" : k + "-" }) },
      label, el("span", { class: "arrow", "aria-hidden": "true", text: on ? (falling ? "▼" : "▲") : "" }));
    return el("th", { scope: "col", "aria-sort": on ? (falling ? "descending" : "ascending") : "none" }, button);
  };
  const a = headOn("a"), b = headOn("b");
  const body = sorted.map((r) => {
    const l = record.layers[r.layer];
    const is = (p) => p.layer === r.layer && p.head === r.head;
    const open = is(a) || (state.cmp === "head" && is(b));
    const name = el("button", { type: "button", text: headShort(l, r.head), title: headTitle(record, r),
      onclick: () => change({ [state.cmp === "head" || state.cmp === "model" ? state.side : "a"]: `${r.layer}.${r.head}` }) });
    return el("tr", { class: open ? "open" : "" }, el("th", { scope: "row" }, name), ...r.values.map((x, c) => {
      const td = el("td", { text: number(x, 2) });
      if (x != null) td.style.setProperty("--part", (100 * Math.min(1, Math.abs(x) / largest[c])).toFixed(1) + "%");
      return td;
    }));
  });
  const focused = [...area.querySelectorAll("thead button")].indexOf(document.activeElement);
  const left = area.scrollLeft, top = area.scrollTop;
  area.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, sortable("head", t`head`, t`Kind, layer and head`),
    ...columns.map((c) => sortable(c.key, c.label, c.help)))), el("tbody", {}, ...body)));
  area.scrollLeft = left;
  area.scrollTop = top;
  if (focused >= 0) area.querySelectorAll("thead button")[focused]?.focus();
}
