// Lesson 2: scores and the masked softmax.

import { ask, byId, complain, drawn, el, latest, number, onTheme, readout, say, state, svg, t } from "./page.js";
import { chart } from "./chart.js";
import { weightTable } from "./colour.js";
import { handle } from "./drag.js";
import { heatmap } from "./heatmap.js";

// Seven scores, one query.

const start = { query: [1.5, 1], keys: [[2, 1.5], [0.9, 0.4], [-1.5, 1.5], [-1.5, -1], [1, -1.8], [3.2, 2.6]] };
const names = { "dot product": t`dot product`, scaled: t`scaled`, cosine: t`cosine`, Gaussian: t`Gaussian`, bilinear: t`bilinear`, "scaled bilinear": t`scaled bilinear`, additive: t`additive` };
const letters = "abcdef", reach = 4, side = 360;
let plane = structuredClone(start), seed = 1, valid = 6, list = null;

const scale = side / (2 * reach), px = (v) => side / 2 + v * scale, py = (v) => side / 2 - v * scale;
const arrows = svg("g"), picture = svg("svg", { viewBox: `0 0 ${side} ${side}`, role: "group", "aria-label": t`A query and six keys in a plane` },
  svg("line", { class: "axis", x1: 0, x2: side, y1: side / 2, y2: side / 2 }), svg("line", { class: "axis", y1: 0, y2: side, x1: side / 2, x2: side / 2 }), arrows);
byId("plane").append(picture);

/** Returns a vector with a handle at its end. */
function vector(name, ink, get, set, padding = () => false) {
  const called = name === "query" ? t`query` : t`key ${name.at(-1)}`;
  const line = svg("line", { class: ink, stroke: "currentColor", "stroke-width": 2, x1: px(0), y1: py(0) });
  const dot = svg("circle", { r: 6, fill: "currentColor" }), hit = svg("circle", { r: 23, fill: "transparent" }), text = svg("text", { class: "name", text: name === "query" ? "q" : name.at(-1) });
  const limit = (v) => Math.max(-reach, Math.min(reach, Math.round(v * 100) / 100));
  const move = (x, y) => {
    set([limit(x), limit(y)]);
    compare();
  };
  const grip = handle(picture, { ink, role: called, end: save, drag: (x, y) => move((x - side / 2) / scale, (side / 2 - y) / scale) }, dot, text, hit);
  grip.setAttribute("tabindex", "0");
  grip.addEventListener("keydown", (event) => {
    const by = event.shiftKey ? 0.5 : 0.1, go = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by] }[event.key];
    if (!go) return;
    event.preventDefault();
    move(get()[0] + go[0], get()[1] + go[1]);
    save();
  });
  arrows.append(line, grip);
  return () => {
    const [x, y] = get();
    line.setAttribute("x2", px(x));
    line.setAttribute("y2", py(y));
    for (const c of [dot, hit]) {
      c.setAttribute("cx", px(x));
      c.setAttribute("cy", py(y));
    }
    text.setAttribute("x", Math.max(8, Math.min(side - 12, px(x) + 10)));
    text.setAttribute("y", Math.max(14, Math.min(side - 4, py(y) - 8)));
    for (const node of [line, grip]) node.setAttribute("opacity", padding() ? 0.35 : 1);
    grip.setAttribute("aria-label", `${called}: ${number(x)}, ${number(y)}` + (padding() ? ", " + t`padding` : ""));
  };
}
const draws = [...start.keys.map((_, j) => vector(`key ${letters[j]}`, "ink-2", () => plane.keys[j], (v) => (plane.keys[j] = v), () => j >= valid)),
  vector("query", "ink-1", () => plane.query, (v) => (plane.query = v))];

const compare = latest(async () => {
  draws.forEach((draw) => draw());
  byId("valid").value = valid;
  byId("valid-out").textContent = valid;
  try {
    list = await ask("scores.compare", { ...plane, valid, seed });
    complain("");
  } catch (problem) {
    return complain(problem.message);
  }
  table();
  const [dot] = list, most = dot.weights.indexOf(Math.max(...dot.weights));
  say(valid ? t`The dot product gives most weight to key ${letters[most]}: ${number(dot.weights[most])}.` : t`No key is valid: all weights are 0.`);
});

/** Formats a score; one of 10 and more has a digit less, so that tables fit on phones. */
const short = (v, digits) => number(v, Math.abs(v) < 9.95 ? digits : digits - 1);

