// Lesson 8: attention without a softmax. A curve is read from a state, and four layers learn to recall.

import { ask, byId, complain, drawn, latest, number, onTheme, readout, say, state, t } from "./page.js";
import { chart } from "./chart.js";
import { heatmap } from "./heatmap.js";

const within = (name, fallback, low, high) => Math.max(low, Math.min(high, Math.round(state.get(name, fallback))));

// A curve from a state.

const most = 200, stride = 77; // which visits all observations, in no order of places
const curve = chart({ x: "x", y: "y", height: 300 });
const sums = heatmap({ title: t`The state`, rowTitle: t`sum`, columnTitle: t`feature`, largest: 26 });
byId("curve").append(curve.node);
byId("state").append(sums.node);
let n = 20, p = 10, seed = 1, all = null, shown = null;

const estimate = latest(async () => {
  const order = Array.from({ length: n }, (_, i) => (i * stride) % most), x = order.map((i) => all.x[i]), y = order.map((i) => all.y[i]);
  try {
    shown = { ...(await ask("linear.state", { x, y, p })), points: { x, y } };
    complain("");
  } catch (problem) {
    return complain(problem.message);
  }
  drawState();
});

function drawState() {
  if (!shown) return;
  const { x, y } = shown.points, size = shown.state.length / 2;
  const apart = Math.max(...shown.out.map((v, i) => (v === null ? 0 : Math.abs(v - shown.softmax[i]))));
  readout(byId("state-read"), [[t`numbers in the state`, t`${size} × 2 = ${2 * size}`], [t`numbers that a softmax reads`, t`${x.length} × 2 = ${2 * x.length}`],
    [t`width 1/w of the kernel`, number(1 / shown.w)], [t`largest distance of the curves`, number(apart)]]);
  curve.show({ lines: [{ name: t`truth`, x: shown.x, y: shown.truth, colour: 0, dashed: true }, { name: t`from all observations, softmax`, x: shown.x, y: shown.softmax, colour: 3 },
    { name: t`from the state`, x: shown.x, y: shown.out, colour: 1, dashed: true }, { name: t`observations`, x, y, colour: 2, points: true }], xRange: [0, 5], yRange: [-2, 6],
  summary: t`Two estimates from ${x.length} observations; they differ by at most ${number(apart)}.` });
  const features = Array.from({ length: size }, (_, i) => String(i));
  sums.show({ rows: ["S", "z"], columns: features, weights: [0, 1].flatMap((c) => features.map((_, i) => shown.state[2 * i + c])), scale: "signed" });
}

function controls() {
  byId("n").value = n;
  byId("n-out").textContent = n;
  byId("p").value = p;
  byId("p").setAttribute("aria-valuetext", String(2 * p + 1));
  byId("p-out").textContent = 2 * p + 1;
  byId("add").disabled = n >= most;
}

async function change(next = {}) {
  n = next.n ?? n;
  p = next.p ?? p;
  controls();
  save();
  await estimate();
}
byId("n").addEventListener("input", () => change({ n: Number(byId("n").value) }));
byId("p").addEventListener("input", () => change({ p: Number(byId("p").value) }));
byId("add").addEventListener("click", async () => {
  await change({ n: n + 1 });
  say(t`${n} observations, and the state still has ${2 * (2 * p + 1)} numbers.`);
});
byId("fresh").addEventListener("click", async () => {
  seed++;
  all = await ask("regression.data", { seed, n: most, noise: 0.5 });
  await change();
});

// Four layers recall.

const names = { softmax: t`softmax`, linear: t`linear`, gated: t`gated`, "gated delta": t`gated delta` }, colours = { softmax: 0, linear: 4, gated: 2, "gated delta": 1 };
const share = chart({ title: t`Digits recalled`, x: t`pairs in the sequence`, y: t`share`, height: 260 });
byId("recall").append(share.node);
const maps = Object.fromEntries(Object.entries(names).map(([rule, title]) => [rule, heatmap({ title, rowTitle: t`question`, columnTitle: t`token`, largest: 24 })]));
byId("matrices").append(...Object.values(maps).map((m) => m.node));
let running = null, last = null;

function drawRecall() {
  const { step = 0, steps = 400, seconds = 0, pairs = [], rules = [], tokens = [] } = last ?? {}, first = tokens.length / 2;
  const percent = (r, of) => (pairs.includes(of) ? `${number(100 * r.recalled[pairs.indexOf(of)], 0)}%` : "–");
  readout(byId("recall-read"), [[t`step`, t`${step} of ${steps}`], [t`computing time`, last ? `${number(seconds, 1)} s` : "–"],
    ...rules.map((r) => [names[r.name], t`${percent(r, 8)} of 8 pairs, ${percent(r, 16)} of 16`])]);
  share.show({ lines: rules.map((r) => ({ name: names[r.name], x: pairs, y: r.recalled, colour: colours[r.name], dashed: r.name === "softmax" })), xRange: [2, 16], yRange: [0, 1],
    summary: last ? t`After ${step} steps, of 16 pairs: ` + rules.map((r) => `${names[r.name]} ${percent(r, 16)}`).join(", ") : t`No step yet.` });
  byId("matrices").hidden = rules.length === 0;
  for (const r of rules) maps[r.name].show({ rows: tokens.slice(first), columns: tokens, weights: r.matrix, scale: "signed", hidden: r.matrix.map((_, i) => i % tokens.length > first + Math.floor(i / tokens.length)) });
}

function stop() {
  running?.abort();
  running = null;
  byId("train").textContent = t`Train`;
}

async function train() {
  if (running) return stop();
  const mine = (running = new AbortController());
  byId("train").textContent = t`Stop`;
  try {
    let waiting = false;
    const result = await ask("linear.recall", { size: Number(byId("size").value), again: byId("again").checked, seed: 1 }, (f) => {
      if (running !== mine) return;
      last = f;
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        drawRecall();
      });
    }, mine.signal);
    if (running !== mine) return;
    last = result;
    drawRecall();
    say(share.picture.getAttribute("aria-label"));
  } catch (problem) {
    complain(problem.message);
  }
  if (running === mine) stop();
}
byId("train").addEventListener("click", train);
for (const id of ["size", "again"]) byId(id).addEventListener("change", () => {
  stop();
  save();
});

function save() {
  state.set({ n: n === 20 ? null : n, p: p === 10 ? null : p, seed: seed === 1 ? null : seed, size: byId("size").value === "8" ? null : byId("size").value, again: byId("again").checked ? 1 : null });
}

/** Reads the state of the address. */
async function load() {
  stop();
  n = within("n", 20, 1, most);
  p = within("p", 10, 1, 20);
  seed = within("seed", 1, 0, 1e6);
  byId("size").value = ["4", "16"].includes(state.get("size")) ? state.get("size") : "8";
  byId("again").checked = state.get("again") === "1";
  controls();
  drawRecall();
  all = await ask("regression.data", { seed, n: most, noise: 0.5 });
  await estimate();
}

onTheme(() => {
  drawState();
  drawRecall();
});
state.onChange(load);
await load();
drawn();
