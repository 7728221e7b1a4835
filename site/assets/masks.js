// Lesson 6: masks, relative positions, layouts and a cache.

import { ask, byId, calm, complain, drawn, el, grouped, latest, number, onTheme, readout, say, state, t } from "./page.js";
import { chart } from "./chart.js";
import { css, inkOn, rgb } from "./colour.js";
import { heatmap } from "./heatmap.js";

const tokens = 12;

// What controls say, by the name in the address: [id, default].
const checks = { causal: true, window: false, valid: false, documents: false, prefix: false };
const ranges = { left: 3, right: 0, length: 9, "end-0": 5, "end-1": 12, tokens: 4, slope: 0.5, batch: 3, long: 4, one: 0, steps: 6 };
const radios = { position: "", scores: "" };
let seed = 1;

const radio = (name) => document.querySelector(`[name="${name}"]:checked`)?.value ?? "";
const value = (id) => Number(byId(id).value);

function load() {
  for (const [id, usual] of Object.entries(checks)) byId(id).checked = state.get(id, usual ? "1" : "0") === "1";
  for (const [id, usual] of Object.entries(ranges)) byId(id).value = state.get(id, usual);
  for (const [name, usual] of Object.entries(radios)) {
    const wanted = state.get(name, usual), all = [...document.querySelectorAll(`[name="${name}"]`)];
    (all.find((r) => r.value === wanted) ?? all[0]).checked = true;
  }
  seed = Math.max(0, Math.min(1e6, Math.round(state.get("seed", 1))));
}

function save() {
  const values = { seed: seed === 1 ? null : seed };
  for (const [id, usual] of Object.entries(checks)) values[id] = byId(id).checked === usual ? null : byId(id).checked ? 1 : 0;
  for (const [id, usual] of Object.entries(ranges)) values[id] = value(id) === usual ? null : value(id);
  for (const [name, usual] of Object.entries(radios)) values[name] = radio(name) === usual ? null : radio(name);
  state.set(values);
}

function outputs() {
  if (value("end-1") < value("end-0")) byId("end-1").value = value("end-0");
  byId("one").max = value("batch") - 1;
  byId("causal").disabled = byId("prefix").checked; // mask.Prefix allows what mask.Causal allows, and the prefix
  byId("causal-note").hidden = !byId("prefix").checked;
  for (const id of Object.keys(ranges)) byId(`${id}-out`).textContent = id === "slope" ? number(value(id)) : value(id);
}

// Masks and positions.

const map = heatmap({ title: t`Weights`, largest: 34 });
byId("map").append(map.node);

const build = latest(async () => {
  const on = (id) => byId(id).checked;
  const ends = value("end-0") === value("end-1") ? [value("end-0")] : [value("end-0"), value("end-1")];
  const args = { length: tokens, causal: on("causal"), t5: radio("position") === "t5", random: radio("scores") === "random", seed };
  if (on("window")) args.window = [value("left"), value("right")];
  if (on("valid")) args.valid = value("length");
  if (on("documents")) args.documents = ends;
  if (on("prefix")) args.prefix = value("tokens");
  if (radio("position") === "alibi") args.alibi = value("slope");
  const r = await ask("masks.build", args).catch((problem) => complain(problem.message));
  if (!r) return;
  complain("");
  const labels = Array.from({ length: tokens }, (_, i) => String(i)), count = r.hidden.filter((h) => !h).length;
  map.show({ rows: labels, columns: labels, weights: r.weights, hidden: r.hidden });
  const alone = labels.filter((_, i) => r.hidden.slice(i * tokens, (i + 1) * tokens).every(Boolean)).length;
  const words = t`${count} of ${tokens * tokens} pairs are visible.` + (alone === 1 ? " " + t`One query sees no key: its weights and output are 0.` : alone ? " " + t`${alone} queries see no key: their weights and output are 0.` : "");
  byId("visible").textContent = words;
  const parts = [r.score && `Score: ${r.score}`, r.mask && `Mask: ${r.mask}`, r.change && `Changes: []attn.ScoreChange{${r.change}}`].filter(Boolean);
  byId("expression").textContent = `out := attn.Attend(nil, q, k, v, attn.Options{${parts.join(", ")}})`;
  say(words);
});

// Layouts.