function table() {
  if (!list) return;
  const columns = [...letters], hidden = [...letters].map((_, j) => j >= valid);
  if (byId("what").value === "scores")
    byId("compare").replaceChildren(el("table", { class: "weights" }, el("caption", { class: "unseen", text: t`Scores of each key` }), el("thead", {}, el("tr", {}, el("td"), ...columns.map((c) => el("th", { scope: "col", text: c })))),
      el("tbody", {}, ...list.map((s) => el("tr", {}, el("th", { scope: "row", text: names[s.name] }), ...s.scores.map((v, j) => j < valid ? el("td", { text: short(v, 2) }) : el("td", { class: "masked", text: "−∞" })))))));
  else byId("compare").replaceChildren(weightTable({ rows: list.map((s) => names[s.name]), columns, weights: list.map((s) => s.weights), hidden, caption: t`Weight of each key` }));
}

function save() {
  const text = [plane.query, ...plane.keys].flat().join(",");
  state.set({ at: text === [start.query, ...start.keys].flat().join(",") ? null : text, seed: seed === 1 ? null : seed, valid: valid === 6 ? null : valid, show: byId("what").value || null,
    task: byId("task").value || null, elements: byId("elements").value === "16" ? null : byId("elements").value,
    lengths: lengths.join(",") === "7,4" ? null : lengths.join(","), nan: byId("nan").checked ? 1 : null, keysonly: byId("keys-only").checked ? 1 : null, e: size === 6 ? null : 2 ** size, vectors: vectors === 1 ? null : vectors });
}

byId("what").addEventListener("change", () => {
  table();
  save();
});
byId("valid").addEventListener("input", () => {
  valid = Number(byId("valid").value);
  compare();
  save();
});
byId("draws").addEventListener("click", () => {
  seed++;
  compare();
  save();
});
byId("home").addEventListener("click", () => {
  plane = structuredClone(start);
  [seed, valid] = [1, 6];
  compare();
  save();
});

// Three scores learn.

const learnt = [t`dot product, with a learnt map`, t`the same, scaled`, t`additive`], losses = chart({ title: t`Loss while learning`, x: t`step`, y: t`loss (log scale)`, height: 260 });
byId("trained").append(losses.node);
let training = null, curves = null;

/** Draws the means of ten steps each. */
function drawTraining() {
  const parts = (curves ?? [[], [], []]).map((list) => Array.from({ length: Math.floor(list.length / 10) }, (_, i) => list.slice(10 * i, 10 * i + 10).reduce((a, b) => a + b, 0) / 10));
  readout(byId("train-read"), [[t`step`, t`${curves?.[0].length ?? 0} of ${400}`], ...learnt.map((name, n) => [name, number(parts[n].at(-1))])]);
  losses.show({ lines: parts.map((y, n) => ({ name: learnt[n], x: y.map((_, i) => 10 * i + 10), y, colour: [2, 1, 3][n] })), xRange: [0, 400], log: true,
    summary: curves ? t`Loss after ${curves[0].length} steps: ${learnt.map((name, n) => `${name} ${number(parts[n].at(-1))}`).join(", ")}.` : t`No step yet.` });
}

function stopTraining() {
  training?.abort();
  training = null;
  byId("train").textContent = t`Train`;
}
byId("train").addEventListener("click", async () => {
  if (training) return stopTraining();
  const mine = (training = new AbortController()), take = (list) => {
    if (training !== mine) return;
    curves = list;
    drawTraining();
  };
  byId("train").textContent = t`Stop`;
  try {
    take(await ask("scores.train", { e: Number(byId("elements").value), near: byId("task").value === "near" }, take, mine.signal));
    if (training === mine) say(losses.picture.getAttribute("aria-label"));
  } catch (problem) {
    if (training === mine) complain(problem.message);
  }
  if (training === mine) stopTraining();
});
for (const id of ["task", "elements"]) byId(id).addEventListener("change", () => {
  stopTraining();
  save();
});

// Valid lengths.

let lengths = [7, 4];
const maps = Array.from({ length: 6 }, (_, n) => heatmap({ title: t`Sequence ${n < 3 ? 1 : 2}, head ${n % 3}`, largest: 30 }));
byId("lengths").append(...maps.map((m) => m.node));

const masked = latest(async () => {
  const nan = byId("nan").checked;
  lengths.forEach((n, b) => {
    byId(`length-${b}`).value = n;
    byId(`length-${b}-out`).textContent = n;
  });
  const keysOnly = byId("keys-only").checked, r = await ask("scores.lengths", { lengths, nan, keysOnly }).catch((problem) => complain(problem.message));
  if (!r) return;
  const l = r.length, labels = (b) => Array.from({ length: l }, (_, i) => (i < lengths[b] ? String(i) : "–"));
  maps.forEach((m, n) => {
    const b = Math.floor(n / r.heads);
    m.show({ rows: labels(b), columns: labels(b), weights: r.weights.slice(n * l * l, (n + 1) * l * l), hidden: r.hidden.slice(b * l * l, (b + 1) * l * l), low: 0, high: 1 });
  });
  byId("lengths-read").textContent = (nan ? t`The output for valid queries sums to ${number(r.out, 4)}, and contains no NaN although padding does.` : t`The output for valid queries sums to ${number(r.out, 4)}.`) +
    (keysOnly ? " " + t`${r.broken} of ${2 * l - lengths[0] - lengths[1]} output vectors of padding contain NaN.` : "");
});
for (const b of [0, 1]) byId(`length-${b}`).addEventListener("input", () => {
  lengths[b] = Number(byId(`length-${b}`).value);
  masked();
  save();
  say(t`Sequence ${b + 1} has ${lengths[b]} valid vectors.`);
});
for (const id of ["nan", "keys-only"]) byId(id).addEventListener("change", () => {
  masked();
  save();
});

