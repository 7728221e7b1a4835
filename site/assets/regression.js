// Lesson 1: kernel regression. Observations are dragged, the width is set or learnt; Go computes the estimate.

import { ask, byId, complain, drawn, latest, number, onTheme, readout, say, state, svg, t } from "./page.js";
import { chart } from "./chart.js";
import { handle, place } from "./drag.js";
import { heatmap } from "./heatmap.js";

const xRange = [0, 5], yRange = [-2, 6], steps = 300, rate = 0.5, usual = 50; // as in examples/regression
const curve = chart({ x: "x", y: "y", height: 320, onDraw: () => drawPoints() });
const loss = chart({ title: t`Loss while learning`, x: t`step`, y: t`squared error`, height: 260 });
const map = heatmap({ title: t`Weights`, rowTitle: t`place x (query)`, columnTitle: t`observation at x (key)`, largest: 14 });
byId("curve").append(curve.node);
byId("loss").append(loss.node);
byId("weights").append(map.node);

let points = { x: [], y: [] }, moved = false, chosen = 0, shown = null, learning = null, history = [];
let w = 1, x = 2.5, seed = 1, noise = 0.5;

/** Writes the state into the address; what equals the default is left out. */
function save() {
  state.set({ w: w === 1 ? null : number(w, 3), x: x === 2.5 ? null : x, seed: moved || seed === 1 ? null : seed, noise: moved || noise === 0.5 ? null : noise,
    trap: byId("trap").checked ? 1 : null,
    points: moved ? points.x.map((v, i) => `${v.toFixed(2)},${points.y[i].toFixed(2)}`).join(",") || "none" : null });
}

/** Reads the state of the address. */
async function load() {
  w = Math.max(0.1, Math.min(1000, state.get("w", 1)));
  x = Math.max(0, Math.min(5, state.get("x", 2.5)));
  seed = Math.max(0, Math.min(1e6, Math.round(state.get("seed", 1))));
  noise = Math.max(0, Math.min(1.5, state.get("noise", 0.5)));
  byId("trap").checked = state.get("trap") === "1";
  const given = state.get("points");
  moved = given !== "";
  if (moved) {
    const list = given.split(",").map(Number).filter(Number.isFinite).slice(0, 400);
    points = { x: [], y: [] };
    for (let i = 0; i + 1 < list.length; i += 2) points.x.push(Math.max(0, Math.min(5, list[i]))), points.y.push(Math.max(-2, Math.min(6, list[i + 1])));
  } else points = await ask("regression.data", { seed, n: usual, noise });
  controls();
  await estimate();
}

function controls() {
  byId("w").value = Math.log10(w);
  byId("w").setAttribute("aria-valuetext", t`w ${number(w)}, width ${number(1 / w)}`);
  byId("w-out").textContent = number(w);
  byId("x").value = x;
  byId("x-out").textContent = number(x);
  byId("noise").value = noise;
  byId("noise-out").textContent = number(noise, 1);
}

const estimate = latest(async () => {
  if (points.x.length === 0) {
    shown = null;
    draw();
    return;
  }
  try {
    shown = { ...(await ask("regression.estimate", { x: points.x, y: points.y, w })), keys: { x: [...points.x], y: [...points.y] } };
    complain("");
  } catch (problem) {
    complain(problem.message);
  }
  draw();
});

curve.picture.setAttribute("role", "group");
const grips = svg("g"), line = svg("line", { class: "ink-0", stroke: "currentColor", "stroke-dasharray": "2 3" });
curve.above.append(line, grips);

