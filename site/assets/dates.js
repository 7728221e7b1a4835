// Lesson 5: the translator of dates. Its heads are shown, switched off, measured and removed.

import { ask, byId, complain, el, later, latest, number, say, sentence, state } from "./page.js";
import { chart } from "./chart.js";
import { heatmap } from "./heatmap.js";
import { headGrid } from "./headgrid.js";
import { duration, training, unknown } from "./training.js";

const usual = "Tuesday, 5 March 2019", dates = 200;
const samples = [["English", usual], ["French", "le 1er août 1987"], ["German", "Montag, der 29. Februar 2016"], ["Spanish", "14 de septiembre de 2005"], ["Italian", "mercoledì 3 giugno 1992"],
  ["Portuguese", "terça-feira, 9 de maio de 1978"], ["Dutch", "zaterdag 21 augustus 2021"], ["Swedish", "torsdagen den 17 juli 1969"], ["Danish", "den 24. december 1999"], ["Polish", "11 listopada 2018 r."], ["numbers", "07/04/76"]];
const methods = [["leave-one-out", "The increase in loss without the head. One pass over the dates for each head, and one with all."],
  ["gradient", "How sensitive the loss is to a factor on the head's output. One backward pass for all heads."],
  ["taylor", "The first-order estimate of the change in loss without the head. The same backward pass."],
  ["fisher", "The mean of the squared gradient of that factor. The same backward pass."],
  ["confidence", "The mean of each row's largest weight: how sure the head is. One pass, no right answers needed."],
  ["weight-norm", "The norm of the head's part of the output projection. No dates needed."],
  ["random", "A random number: the baseline that the others have to beat."]];

const kindOf = (head) => (head.layer.includes("cross") ? "cross" : head.layer.startsWith("decoder") ? "decoder" : "encoder");
const short = (head) => `${kindOf(head).replace("cross", "cross-attention")} ${head.number}`;
const names = { encoder: "encoder.0.self", decoder: "decoder.0.self", cross: "decoder.0.cross" };
const parseHead = (text) => {
  const m = /^(encoder|decoder|cross)-([0-3])$/.exec(text);
  return m && { layer: names[m[1]], number: Number(m[2]) };
};
const written = (head) => `${kindOf(head)}-${head.number}`;
const same = (a, b) => a.layer === b.layer && a.number === b.number;
const called = (r) => `by ${r.method.replaceAll("-", " ")}${r.again ? ", measured again" : ""}`;
const percent = (q) => `${q.exact} (${number((100 * q.exact) / q.texts, 1)}%)`;

let model = null, off = [], chosen = { layer: names.cross, number: 0 }, ranking = null, drawn = 0;

// Read a date.

const text = byId("text"), sample = byId("sample");
sample.append(el("option", { value: "", text: "language" }), ...samples.map(([language, date]) => el("option", { value: date, text: `${language}: ${date}` })));
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
    byId("output").textContent = s.output || "nothing";
    byId("took").textContent = duration(s.seconds);
    note(s.unknown.length ? sentence(unknown(s.unknown)) : "");
    grid.show(s.layers, model.layers, off);
    say(`Writes ${s.output || "nothing"}`);
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
    const q = await ask("dates.measure", { off, dates }, (f) => !mine.signal.aborted && (byId("exact").textContent = `${f.exact} of ${f.texts}`), mine.signal);
    if (mine.signal.aborted) return;
    byId("exact").textContent = percent(q);
    byId("loss").textContent = number(q.loss, 3);
    say(`${q.exact} of ${q.texts} new dates are right with ${12 - off.length} heads.`);
  } catch (e) {
    if (mine.signal.aborted) return;
    byId("exact").textContent = byId("loss").textContent = "–";
    complain(e.message);
  }
});