// What scaling does.

let size = 6, vectors = 1, sizes = null;
const largest = chart({ title: t`Largest weight, mean of 64 queries`, x: "E", y: t`weight`, height: 240 });
const slope = chart({ title: t`Gradient of the softmax, Σ w(1 − w)`, x: "E", y: t`gradient`, height: 240 });
byId("largest").append(largest.node);
byId("slope").append(slope.node);

async function scaling() {
  sizes = await ask("scores.scaling", { seed: vectors }).catch((problem) => complain(problem.message));
  drawScaling();
}

function drawScaling() {
  byId("size").value = size;
  byId("size").setAttribute("aria-valuetext", `E ${2 ** size}`);
  byId("size-out").textContent = 2 ** size;
  if (!sizes) return;
  const now = sizes[size], columns = now.plain.map((_, j) => String(j));
  byId("softmax").replaceChildren(weightTable({ corner: t`key`, rows: [t`softmax of q·k`, t`softmax of q·k/√E`], columns, weights: [now.plain, now.scaled], caption: t`Weights for E = ${now.e}` }));
  byId("softmax").firstChild.tBodies[0].prepend(el("tr", {}, el("th", { scope: "row", text: "q·k" }), ...now.scores.map((v) => el("td", { text: short(v, 1) }))));
  const lines = (of) => [{ name: "q·k", x: sizes.map((s) => s.e), y: sizes.map((s) => of(s)[0]), colour: 2 }, { name: "q·k/√E", x: sizes.map((s) => s.e), y: sizes.map((s) => of(s)[1]), colour: 1 },
    { name: t`E chosen`, x: [now.e, now.e], y: of(now), colour: 0, points: true }];
  const words = (of, what) => t`${what} for E = ${now.e}: ${number(of(now)[0], 3)} unscaled, ${number(of(now)[1], 3)} scaled; for E = 1024: ${number(of(sizes.at(-1))[0], 3)} and ${number(of(sizes.at(-1))[1], 3)}.`;
  largest.show({ lines: lines((s) => s.largest), yRange: [0, 1], logX: true, summary: words((s) => s.largest, t`Largest weight`) });
  slope.show({ lines: lines((s) => s.slope), yRange: [0, 1], logX: true, summary: words((s) => s.slope, t`Gradient`) });
}
byId("size").addEventListener("input", () => {
  size = Number(byId("size").value);
  drawScaling();
  save();
  say(t`E ${2 ** size}: the largest weight, mean of 64 queries, is ${number(sizes?.[size].largest[0])} unscaled, ${number(sizes?.[size].largest[1])} scaled.`);
});
byId("vectors").addEventListener("click", () => {
  vectors++;
  scaling();
  save();
});

async function load() {
  const whole = (name, fallback, low, high) => Math.max(low, Math.min(high, Math.round(state.get(name, fallback))));
  const at = state.get("at").split(",").map(Number);
  plane = structuredClone(start);
  if (at.length === 14 && at.every((v) => Math.abs(v) <= reach)) plane = { query: at.slice(0, 2), keys: start.keys.map((_, j) => at.slice(2 + 2 * j, 4 + 2 * j)) };
  seed = whole("seed", 1, 0, 1e6);
  valid = whole("valid", 6, 0, 6);
  byId("what").value = state.get("show") === "scores" ? "scores" : "";
  stopTraining();
  byId("task").value = state.get("task") === "near" ? "near" : "";
  byId("elements").value = ["4", "64"].includes(state.get("elements")) ? state.get("elements") : "16";
  drawTraining();
  const given = state.get("lengths", "7,4").split(",").map(Number);
  lengths = given.length === 2 && given.every((n) => Number.isInteger(n) && n >= 0 && n <= 7) ? given : [7, 4];
  byId("nan").checked = state.get("nan") === "1";
  byId("keys-only").checked = state.get("keysonly") === "1";
  size = Math.max(0, Math.min(10, Math.round(Math.log2(Math.max(1, state.get("e", 64))))));
  vectors = whole("vectors", 1, 0, 1e6);
  await Promise.all([compare(), masked(), scaling()]);
}
onTheme(() => {
  table();
  drawScaling();
  drawTraining();
});
state.onChange(load);
await load();
drawn();
