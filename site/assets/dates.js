// Lesson 5: the translator of dates. Its heads are shown, switched off, measured and removed.

import { ask, byId, complain, drawn, el, later, latest, number, say, sentence, state, t } from "./page.js";
import { chart } from "./chart.js";
import { heatmap } from "./heatmap.js";
import { headGrid } from "./headgrid.js";
import { duration, training, unknown } from "./training.js";

const usual = t`Tuesday, 5 March 2019`, dates = 200;
const samples = [[t`English`, "Tuesday, 5 March 2019"], [t`French`, "le 1er août 1987"], [t`German`, "Montag, der 29. Februar 2016"], [t`Spanish`, "14 de septiembre de 2005"], [t`Italian`, "mercoledì 3 giugno 1992"],
  [t`Portuguese`, "terça-feira, 9 de maio de 1978"], [t`Dutch`, "zaterdag 21 augustus 2021"], [t`Swedish`, "torsdagen den 17 juli 1969"], [t`Danish`, "den 24. december 1999"], [t`Polish`, "11 listopada 2018 r."],
  [t`Chinese`, "2019年3月5日 星期二"], [t`Japanese`, "2019年3月5日(火)"], [t`numbers`, "07/04/76"]];
const methodNames = { "leave-one-out": t`leave one out`, gradient: t`gradient`, taylor: t`Taylor`, fisher: t`Fisher`, confidence: t`confidence`, "weight-norm": t`weight norm`, random: t`random` };
const methods = [["leave-one-out", t`The increase in loss without the head. One pass over the dates for each head, and one with all.`],
  ["gradient", t`How sensitive the loss is to a factor on the head's output. One backward pass for all heads.`],
  ["taylor", t`The first-order estimate of the change in loss without the head. The same backward pass.`],
  ["fisher", t`The mean of the squared gradient of that factor. The same backward pass.`],
  ["confidence", t`The mean of each row's largest weight: how sure the head is. One pass, no right answers needed.`],
  ["weight-norm", t`The norm of the head's part of the output projection. No dates needed.`],
  ["random", t`A random number: the baseline that the others have to beat.`]];

const kindOf = (head) => (head.layer.includes("cross") ? "cross" : head.layer.startsWith("decoder") ? "decoder" : "encoder");
const layerNames = { encoder: t`encoder`, decoder: t`decoder`, cross: t`cross-attention` };
const short = (head) => `${layerNames[kindOf(head)]} ${head.number}`;
const names = { encoder: "encoder.0.self", decoder: "decoder.0.self", cross: "decoder.0.cross" };
const parseHead = (text) => {
  const m = /^(encoder|decoder|cross)-([0-3])$/.exec(text);
  return m && { layer: names[m[1]], number: Number(m[2]) };
};
const written = (head) => `${kindOf(head)}-${head.number}`;
const same = (a, b) => a.layer === b.layer && a.number === b.number;
const called = (r) => (r.again ? t`by ${methodNames[r.method]}, measured again` : t`by ${methodNames[r.method]}`);
const percent = (q) => `${q.exact} (${number((100 * q.exact) / q.texts, 1)}%)`;

let model = null, off = [], chosen = { layer: names.cross, number: 0 }, ranking = null, taken = 0;

// Read a date.

const text = byId("text"), sample = byId("sample");
sample.append(el("option", { value: "", text: t`language` }), ...samples.map(([language, date]) => el("option", { value: date, text: `${language}: ${date}` })));
const grid = headGrid({
  onPick: (head) => {
    chosen = head;
    save();
  },
  onToggle: (head, on) => {
    off = on ? off.filter((h) => !same(h, head)) : [...off, head];
    changed();
  },
});
byId("grid").append(grid.node);

const read = latest(async () => {
  try {
    const s = await ask("dates.look", { text: text.value, off });
    byId("output").textContent = s.output || t`nothing`;
    byId("took").textContent = s.seconds ? duration(s.seconds) : "–";
    note(s.unknown.length ? sentence(unknown(s.unknown)) : "");
    grid.show(s.layers, model.layers, off);
    say(t`Writes ${s.output || t`nothing`}`);
  } catch (e) {
    byId("output").textContent = "–";
    note(sentence(e.message));
  }
});

function note(words) {
  byId("text-problem").hidden = !words;
  byId("text-problem").textContent = words;
}

let ending = null;