const layouts = latest(async () => {
  const [batch, length, one] = [value("batch"), value("long"), value("one")];
  const r = await ask("masks.layouts", { batch, length, seed }).catch((problem) => complain(problem.message));
  if (!r) return;
  byId("layouts").replaceChildren(...r.layouts.map((l, n) => {
    const columns = n === 0 ? length : batch;
    const grid = el("div", { class: "memory", role: "img", "aria-label": t`Order in memory: ${l.vectors.map(([b, i]) => t`sequence ${b} position ${i}`).join(", ")}` });
    grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 60px))`;
    for (const [b, i] of l.vectors) {
      const box = el("span", { class: b === one ? "here" : "away", text: i }), colour = rgb(0.2 + (0.6 * b) / 3);
      box.style.background = b === one ? css(colour) : `color-mix(in srgb, ${css(colour)} 35%, var(--card))`;
      if (b === one) box.style.color = inkOn(colour);
      grid.append(box);
    }
    const places = l.vectors.flatMap(([b], at) => (b === one ? [at] : []));
    return el("div", {}, el("h3", { text: n === 0 ? t`Batch first` : t`Sequence first` }), el("p", { class: "small quiet", text: `[${n === 0 ? "B L D" : "L B D"}] = [${l.shape.join(" ")}]; ` + t`sequence ${one} is at ${places.join(", ")}` }), grid);
  }));
  const text = r.difference === 0 ? t`The outputs of one layer in both layouts do not differ: the bits are the same.` : t`The outputs of one layer in both layouts differ by ${number(r.difference, 9)}.`;
  byId("layouts-read").textContent = text;
});

// A cache.

const rows = heatmap({ title: t`Weights computed so far`, largest: 22 });
const work = chart({ title: t`Scores computed, all steps together`, x: t`tokens`, y: t`scores`, height: 280 });
byId("cache").append(rows.node);
byId("work").append(work.node);

const grow = latest(async () => {
  const steps = value("steps"), r = await ask("masks.cache", { steps, seed }).catch((problem) => complain(problem.message));
  if (!r) return;
  const labels = Array.from({ length: steps }, (_, i) => String(i)), most = Number(byId("steps").max);
  rows.show({ rows: labels, columns: labels, weights: r.weights, hidden: r.hidden });
  readout(byId("cache-read"), [[t`keys in the cache`, steps], [t`scores of this step`, steps], [t`scores of all steps, with a cache`, grouped(r.with)], [t`without a cache`, grouped(r.without)], [t`the whole sequence at once gives`, r.same ? t`the same bits` : t`other bits`]]);
  const x = Array.from({ length: most }, (_, i) => i + 1), all = (n) => (n * (n + 1) * (n + 2)) / 6, one = (n) => (n * (n + 1)) / 2;
  work.show({ lines: [{ name: t`without a cache`, x, y: x.map(all), colour: 2 }, { name: t`with a cache`, x, y: x.map(one), colour: 1 }, { name: t`now`, x: [steps, steps], y: [r.without, r.with], colour: 0, points: true }],
    xRange: [0, most], yRange: [0, all(most)], summary: t`After ${steps} tokens: ${grouped(r.with)} scores with a cache, ${grouped(r.without)} without.` });
  say(t`${steps} tokens: ${grouped(r.with)} scores with a cache, ${grouped(r.without)} without.`);
});

let playing = 0;
function stop() {
  clearInterval(playing);
  playing = 0;
  byId("play").textContent = t`Play`;
}
function step() {
  const box = byId("steps");
  box.value = value("steps") >= Number(box.max) ? 1 : value("steps") + 1;
  outputs();
  save();
  return grow();
}
byId("step").addEventListener("click", () => {
  stop();
  step();
});
byId("play").addEventListener("click", () => {
  if (playing) return stop();
  byId("play").textContent = t`Stop`;
  if (value("steps") >= Number(byId("steps").max)) byId("steps").value = 0;
  playing = setInterval(() => {
    step();
    if (value("steps") >= Number(byId("steps").max)) stop();
  }, calm() ? 1200 : 450);
});

const figures = { steps: grow, batch: layouts, long: layouts, one: layouts };
for (const id of [...Object.keys(checks), ...Object.keys(ranges)]) byId(id).addEventListener("input", () => {
  if (id === "steps") stop();
  const owner = { left: "window", right: "window", length: "valid", "end-0": "documents", "end-1": "documents", tokens: "prefix" }[id];
  if (owner) byId(owner).checked = true; // a slider that moves switches its mask on
  if (id === "slope") document.querySelector('[name="position"][value="alibi"]').checked = true;
  outputs();
  save();
  (figures[id] ?? build)();
});
for (const node of document.querySelectorAll('[type="radio"]')) node.addEventListener("change", () => {
  save();
  build();
});
byId("draws").addEventListener("click", () => {
  seed++;
  document.querySelector('[name="scores"][value="random"]').checked = true;
  save();
  build();
});

async function all() {
  load();
  outputs();
  await Promise.all([build(), layouts(), grow()]);
}
onTheme(layouts);
state.onChange(() => {
  stop();
  return all();
});
await all();
drawn();