/** Draws both figures from the last answer. */
function draw() {
  const n = points.x.length, at = Math.round(x * 20);
  const lines = shown ? [{ name: t`truth`, x: shown.x, y: shown.truth, colour: 0, dashed: true }, { name: t`estimate`, x: shown.x, y: shown.out, colour: 1 }] : [];
  curve.show({ lines: [...lines, { name: t`observations, as large as their weights`, x: [], y: [], colour: 2, points: true }], xRange, yRange,
    summary: shown ? t`The estimate from ${n} observations. At ${number(x)} it is ${number(shown.out[at])}, the truth ${number(shown.truth[at])}.` : t`No observations.` });
  const weights = points.x.map((_, j) => weight(j)), most = weights.indexOf(Math.max(...weights));
  readout(byId("curve-read"), shown ? [[t`estimate at x`, number(shown.out[at])], [t`truth at x`, number(shown.truth[at])], [t`largest weight`, t`${number(weights[most], 3)}, at x = ${number(points.x[most])}`],
    [t`mean squared error against the truth`, number(shown.error, 3)]] : [[t`observations`, t`none`], [t`to add one`, t`double-click in the figure, or press New observations`]]);
  byId("learn").disabled = n === 0;
  drawLearning();
}

/** Returns the weight of observation j for the chosen query. */
const weight = (j) => (j < (shown?.keys.x.length ?? 0) ? shown.weights[Math.round(x * 20) * shown.keys.x.length + j] : 0);

/** Draws the query and the observations above the chart. */
function drawPoints() {
  const to = curve.at(), n = points.x.length;
  line.setAttribute("x1", to.x(x));
  line.setAttribute("x2", to.x(x));
  line.setAttribute("y1", to.y(yRange[0]));
  line.setAttribute("y2", to.y(yRange[1]));
  while (grips.childElementCount > n) grips.lastChild.remove();
  while (grips.childElementCount < n) grips.append(grip(grips.childElementCount));
  chosen = Math.max(0, Math.min(chosen, n - 1));
  [...grips.children].forEach((g, i) => {
    const [big, hit] = g.children;
    for (const c of [big, hit]) {
      c.setAttribute("cx", to.x(points.x[i]));
      c.setAttribute("cy", to.y(points.y[i]));
    }
    big.setAttribute("r", 3 + 13 * Math.sqrt(weight(i)));
    g.setAttribute("tabindex", i === chosen ? 0 : -1);
    g.setAttribute("aria-label", t`observation ${i + 1} of ${n}: x ${number(points.x[i])}, y ${number(points.y[i])}, weight ${number(weight(i), 3)}`);
  });
}

function drawLearning() {
  const trap = byId("trap").checked, name = trap ? t`loss, itself included` : t`loss, itself left out`;
  const lossOf = (h) => (trap ? h.selfToo : points.x.length > 1 ? h.loss : null); // a single observation has no others
  readout(byId("learn-read"), [[t`step`, history.length ? history.at(-1).step : 0], ["w", number(w)], [name, shown ? number(lossOf(shown), 3) : "–"],
    [t`mean squared error against the truth`, shown ? number(shown.error, 3) : "–"]]);
  const list = history.length ? history : shown ? [{ step: 0, loss: shown.loss, selfToo: shown.selfToo, error: shown.error }] : [];
  loss.show({ lines: [{ name, x: list.map((h) => h.step), y: list.map(lossOf), colour: 1 },
    { name: t`against the truth`, x: list.map((h) => h.step), y: list.map((h) => h.error), colour: 2 }], xRange: [0, steps], yRange: [0, Math.max(0.5, ...list.map((h) => Math.max(h.loss, h.error)))] });
  if (!shown) return map.show({ weights: [], rows: [], columns: [] });
  const n = shown.keys.x.length, every = 2; // each second place is a row
  const order = shown.keys.x.map((_, j) => j).sort((a, b) => shown.keys.x[a] - shown.keys.x[b]), rows = shown.x.filter((_, i) => i % every === 0);
  map.show({ rows: rows.map((v) => number(v, 1)), columns: order.map((j) => number(shown.keys.x[j], 1)), weights: rows.flatMap((_, i) => order.map((j) => shown.weights[i * every * n + j])) });
}

/** Returns the handle of observation i. */
const grip = (i) => handle(curve.picture, { ink: "ink-2", role: t`observation`, end: save,
  start() {
    stop();
    chosen = i;
  },
  drag: (a, b) => move(i, ...curve.at().back(a, b)) },
svg("circle", { fill: "currentColor", "fill-opacity": 0.6 }), svg("circle", { r: 13, fill: "transparent" }));