/** Measures the model without the heads that are off; a new call ends an earlier one. */
const judge = later(250, async () => {
  ending?.abort();
  const mine = (ending = new AbortController());
  try {
    const q = await ask("dates.measure", { off, dates }, (f) => !mine.signal.aborted && (byId("exact").textContent = t`${f.exact} of ${f.texts}`), mine.signal);
    if (mine.signal.aborted) return;
    byId("exact").textContent = percent(q);
    byId("loss").textContent = number(q.loss, 3);
    say(t`${q.exact} of ${q.texts} new dates are right with ${12 - off.length} heads.`);
  } catch (e) {
    if (mine.signal.aborted) return;
    byId("exact").textContent = byId("loss").textContent = "–";
    complain(e.message);
  }
});

function changed() {
  byId("on").textContent = t`${12 - off.length} of ${12}`;
  byId("exact").textContent = byId("loss").textContent = "…";
  save();
  read();
  judge();
}

text.oninput = () => {
  sample.value = "";
  save();
  read();
};
sample.onchange = () => {
  if (!sample.value) return;
  text.value = sample.value;
  save();
  read();
};
byId("new").onclick = async () => {
  const s = await ask("dates.sample", { number: taken++ });
  text.value = s.source;
  sample.value = "";
  save();
  read();
};
byId("all-on").onclick = () => {
  off = [];
  changed();
};
byId("layer-off").onclick = () => {
  off = [0, 1, 2, 3].map((number) => ({ layer: chosen.layer, number }));
  changed();
};

// Importance.

const method = byId("method"), repeat = byId("again"), map = heatmap({ title: t`Importance`, rowTitle: t`layer`, columnTitle: t`head`, largest: 56, digits: 4 });
byId("scores").append(map.node);
map.node.hidden = true;
method.append(...methods.map(([name]) => el("option", { value: name, text: methodNames[name] })));
method.onchange = repeat.onchange = () => {
  byId("method-words").textContent = methods.find(([name]) => name === method.value)[1] + (repeat.checked ? " " + t`After each removal, the remaining heads are measured again.` : "");
  if (ranking && (ranking.method !== method.value || ranking.again !== repeat.checked)) byId("rank-progress").textContent = t`The order below is still ${called(ranking)}: press the button.`;
  save();
};

let measuring = null;

async function rank() {
  measuring?.abort();
  const mine = (measuring = new AbortController());
  byId("rank").disabled = true;
  byId("rank-progress").textContent = t`Measuring …`;
  try {
    const by = method.value, again = repeat.checked, r = await ask("dates.importance", { dates, method: by, again }, (f) => (byId("rank-progress").textContent = t`${f.done} of ${f.all} batches`), mine.signal);
    pruning?.abort(); // it removes heads in the earlier order
    ranking = { ...r, method: by, again };
    const weights = r.heads.map((h) => h.score), signed = weights.some((w) => w < 0);
    map.node.hidden = false;
    map.show({ weights, rows: Object.values(layerNames), columns: ["0", "1", "2", "3"], ...(signed ? { low: Math.min(...weights) } : {}) });
    byId("order").replaceChildren(el("h3", { text: t`From least to most important, ${called(ranking)}` + (again ? " " + t`(numbers: with all heads)` : "") }), el("ol", { class: "small" },
      ...r.order.map((head) => el("li", { text: `${short(head)}: ${number(r.heads.find((h) => same(h, head)).score, 4)}` }))));
    byId("rank-progress").textContent = t`Measured in ${duration(r.seconds)}.`;
    curves = curves.filter((c) => c.name !== called(ranking)).slice(-2); // with this one, three
    curves.push({ name: called(ranking), points: [] });
    drawCurve();
    prune();
  } catch (e) {
    byId("rank-progress").textContent = sentence(e.message);
  } finally {
    byId("rank").disabled = false;
  }
}
byId("rank").onclick = rank;

// Pruning.

const k = byId("k"), curve = chart({ title: t`Right dates as heads are removed`, x: t`heads removed`, y: t`right, percent`, height: 220 });
let curves = []; // by what was measured, the present one last
byId("curve").append(curve.node);

function drawCurve() {
  const inks = [2, 3, 1].slice(-Math.max(1, curves.length)), parts = [];
  const lines = curves.flatMap(({ name, points }, n) => {
    const list = points.toSorted((a, b) => a.k - b.k), line = { x: list.map((p) => p.k), y: list.map((p) => p.percent), colour: inks[n] };
    if (list.length) parts.push(`${name}: ${list.map((p) => t`${p.k} removed: ${number(p.percent, 1)}%`).join(", ")}`);
    return [{ ...line, name: t`least important first, ${name}` }, { ...line, points: true }];
  });
  curve.show({ lines, xRange: [0, 12], yRange: [0, 100], summary: parts.join("; ") || t`Nothing is measured yet.` });
}

