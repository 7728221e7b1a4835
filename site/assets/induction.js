// Lesson 9: which head did it? Two layers of attention learn to continue what repeats; their heads are silenced, patched
// from another sequence, and pruned.

import { ask, byId, calm, complain, drawn, el, grouped, latest, number, onTheme, readout, say, state, t } from "./page.js";
import { chart } from "./chart.js";
import { heatmap } from "./heatmap.js";

const length = 24, half = 12, perLayer = 4, last = 400;
const all = Array.from({ length: 2 * perLayer }, (_, i) => ({ layer: Math.floor(i / perLayer), head: i % perLayer }));
const key = (h) => `${h.layer}.${h.head}`, site = (h, position = -1) => ({ layer: h.layer, head: h.head, position });
const letter = (id) => String.fromCharCode(97 + id), title = (h) => t`Layer ${h.layer}, head ${h.head}`;
const mean = (list) => list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);
/** The mean losses of tokens that cannot be known, and of those that follow a token for the second time. */
const fresh = (losses) => mean(losses.slice(0, half - 1)), known = (losses) => mean(losses.slice(half));
const signed = (x) => (x > 0 ? "+" : "") + number(x), percent = (loss) => `${number(100 * Math.exp(-loss), 1)}%`;
const xs = Array.from({ length: length - 1 }, (_, i) => i + 2); // the position of a token that is predicted, from 1
const causal = Array.from({ length: length * length }, (_, i) => i % length > Math.floor(i / length));

/** The mean weight that a head gives to the token before, and to what followed the same token earlier. */
function scores(weights) {
  const at = (i, j) => weights[i * length + j], first = xs.slice(0, half).map((x) => x - 1), second = first.slice(0, -1).map((i) => i + half - 1);
  return [mean(first.map((i) => at(i, i - 1))), mean(second.map((i) => at(i, i - half + 1)))];
}
const weightsOf = (g, h, heads = perLayer) => g.weights[h.layer].slice((h.head % heads) * length * length, ((h.head % heads) + 1) * length * length);

let seed = 1, trained = null, history = [], running = null, chosen = all[0], effects = [], off = [], without = null, turn = 0;
let at = half + 6, patched = [], patch = null, keep = [0, 0], cut = null, kept = null;

/** Fills a place with a button for each head, which is pressed or not. */
function switches(place, list, change) {
  const buttons = all.map((h) => el("button", { type: "button", text: key(h), "aria-label": title(h), onclick: () => change(h) }));
  byId(place).append(...buttons);
  return () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(list().includes(key(all[i])))));
}
const toggled = (list, h) => all.map(key).filter((k) => list.includes(k) !== (k === key(h)));

// Training.

const steps = chart({ title: t`While it trains`, x: t`step`, y: t`loss, nats`, height: 230 });
const places = chart({ title: t`By position`, x: t`position of the token`, y: t`loss, nats`, height: 230 });
const large = heatmap({ title: title(chosen), rowTitle: t`token that attends`, columnTitle: t`token attended to`, largest: 22 });
byId("steps").append(steps.node);
byId("places").append(places.node);
byId("large").append(large.node);
const items = all.map((h) => {
  const map = heatmap({ small: true }), text = el("span"), pick = el("button", { type: "button", class: "head", onclick: () => choose(h) }, map.node, text);
  return { h, map, text, pick };
});
byId("grid").append(...[0, 1].map((layer) => el("section", {}, el("h3", { text: t`Layer ${layer}` }), el("div", { class: "head-row" }, ...items.filter((i) => i.h.layer === layer).map((i) => i.pick)))));
const lossRange = [0, 5], guess = { name: t`a guess among 24 tokens`, x: [2, length], y: [Math.log(24), Math.log(24)], colour: 0, dashed: true };

function choose(h) {
  chosen = h;
  drawHeads();
  save();
}

function drawHeads() {
  if (!trained) return;
  const tokens = trained.tokens.map(letter);
  for (const { h, map, text, pick } of items) {
    const weights = weightsOf(trained, h), [previous, induction] = scores(weights);
    map.show({ weights, rows: tokens, columns: tokens, hidden: causal, scale: "one", label: t`${title(h)}: ${number(previous)} on the token before, ${number(induction)} on what followed the same token` });
    text.textContent = h.layer === 0 ? t`before ${number(previous)}` : t`followed ${number(induction)}`;
    pick.setAttribute("aria-pressed", String(h === chosen));
  }
  large.rename(title(chosen));
  large.show({ weights: weightsOf(trained, chosen), rows: tokens, columns: tokens, hidden: causal, scale: "one" });
}