function changed() {
  byId("on").textContent = `${12 - off.length} of 12`;
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
  const s = await ask("dates.sample", { number: drawn++ });
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

const method = byId("method"), repeat = byId("again"), map = heatmap({ title: "Importance", rowTitle: "layer", columnTitle: "head", largest: 56, digits: 4 });
byId("scores").append(map.node);
map.node.hidden = true;
method.append(...methods.map(([name]) => el("option", { value: name, text: name.replaceAll("-", " ") })));
method.onchange = repeat.onchange = () => {
  byId("method-words").textContent = methods.find(([name]) => name === method.value)[1] + (repeat.checked ? " After each removal, the remaining heads are measured again." : "");
  if (ranking && (ranking.method !== method.value || ranking.again !== repeat.checked)) byId("rank-progress").textContent = `The order below is still ${called(ranking)}: press the button.`;
  save();
};

let measuring = null;

async function rank() {
  measuring?.abort();
  const mine = (measuring = new AbortController());
  byId("rank").disabled = true;
  byId("rank-progress").textContent = "Measuring …";
  try {
    const by = method.value, again = repeat.checked, r = await ask("dates.importance", { dates, method: by, again }, (f) => (byId("rank-progress").textContent = f.removed ? `${f.removed} of ${f.all} heads removed` : `${f.done} of ${f.all} batches`), mine.signal);
    pruning?.abort(); // it removes heads in the earlier order
    ranking = { ...r, method: by, again };
    const weights = r.heads.map((h) => h.score), signed = weights.some((w) => w < 0);
    map.node.hidden = false;
    map.show({ weights, rows: ["encoder", "decoder", "cross-attention"], columns: ["0", "1", "2", "3"], ...(signed ? { low: Math.min(...weights) } : {}) });
    byId("order").replaceChildren(el("h3", { text: `From least to most important, ${called(ranking)}${again ? " (numbers: with all heads)" : ""}` }), el("ol", { class: "small" },
      ...r.order.map((head) => el("li", { text: `${short(head)}: ${number(r.heads.find((h) => same(h, head)).score, 4)}` }))));
    byId("rank-progress").textContent = `Measured in ${duration(r.seconds)}.`;
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

const k = byId("k"), curve = chart({ title: "Right dates as heads are removed", x: "heads removed", y: "right, percent", height: 220 });
let curves = []; // by what was measured, the present one last
byId("curve").append(curve.node);

function drawCurve() {
  const inks = [2, 3, 1].slice(-Math.max(1, curves.length)), parts = [];
  const lines = curves.flatMap(({ name, points }, n) => {
    const list = points.toSorted((a, b) => a.k - b.k), line = { x: list.map((p) => p.k), y: list.map((p) => p.percent), colour: inks[n] };
    if (list.length) parts.push(`${name}: ${list.map((p) => `${p.k} removed: ${number(p.percent, 1)}%`).join(", ")}`);
    return [{ ...line, name: `least important first, ${name}` }, { ...line, points: true }];
  });
  curve.show({ lines, xRange: [0, 12], yRange: [0, 100], summary: parts.join("; ") || "Nothing is measured yet." });
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
    byId("removed").textContent = "Measure the importance first.";
    return;
  }
  pruning?.abort();
  const mine = (pruning = new AbortController()), count = Number(k.value);
  try {
    byId("removed").textContent = count ? `Without ${ranking.order.slice(0, count).map(short).join(", ")}.` : "With all heads.";
    const [gone, q] = await removed(count, mine.signal);
    if (mine.signal.aborted) return;
    byId("pruned-exact").textContent = percent(q);
    const s = await ask("dates.speed", { off: gone, dates: 50 }, (f) => (byId("prune-progress").textContent = `timing ${f.done} of ${f.all}`), mine.signal);
    if (mine.signal.aborted) return;
    byId("prune-progress").textContent = "";
    byId("parameters").textContent = `${s.parameters.toLocaleString("en")} (−${number(100 * (1 - s.parameters / s.wholeParameters), 0)}%)`;
    byId("pruned-time").textContent = duration(s.seconds);
    const [times, least, most] = s.faster, spread = `${number(least, 2)} to ${number(most, 2)}`; // of the middle half of the turns
    const faster = least <= 1 && most >= 1 ? `no difference (${spread} ×)` : `${number(times, 2)} (${spread}) ×`;
    byId("pruned-speed").textContent = faster;
    say(`${count} heads removed: ${q.exact} of ${q.texts} dates are right; speed: ${faster}.`);
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
      byId("prune-progress").textContent = `${count} of 12`;
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
  last = location.hash;
}
let last = null;

async function load() {
  if (location.hash === last) return;
  last = location.hash;
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
await training(byId("train"), { task: "dates", prefix: "t-", example: usual, hint: "date", answer: (date) => (date === usual ? "2019-03-05" : ""), test: 200, autostart: false });
document.body.dataset.drawn = "";
