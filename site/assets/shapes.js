// Lesson 4: the arrays of multi-head attention, their shapes and their numbers.

import { ask, byId, complain, drawn, el, latest, number, onTheme, say, sentence, slider, state, t } from "./page.js";
import { told } from "./errors.js";
import { canvasFor } from "./dom.js";
import { cells, scaleOf } from "./heatmap.js";

const ranges = { batch: "b", heads: "h", queries: "q", keys: "k", width: "d", "valid-0": "v0", "valid-1": "v1" }; // by name in the address
const presets = [
  [t`Dive into Deep Learning: 2 × 4 × 100, 5 heads`, [2, 5, 4, 6, 100, 3, 2, 1]],
  [t`64 × 12 × 300, 6 heads, 10 keys`, [64, 6, 12, 10, 300, 10, 10, 0]],
  [t`width 128, 8 heads`, [2, 8, 5, 7, 128, 7, 4, 0]],
  [t`labml.ai: width 512, 8 heads`, [2, 8, 10, 10, 512, 10, 6, 0]],
  [t`width 100, 3 heads: impossible`, [2, 3, 4, 6, 100, 3, 2, 1]],
];
const meanings = { B: t`sequences`, H: t`heads`, Lq: t`queries`, Lk: t`keys`, D: t`width`, E: t`size of a head` };
const steps = {
  input: [t`Inputs`, t`x has the vectors of the queries, y those of keys and values.`],
  project: [t`Project`, t`q = x·Wq, k = y·Wk and v = y·Wv. Each map is D × D, so no shape changes.`],
  split: [t`Split the width into heads`, t`D is read as H × E. No number moves: a head is a part of each vector.`],
  order: [t`Move the heads before the positions`, t`Now each head has its own matrix. Only here do numbers move.`],
  score: [t`Scores`, t`q·kᵀ / √E in each head. E is summed over, and Lk appears: a number for each query and key.`],
  mask: [t`Mask`, t`Scores of keys after the valid length become −∞. One length serves all heads and queries of its sequence.`],
  softmax: [t`Softmax over Lk`, t`Each row of weights sums to 1.`],
  mix: [t`Times the values`, t`Lk is summed over, and E is back.`],
  join: [t`Join the heads`, t`Positions before heads again; then H × E is read as D.`],
  out: [t`Output map`, t`out = joined·Wo, as wide as the input.`],
};
const orders = {
  attn: [t`attn, PyTorch`, t`Sequences, heads, queries, keys.`],
  d2l: [t`Dive into Deep Learning`, t`Heads of all sequences are one axis: a head is one more sequence to the rest of the code.`],
  labml: [t`labml.ai`, t`Queries and keys first, heads last: the order of recurrent networks.`],
};

let seed = 1, axis = "Lk", at = { B: 0, H: 0, Lq: 0, Lk: 0, E: 0 }, size = 1, heads = 1, result = null, figures = [];
const value = (id) => Number(byId(id).value);

/** Returns the index along an axis of the chosen number. */
const indexOf = (letter) => ({ D: at.H * size + at.E, "B·H": at.B * heads + at.H })[letter] ?? at[letter];

/** Returns the indices along an axis of an array that the coloured axis runs through, and how a slice names them; null if it does not. */
function along(letter, n) {
  const run = (from, step, count) => Array.from({ length: Math.max(0, Math.min(count, Math.ceil((n - from) / step))) }, (_, k) => from + k * step);
  if (letter === axis) return [run(0, 1, n), ":"];
  if (letter === "D" && axis === "E") return [run(at.H * size, 1, size), `${at.H * size}:${(at.H + 1) * size}`];
  if (letter === "D" && axis === "H") return [run(at.E, size, heads), `${at.E}::${size}`];
  if (letter === "B·H" && axis === "H") return [run(at.B * heads, 1, heads), `${at.B * heads}:${(at.B + 1) * heads}`];
  if (letter === "B·H" && axis === "B") return [run(at.H, heads, n), `${at.H}::${heads}`];
  return null;
}