function drawTraining() {
  if (!trained) return;
  const { step, losses, seconds, parameters } = trained;
  readout(byId("train-read"), [[t`step`, t`${step} of ${last}`], [t`computing time`, step ? `${number(seconds, 1)} s` : "–"], [t`parameters`, grouped(parameters)],
    [t`loss of new tokens`, number(fresh(losses))], [t`loss of repeated tokens`, number(known(losses))]]);
  const x = history.map((g) => g.step);
  steps.show({ lines: [{ name: t`new tokens`, x, y: history.map((g) => fresh(g.losses)), colour: 2 }, { name: t`repeated tokens`, x, y: history.map((g) => known(g.losses)), colour: 1 }],
    xRange: [0, last], yRange: lossRange, summary: t`After ${step} steps, the loss of new tokens is ${number(fresh(losses))}, that of repeated tokens ${number(known(losses))}.` });
  places.show({ lines: [guess, { name: t`loss`, x: xs, y: losses, colour: 1 }], xRange: [1, length], yRange: lossRange,
    summary: t`The loss by position:` + " " + losses.map((v) => number(v)).join(", ") });
  drawHeads();
}

function stop() {
  running?.abort();
  running = null;
  byId("train").textContent = trained?.step >= last ? t`Train again` : t`Train`;
  byId("cut").disabled = false;
}

/** Trains a new model up to a step. */
async function train(to) {
  stop();
  const mine = (running = new AbortController());
  history = [];
  cut = kept = null;
  if (to) byId("train").textContent = t`Stop`;
  byId("cut").disabled = true;
  let drawn = 0;
  try {
    const result = await ask("induction.train", { seed, to }, (g) => {
      if (running !== mine) return;
      trained = g;
      history.push(g);
      if (performance.now() - drawn < (calm() ? 2000 : 60)) return;
      drawn = performance.now();
      requestAnimationFrame(drawTraining);
    }, mine.signal);
    if (running !== mine && !mine.signal.aborted) return;
    if (running !== mine && running) return;
    trained = result;
    if (history.at(-1)?.step !== result.step) history.push(result);
    complain("");
  } catch (problem) {
    return complain(problem.message);
  }
  stop();
  drawTraining();
  save();
  if (to) say(steps.picture.getAttribute("aria-label"));
  await look();
}
byId("train").addEventListener("click", () => (running ? running.abort() : train(last)));
byId("seed").addEventListener("change", () => {
  seed = Math.max(1, Math.min(999999, Math.round(Number(byId("seed").value)) || 1));
  byId("seed").value = seed;
  train(0);
});

/** Measures the model that has been trained anew, for all other figures. */
async function look() {
  await Promise.all([measure(), silence(), patching()]);
  drawKeep();
}

// Silencing.

const increase = heatmap({ title: t`Increase in loss without a head`, rowTitle: t`layer`, columnTitle: t`head`, largest: 64, digits: 2, onPick: (i, j) => toggleOff(all[i * perLayer + j]) });
const remaining = chart({ title: t`Loss by position`, x: t`position of the token`, y: t`loss, nats`, height: 250 });
byId("effects").append(increase.node);
byId("without").append(remaining.node);
const drawOff = switches("off", () => off, toggleOff);
const rows = ["0", "1"], columns = ["0", "1", "2", "3"];

async function measure() {
  const list = await ask("induction.run", { sets: all.map((h) => [site(h)]) });
  effects = list.map((losses) => known(losses) - known(trained.losses));
  drawSilence();
}

const silence = latest(async () => {
  const sites = all.filter((h) => off.includes(key(h))).map((h) => site(h));
  try {
    without = sites.length ? (await ask("induction.run", { sets: [sites] }))[0] : null;
  } catch (problem) {
    return complain(problem.message);
  }
  drawSilence();
});

function toggleOff(h) {
  off = toggled(off, h);
  save();
  silence();
  say(off.includes(key(h)) ? t`${title(h)} is silent` : t`${title(h)} is on`);
}