function move(i, a, b) {
  moved = true;
  points.x[i] = Math.max(0, Math.min(5, a));
  points.y[i] = Math.max(-2, Math.min(6, b));
  history = [];
  estimate();
}

curve.picture.addEventListener("dblclick", (event) => {
  if (points.x.length >= 200) return complain(t`there are already 200 observations`);
  stop();
  const [a, b] = curve.at().back(...place(curve.picture, event));
  points.x.push(0);
  points.y.push(0);
  chosen = points.x.length - 1;
  move(chosen, a, b);
  save();
});

curve.picture.addEventListener("keydown", (event) => {
  const by = event.shiftKey ? 0.25 : 0.05, go = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by] }[event.key], n = points.x.length;
  const choose = { PageUp: chosen - 1, PageDown: chosen + 1, Home: 0, End: n - 1 }[event.key];
  if (go) move(chosen, points.x[chosen] + go[0], points.y[chosen] + go[1]);
  else if (choose !== undefined) chosen = (choose + n) % n;
  else if (event.key === "Insert" && n < 200) {
    points.x.push(x);
    points.y.push(shown?.out[Math.round(x * 20)] ?? 0);
    chosen = n;
    move(chosen, points.x[chosen], points.y[chosen]);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    points.x.splice(chosen, 1);
    points.y.splice(chosen, 1);
    moved = true;
    history = [];
    estimate();
  } else return;
  event.preventDefault();
  stop();
  draw();
  grips.children[chosen]?.focus();
  save();
});

function stop() {
  learning?.abort();
  learning = null;
  byId("learn").textContent = t`Learn`;
}

byId("w").addEventListener("input", () => {
  stop();
  w = 10 ** Number(byId("w").value);
  if (Math.abs(w - 1) < 0.012) w = 1;
  history = [];
  controls();
  estimate();
  save();
});
byId("x").addEventListener("input", () => {
  x = Number(byId("x").value);
  controls();
  draw();
  save();
  if (shown) say(t`At ${number(x)} the estimate is ${number(shown.out[Math.round(x * 20)])}.`);
});

async function fresh() {
  stop();
  moved = false;
  history = [];
  points = await ask("regression.data", { seed, n: usual, noise });
  controls();
  await estimate();
  save();
}
byId("noise").addEventListener("input", () => {
  noise = Number(byId("noise").value);
  fresh();
});
byId("fresh").addEventListener("click", () => {
  seed++;
  fresh();
});
byId("clear").addEventListener("click", () => {
  stop();
  points = { x: [], y: [] };
  moved = true;
  history = [];
  estimate();
  save();
  say(t`There are no observations. Double-click into the figure to add one, or press New observations.`);
});

byId("trap").addEventListener("change", () => {
  stop();
  history = [];
  drawLearning();
  save();
});
byId("again").addEventListener("click", () => {
  stop();
  w = 1;
  history = [];
  controls();
  estimate();
  save();
});
byId("learn").addEventListener("click", async () => {
  if (learning) return stop();
  learning = new AbortController();
  const mine = learning, keys = { x: [...points.x], y: [...points.y] };
  byId("learn").textContent = t`Stop`;
  if (history.length === 0 || history.at(-1).step >= steps) history = [];
  const first = history.at(-1)?.step ?? 0;
  let waiting = false;
  try {
    await ask("regression.learn", { ...keys, w, steps: steps - first, rate, self: byId("trap").checked }, (f) => {
      if (learning !== mine) return;
      w = f.w;
      shown = { ...f, keys };
      if (f.step > 0 || first === 0) history.push({ step: first + f.step, loss: f.loss, selfToo: f.selfToo, error: f.error });
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        controls();
        draw();
      });
    }, mine.signal);
    if (learning === mine) say(t`Step ${history.at(-1).step}: w is ${number(w)}, the squared error against the truth is ${number(shown.error, 3)}.`);
  } catch (problem) {
    complain(problem.message);
  }
  if (learning === mine) stop();
  controls();
  draw();
  save();
});

onTheme(draw);
state.onChange(() => {
  stop();
  history = [];
  return load();
});
await load();
drawn();