/** Returns the number of an array at indices. */
const read = (a, indices) => a.data[indices.reduce((sum, i, n) => sum * a.shown[n] + i, 0)];

/** Returns where an axis is drawn: C and R are columns and rows of blocks, c and r those of a block. */
function places(a) {
  if (a.axes[0] === "B·H") return ["C", "r", "c"];
  if (a.axes.length === 3) return ["R", "r", "c"];
  return a.axes[2] === "H" ? ["R", "r", "C", "c"] : ["R", "C", "r", "c"];
}

/** Returns a figure of an array: its shape, a picture and its numbers along the coloured axis. */
function figure(a) {
  const where = places(a), counts = { R: 1, C: 1, r: 1, c: 1 };
  where.forEach((p, n) => (counts[p] = a.shown[n]));
  const canvas = el("canvas", { role: "img" }), field = el("div", { class: "array" }, canvas), numbers = el("p", { class: "numbers" });
  const chips = a.axes.map((letter, n) => chip(letter, a.shape[n]));
  const part = a.axes.some((l, n) => a.shape[n] > a.shown[n]) ? el("span", { class: "quiet small", text: " " + t`first ${result.sequences} sequences` }) : "";
  const node = el("div", { class: "one" }, el("h4", {}, el("code", { text: a.name }), el("span", { class: "shape" }, "[", ...chips, "]"), part), field, numbers);
  const weights = a.name === "weights";
  let plan = null;

  /** Returns the left upper corner of a cell. */
  const corner = (i) => [plan.left + i.C * (counts.c * plan.w + plan.gap) + i.c * plan.w, plan.top + i.R * (counts.r * plan.h + plan.down) + i.r * plan.h];
  /** Returns indices by place for indices by axis. */
  const byPlace = (indices) => Object.assign({ R: 0, C: 0, r: 0, c: 0 }, Object.fromEntries(where.map((p, n) => [p, indices[n]])));

  function draw() {
    const left = 16, top = 16, gap = where[2] === "C" ? 3 : 9, down = 10, wide = Math.max(120, node.clientWidth);
    const w = Math.min(15, (wide - left - 2 - (counts.C - 1) * gap) / (counts.C * counts.c)), h = Math.max(4, Math.min(12, w * 1.2, 150 / counts.r));
    plan = { left, top, gap, down, w, h };
    const context = canvasFor(canvas, wide, Math.ceil(top + counts.R * (counts.r * h + down) - down + 2));
    const [ink, accent, quiet] = [node, document.querySelector(".brand span"), byId("axes").firstChild].map((e) => getComputedStyle(e).color);
    const hidden = a.data.map((x) => x === null), scale = weights ? (x) => x : scaleOf({ weights: a.data, hidden, scale: "signed" }).place;
    const row = Array.from({ length: counts.c }), block = Array.from({ length: counts.r }), indices = a.axes.map(() => 0);
    const set = (p, i) => {
      const n = where.indexOf(p);
      if (n >= 0) indices[n] = i;
    };
    for (let R = 0; R < counts.R; R++)
      for (let C = 0; C < counts.C; C++) {
        const data = [];
        set("R", R);
        set("C", C);
        for (let r = 0; r < counts.r; r++)
          for (let c = 0; c < counts.c; c++) {
            set("r", r);
            set("c", c);
            data.push(read(a, indices));
          }
        const [x, y] = corner({ R, C, r: 0, c: 0 });
        context.strokeStyle = "#858d9b";
        context.lineWidth = 1;
        context.strokeRect(Math.round(x) - 0.5, Math.round(y) - 0.5, counts.c * w + 1, counts.r * h + 1);
        cells(context, { weights: data, rows: block, columns: row, hidden: data.map((x) => x === null), scale: weights ? "one" : "signed" }, x, y, w, h, scale);
      }
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = quiet;
    context.textBaseline = "middle";
    context.textAlign = "center";
    if (where.includes("R")) for (let R = 0; R < counts.R; R++) context.fillText(R, 4, corner({ R, C: 0, r: 0, c: 0 })[1] + (counts.r * h) / 2);
    if (counts.c * w > 11) for (let C = 0; C < counts.C && where.includes("C"); C++) context.fillText(C, corner({ R: 0, C, r: 0, c: 0 })[0] + (counts.c * w) / 2, 5);

    // The coloured axis: a bar beside the array, and the numbers along it.
    const here = a.axes.map(indexOf), chosen = byPlace(here), n = a.axes.findIndex((l, i) => along(l, a.shown[i]));
    const frame = (i, colour) => {
      const [x, y] = corner(i);
      context.strokeStyle = colour;
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.25, y + 0.25, Math.max(2, w - 0.5), Math.max(2, h - 0.5));
    };
    const inside = a.axes.every((_, i) => here[i] < a.shown[i]);
    if (n >= 0 && inside) {
      const [list] = along(a.axes[n], a.shown[n]), ends = [list[0], list.at(-1)].map((i) => corner({ ...chosen, [where[n]]: i })), right = /c/i.test(where[n]);
      const [x0, y0] = ends[0], [x1, y1] = ends[1], base = corner({ ...chosen, c: 0, r: 0 });
      context.fillStyle = accent;
      if (right) context.fillRect(x0, (where[n] === "C" ? top : base[1]) - 5, x1 - x0 + (where[n] === "C" ? counts.c * w : w), 3);
      else context.fillRect((where[n] === "R" ? left : base[0]) - 5, where[n] === "R" ? top : y0, 3, y1 - y0 + (where[n] === "R" ? counts.r * h : h));
      for (const i of list) frame({ ...chosen, [where[n]]: i }, accent);
    }
    if (inside) frame(chosen, ink);
    tell(n, here, inside);
  }

  /** Writes the numbers along the coloured axis, or the chosen number alone. */
  function tell(n, here, inside) {
    const [list, slice] = n >= 0 ? along(a.axes[n], a.shown[n]) : [[null], ""];
    const parts = here.flatMap((i, k) => [...(k ? [", "] : []), k === n ? el("b", { text: slice }) : String(i)]);
    const shown = inside ? list.slice(0, 12).map((i) => read(a, here.map((x, k) => (k === n ? i : x)))) : [];
    const texts = shown.map((x) => (x === null ? "−∞" : number(x, 3)));
    numbers.replaceChildren(a.name, "[", ...parts, "] = ", n >= 0 ? el("b", { text: texts.join(" ") }) : texts.join(""), list.length > 12 ? " …" : "");
    canvas.setAttribute("aria-label", t`${a.name}, an array of ${a.axes.map((l, i) => `${meanings[l] ?? l} ${a.shape[i]}`).join(", ")}`);
  }

  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left - plan.left, y = event.clientY - box.top - plan.top;
    const C = Math.floor(x / (counts.c * plan.w + plan.gap)), R = Math.floor(y / (counts.r * plan.h + plan.down));
    const hit = { C, R, c: Math.floor((x - C * (counts.c * plan.w + plan.gap)) / plan.w), r: Math.floor((y - R * (counts.r * plan.h + plan.down)) / plan.h) };
    if (Object.entries(hit).some(([p, i]) => i < 0 || i >= counts[p])) return;
    a.axes.forEach((letter, k) => {
      const i = hit[where[k]];
      if (letter === "D") [at.H, at.E] = [Math.floor(i / size), i % size];
      else if (letter === "B·H") [at.B, at.H] = [Math.floor(i / heads), i % heads];
      else at[letter] = i;
    });
    choose();
    say(numbers.textContent);
  });
  return { node, draw };
}