function drawSilence() {
  drawOff();
  if (!trained || !effects.length) return;
  const whole = known(trained.losses), sum = all.reduce((s, h, i) => s + (off.includes(key(h)) ? effects[i] : 0), 0);
  increase.show({ weights: effects, rows, columns, scale: "signed" });
  readout(byId("silence-read"), [[t`loss of repeated tokens`, number(whole)], [t`without these heads`, without ? number(known(without)) : "–"],
    [t`increase`, without ? signed(known(without) - whole) : "–"], [t`sum of the single increases`, without ? signed(sum) : "–"]]);
  remaining.show({ lines: [guess, { name: t`all heads`, x: xs, y: trained.losses, colour: 2, dashed: true }, ...(without ? [{ name: t`without ${off.join(", ")}`, x: xs, y: without, colour: 1 }] : [])],
    xRange: [1, length], yRange: [0, Math.max(5, ...(without ?? []))], summary: without ? t`Without ${off.join(", ")}, the loss of repeated tokens is ${number(known(without))} instead of ${number(whole)}.` : t`No head is silent.` });
}

// Patching. A place is a number from 0; readers count from 1.

const restored = heatmap({ title: t`One head, all positions`, rowTitle: t`layer`, columnTitle: t`head`, largest: 64, digits: 2, onPick: (i, j) => togglePatch(all[i * perLayer + j]) });
const where = heatmap({ title: t`One head, one position`, rowTitle: t`head`, columnTitle: t`token of B`, largest: 26, digits: 2 });
byId("patches").append(restored.node);
byId("positions").append(where.node);
const drawPatched = switches("patched", () => patched, togglePatch);

const patching = latest(async () => {
  if (!trained) return;
  const place = at, a = trained.tokens, b = [...a];
  b[place - half] = Array.from({ length: 24 }, (_, id) => id).find((id) => !a.includes(id));
  const sets = [[], ...all.map((h) => [site(h)]), ...all.flatMap((h) => a.map((_, p) => [site(h, p)])), all.filter((h) => patched.includes(key(h))).map((h) => site(h))];
  try {
    const [inA] = await ask("induction.run", { tokens: a, sets: [[]] });
    const losses = (await ask("induction.run", { tokens: b, from: a, sets })).map((list) => list[place]);
    patch = { place, a, b, inA: inA[place], inB: losses[0], heads: losses.slice(1, 9).map((x) => losses[0] - x), positions: losses.slice(9, -1).map((x) => losses[0] - x), together: patched.length ? losses.at(-1) : null };
  } catch (problem) {
    return complain(problem.message);
  }
  drawPatch();
});

function togglePatch(h) {
  patched = toggled(patched, h);
  save();
  patching();
  say(patched.includes(key(h)) ? t`${title(h)} is patched` : t`${title(h)} is not patched`);
}

function drawPatch() {
  drawPatched();
  byId("at").value = at + 1;
  byId("at-out").textContent = trained ? `${at + 1}: ${letter(trained.tokens[at])}` : at + 1;
  if (!patch) return;
  const { place, a, b, inA, inB, together } = patch;
  const row = (name, tokens) => el("tr", {}, el("th", { scope: "row", text: name }), ...tokens.map((id, i) => el("td", { class: i === place - half ? "changed" : i === place ? "asked" : i === place + 1 ? "answer" : null, text: letter(id) })));
  byId("pair").replaceChildren(el("caption", { class: "unseen", text: t`The two sequences` }), row("A", a), row("B", b));
  readout(byId("patch-read"), [[t`right answer`, letter(a[place + 1])], [t`its probability in A`, percent(inA)], [t`in B`, percent(inB)], [t`in B, with these heads of A`, together == null ? "–" : percent(together)]]);
  restored.show({ weights: patch.heads, rows, columns, scale: "signed" });
  where.show({ weights: patch.positions, rows: all.map(key), columns: b.map(letter), hidden: patch.positions.map((_, i) => i % length > place), scale: "signed" });
}
byId("at").addEventListener("input", () => {
  at = Number(byId("at").value) - 1;
  drawPatch();
  save();
  patching();
});

// Pruning.