let pruning = null;

/** Measures the model without the k least important heads. */
async function removed(count, signal) {
  const gone = ranking.order.slice(0, count);
  const q = await ask("dates.measure", { off: gone, dates }, null, signal);
  if (!signal.aborted) {
    const now = curves.at(-1);
    now.points = [...now.points.filter((p) => p.k !== count), { k: count, percent: (100 * q.exact) / q.texts }];
    drawCurve();
  }
  return [gone, q];
}

const prune = later(200, async () => {
  if (!ranking) {
    byId("removed").textContent = t`Measure the importance first.`;
    return;
  }
  pruning?.abort();
  const mine = (pruning = new AbortController()), count = Number(k.value);
  try {
    byId("removed").textContent = count ? t`Without ${ranking.order.slice(0, count).map(short).join(", ")}.` : t`With all heads.`;
    const [gone, q] = await removed(count, mine.signal);
    if (mine.signal.aborted) return;
    byId("pruned-exact").textContent = percent(q);
    const s = await ask("dates.speed", { off: gone, dates: 50 }, (f) => (byId("prune-progress").textContent = t`timing ${f.done} of ${f.all}`), mine.signal);
    if (mine.signal.aborted) return;
    byId("prune-progress").textContent = "";
    byId("parameters").textContent = s.parameters.toLocaleString("en") + (count ? ` (−${number(100 * (1 - s.parameters / s.wholeParameters), 0)}%)` : "");
    byId("pruned-time").textContent = duration(s.seconds);
    const [times, least, most] = s.faster, spread = t`${number(least, 2)} to ${number(most, 2)}`; // of the middle half of the turns
    const faster = least <= 1 && most >= 1 ? t`no difference (${spread} ×)` : `${number(times, 2)} (${spread}) ×`;
    byId("pruned-speed").textContent = faster;
    say(t`${count} heads removed: ${q.exact} of ${q.texts} dates are right; speed: ${faster}.`);
  } catch (e) {
    if (!mine.signal.aborted) byId("prune-progress").textContent = sentence(e.message);
  }
});
k.oninput = () => {
  byId("k-out").textContent = k.value;
  save();
  prune();
};
byId("sweep").onclick = async () => {
  if (!ranking) await rank();
  if (!ranking) return; // it says why
  pruning?.abort();
  const mine = (pruning = new AbortController());
  try {
    for (let count = 0; count <= 12 && !mine.signal.aborted; count++) {
      byId("prune-progress").textContent = t`${count} of ${12}`;
      await removed(count, mine.signal);
    }
    byId("prune-progress").textContent = "";
  } catch (e) {
    byId("prune-progress").textContent = mine.signal.aborted ? "" : sentence(e.message);
  }
};

// The address.

function save() {
  state.set({ text: text.value === usual ? null : text.value.slice(0, 100), off: off.length ? off.map(written).join(",") : null,
    look: same(chosen, { layer: names.cross, number: 0 }) ? null : written(chosen), method: method.value === methods[0][0] ? null : method.value, again: repeat.checked ? 1 : null, k: Number(k.value) || null });
  last = state.text();
}
let last = null;

async function load() {
  if (state.text() === last) return;
  last = state.text();
  model ??= await ask("dates.open", {});
  text.value = state.get("text", usual);
  sample.value = samples.some(([, date]) => date === text.value) ? text.value : "";
  off = state.get("off").split(",").map(parseHead).filter((head, i, all) => head && all.findIndex((h) => h && same(h, head)) === i);
  chosen = parseHead(state.get("look")) ?? chosen;
  repeat.checked = state.get("again") === "1";
  method.value = methods.some(([name]) => name === state.get("method")) ? state.get("method") : methods[0][0];
  k.value = byId("k-out").textContent = String(Math.max(0, Math.min(12, Math.round(state.get("k", 0)))));
  method.onchange();
  await read();
  grid.choose(chosen);
  changed();
  drawCurve();
  if (Number(k.value) > 0) await rank();
  else prune();
}

state.onChange(load);
await load().catch((e) => complain(e.message));
await training(byId("train"), { task: "dates", prefix: "t-", example: usual, hint: t`date`, answer: (date) => (date === usual ? "2019-03-05" : ""), test: 200, autostart: false });
drawn();