/** Returns a button that colours an axis. */
function chip(letter, text) {
  const own = letter === "B·H" ? "H" : letter;
  return el("button", { type: "button", class: "axis", "data-axis": own, "aria-label": t`${letter} ${text}: colour this axis`, onclick: () => {
    axis = own;
    choose();
    say(t`${meanings[axis]} are coloured`);
  } }, el("span", { text }), el("sub", { text: letter }));
}

/** Draws what depends on the coloured axis and the chosen number. */
function choose() {
  for (const b of document.querySelectorAll(".axis")) b.setAttribute("aria-pressed", String(b.dataset.axis === axis));
  for (const [letter, n] of Object.entries(limits())) {
    at[letter] = Math.max(0, Math.min(at[letter], n - 1));
    byId(`at-${letter}`).max = n - 1;
    byId(`at-${letter}`).value = byId(`at-${letter}-out`).textContent = at[letter];
  }
  for (const f of figures) f.draw();
  if (result) orderTable();
  save();
}

const limits = () => ({ B: Math.min(value("batch"), result?.sequences ?? 2), H: heads, Lq: value("queries"), Lk: value("keys"), E: size });

byId("axes").append(el("span", { class: "quiet small", text: t`axis` }), ...Object.entries(meanings).map(([letter, words]) => {
  const b = chip(letter, words);
  b.setAttribute("aria-label", t`${words}: colour this axis`);
  return b;
}));
byId("chosen").append(el("span", { class: "quiet", text: t`number at` }), ...[["B", t`sequence`], ["H", t`head`], ["Lq", t`query`], ["Lk", t`key`], ["E", t`element`]].map(([letter, words]) =>
  el("label", {}, words, el("input", { type: "range", id: `at-${letter}`, min: 0, max: 0, step: 1, oninput: (event) => {
    at[letter] = Number(event.target.value);
    choose();
  } }), el("output", { id: `at-${letter}-out` }))));