const twoLosses = chart({ title: t`Loss by position`, x: t`position of the token`, y: t`loss, nats`, height: 250 });
byId("kept").append(twoLosses.node);
const two = [0, 1].map(() => heatmap({ title: " ", rowTitle: t`token that attends`, columnTitle: t`token attended to`, largest: 20 }));
byId("two").append(...two.map((m) => m.node));

function drawKeep() {
  keep.forEach((h, layer) => (byId(`keep-${layer}`).value = h));
  if (!trained) return;
  const name = keep.map((h, layer) => `${layer}.${h}`).join(" + ");
  readout(byId("keep-read"), [[t`parameters`, kept ? `${grouped(trained.parameters)} → ${grouped(kept.parameters)}` : grouped(trained.parameters)], [t`loss of repeated tokens, 8 heads`, number(known(trained.losses))],
    [t`2 heads`, cut ? number(known(cut.losses)) : "–"], [t`after ${kept?.step ?? 0} steps`, kept?.step ? number(known(kept.losses)) : "–"]]);
  twoLosses.show({ lines: [guess, { name: t`all heads`, x: xs, y: trained.losses, colour: 2, dashed: true }, ...(cut ? [{ name: t`${name} alone`, x: xs, y: cut.losses, colour: 4 }] : []), ...(kept?.step ? [{ name: t`trained on`, x: xs, y: kept.losses, colour: 1 }] : [])],
    xRange: [1, length], yRange: [0, Math.max(5, ...(cut?.losses ?? []))], summary: kept?.step ? t`Two heads have a loss of ${number(known(cut.losses))} on repeated tokens, and of ${number(known(kept.losses))} after ${kept.step} steps.` : t`No head is pruned.` });
  byId("two").hidden = !kept;
  if (!kept) return;
  const tokens = kept.tokens.map(letter);
  two.forEach((map, layer) => {
    map.rename(title({ layer, head: keep[layer] }));
    map.show({ weights: kept.weights[layer], rows: tokens, columns: tokens, hidden: causal, scale: "one" });
  });
}

async function prune() {
  if (running) return;
  const mine = ++turn, here = trained;
  cut = kept = null;
  const now = (running = new AbortController());
  byId("cut").disabled = true;
  try {
    const result = await ask("induction.train", { seed, keep: keep.map((h) => [h]), to: 100 }, (g) => {
      if (mine !== turn || here !== trained) return;
      if (g.step === 0) cut = g;
      kept = g;
      requestAnimationFrame(drawKeep);
    }, now.signal);
    if (mine !== turn || here !== trained) return;
    kept = result;
  } catch (problem) {
    complain(problem.message);
  }
  if (running === now) stop();
  drawKeep();
  save();
  say(twoLosses.picture.getAttribute("aria-label"));
}
byId("cut").addEventListener("click", prune);
for (const layer of [0, 1]) byId(`keep-${layer}`).addEventListener("change", () => {
  keep[layer] = Number(byId(`keep-${layer}`).value);
  cut = kept = null;
  turn++;
  drawKeep();
  save();
});

// The address.

function save() {
  state.set({ seed: seed === 1 ? null : seed, step: trained?.step || null, head: chosen === all[0] ? null : key(chosen), off: off.join(",") || null, at: at === half + 6 ? null : at + 1, patch: patched.join(",") || null,
    keep: kept ? keep.join("-") : null });
}

/** Reads the state of the address, and trains as far as it says. */
async function load() {
  const heads = (name) => state.get(name).split(",").filter((k) => all.some((h) => key(h) === k)), within = (name, fallback, low, high) => Math.max(low, Math.min(high, Math.round(state.get(name, fallback))));
  seed = within("seed", 1, 1, 999999);
  byId("seed").value = seed;
  chosen = all.find((h) => key(h) === state.get("head")) ?? all[0];
  off = heads("off");
  patched = heads("patch");
  at = within("at", half + 7, half + 1, length - 1) - 1;
  const pair = /^([0-3])-([0-3])$/.exec(state.get("keep"));
  keep = pair ? [Number(pair[1]), Number(pair[2])] : [0, 0];
  await train(within("step", 0, 0, last));
  if (pair) await prune();
}

onTheme(() => {
  drawTraining();
  drawSilence();
  drawPatch();
  drawKeep();
});
state.onChange(load);
await load();
drawn();