for (const range of byId("chosen").querySelectorAll("input")) slider(range);

/** Writes shapes and the place of the chosen weight, for three orders. */
function orderTable() {
  const sizes = { B: value("batch"), H: heads, Lq: value("queries"), Lk: value("keys"), D: value("width"), E: size };
  const rows = [[t`input`, ["B Lq D", "B Lq D", "Lq B D"]], [t`queries of the heads`, ["B H Lq E", "B·H Lq E", "Lq B H E"]], [t`scores and weights`, ["B H Lq Lk", "B·H Lq Lk", "Lq Lk B H"]], [t`output`, ["B Lq D", "B Lq D", "Lq B D"]]];
  const shape = (axes) => `[${axes.split(" ").map((l) => (l === "B·H" ? sizes.B * sizes.H : sizes[l])).join(" ")}]`;
  const chosen = Object.keys(orders).map((step) => {
    const a = result.arrays.find((x) => x.step === step), here = a.axes.map(indexOf);
    return t`[${here.join(", ")}] at ${here.reduce((sum, i, n) => sum * a.shape[n] + i, 0)}`;
  });
  byId("table").replaceChildren(el("caption", { class: "unseen", text: t`Shapes in three orders` }), el("thead", {}, el("tr", {}, el("td"), ...Object.values(orders).map(([name]) => el("th", { scope: "col", text: name })))),
    el("tbody", {}, ...rows.map(([name, list]) => el("tr", {}, el("th", { scope: "row", text: name }), ...list.map((axes) => el("td", {}, shape(axes), el("small", { text: axes }))))),
      el("tr", {}, el("th", { scope: "row", text: t`the chosen weight, its place in memory` }), ...chosen.map((text) => el("td", { text })))));
}

const compute = latest(async () => {
  for (const id of Object.keys(ranges)) byId(`${id}-out`).textContent = byId(id).value;
  byId("valid-0").max = byId("valid-1").max = value("keys");
  for (const id of ["valid-0", "valid-1"]) byId(`${id}-out`).textContent = value(id);
  byId("valid-1").disabled = value("batch") < 2;
  const now = Object.keys(ranges).map(value), known = presets.findIndex(([, list]) => list.slice(0, 7).every((n, i) => n === now[i]) && Boolean(list[7]) === byId("ones").checked);
  byId("preset").value = known < 0 ? "" : String(known);
  const r = await ask("shapes.steps", { batch: now[0], heads: now[1], queries: now[2], keys: now[3], width: now[4], lengths: [now[5], now[6]], ones: byId("ones").checked, seed }).catch((problem) => complain(problem.message));
  if (!r) return;
  complain("");
  byId("refused").hidden = !r.refused;
  byId("refused").textContent = r.refused ? sentence(told(r.refused)) : "";
  for (const id of ["strip", "orders", "axes", "chosen", "table", "whole"]) byId(id).hidden = Boolean(r.refused);
  if (r.refused) {
    result = null;
    save();
    return say(byId("refused").textContent);
  }
  [heads, size] = [now[1], now[4] / now[1]];
  result = { ...r, sequences: Math.min(now[0], r.arrays[0].shown[0]) };
  figures = [];
  const list = (names) => Object.entries(names).map(([step, [title, words]], n) => {
    const own = r.arrays.filter((a) => a.step === step).map(figure);
    figures.push(...own);
    const extra = step === "mask" ? " " + t`Valid lengths: [${r.lengths.slice(0, 4).join(" ") + (r.lengths.length > 4 ? " …" : "")}].` : "";
    return el("li", {}, el("h3", { text: title }), el("p", { class: "small", text: words + extra }), el("div", { class: `row of${own.length}` }, ...own.map((f) => f.node)));
  });
  byId("strip").replaceChildren(...list(steps));
  byId("orders").replaceChildren(...list(orders));
  byId("whole").textContent = t`The layer of attn in one call gives the same output; the largest difference is ${r.difference === 0 ? "0" : r.difference.toExponential(1).replace("e-", " × 10^−")}.`;
  choose();
});

function save() {
  const usual = presets[0][1], values = {};
  Object.entries(ranges).forEach(([id, name], n) => (values[name] = value(id) === usual[n] ? null : value(id)));
  const place = Object.values(at).join(",");
  state.set({ ...values, ones: byId("ones").checked ? null : 0, seed: seed === 1 ? null : seed, axis: axis === "Lk" ? null : axis, at: place === "0,0,0,0,0" ? null : place });
}

/** Lets the slider of the width stop at multiples of the heads only; a preset or an address may have another width. */
function possible(width, other = false) {
  const h = other && width % value("heads") ? 1 : value("heads");
  Object.assign(byId("width"), { step: h, min: h, max: 512 - (512 % h) });
  byId("width").value = Math.max(h, Math.round(width / h) * h);
}

/** Sets the sliders to numbers. */
function set(numbers) {
  byId("valid-0").max = byId("valid-1").max = 12; // until compute knows the keys
  Object.keys(ranges).forEach((id, n) => (byId(id).value = numbers[n]));
  possible(numbers[4], true);
}

async function load() {
  set(Object.values(ranges).map((name, n) => Number(state.get(name, presets[0][1][n]))));
  byId("ones").checked = state.get("ones", "1") === "1";
  seed = Math.max(0, Math.min(1e6, Math.round(state.get("seed", 1))));
  axis = meanings[state.get("axis")] ? state.get("axis") : "Lk";
  const given = state.get("at").split(",").map(Number);
  if (given.length === 5 && given.every((n) => Number.isInteger(n) && n >= 0)) Object.keys(at).forEach((letter, n) => (at[letter] = given[n]));
  else at = { B: 0, H: 0, Lq: 0, Lk: 0, E: 0 };
  await compute();
}

byId("preset").append(el("option", { value: "", text: t`your own` }), ...presets.map(([name], n) => el("option", { value: n, text: name })));
byId("preset").addEventListener("change", () => {
  const list = presets[byId("preset").value]?.[1];
  if (!list) return;
  set(list);
  byId("ones").checked = Boolean(list[7]);
  at = { B: 0, H: 0, Lq: 0, Lk: 0, E: 0 };
  compute();
});
for (const id of Object.keys(ranges)) byId(id).addEventListener("input", () => {
  if (id === "heads" || id === "width") possible(value("width"));
  compute();
});
byId("ones").addEventListener("change", compute);
byId("draws").addEventListener("click", () => {
  seed++;
  byId("ones").checked = false;
  compute();
});
let known = 0;
new ResizeObserver(() => {
  const wide = byId("strip").clientWidth;
  if (wide && wide !== known) for (const f of figures) f.draw();
  known = wide;
}).observe(byId("strip"));
onTheme(() => figures.forEach((f) => f.draw()));
state.onChange(load);
await load();
drawn();
