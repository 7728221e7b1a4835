// A model that trains in the page: controls, numbers, the curve of its loss, and its heads as they form.

import { ask, calm, complain, el, grouped, later, number, say, sentence, state, t } from "./page.js";
import { chart } from "./chart.js";
import { headGrid } from "./headgrid.js";

/** Says which characters of a text the model does not know; one that is not visible has its number instead. */
export const unknown = (list) => t`the training texts have no ${list.map((c) => (/[\p{L}\p{N}\p{P}\p{S}]/u.test(c) ? `“${c}”` : `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`)).join(" ")}: the model reads <unk> instead, ⁇ in the maps`;

/** Returns the mean of losses; null if there are none or one is missing, because the training has diverged. */
const mean = (list) => (list.length === 0 || list.includes(null) ? null : list.reduce((a, b) => a + b, 0) / list.length);

/** Returns how long the computation took. */
export const duration = (s) => (s < 0.0995 ? `${number(s * 1000, 1)} ms` : s < 60 ? `${number(s, 1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`);

/**
 * Fills a node with a training.
 * @param {HTMLElement} node
 * @param {{task: string, prefix?: string, networks?: [string, string][], scores?: [string, string][],
 *   example: string, answer: (text: string) => string, hint: string, test: number, autostart?: boolean}} options
 *   prefix distinguishes the values of the address; answer returns the right output for a text, "" if unknown
 */
export function training(node, { task, prefix = "", networks = [], scores = [], example, answer, hint, test, autostart = true }) {
  const name = (value) => prefix + value, id = (value) => `${task}-${value}`;
  let at = 0, steps = 0, run = null, losses = [], rate = 0, seconds = 0, shown = null, queue = Promise.resolve(), drawn = 0, heard = 0, started = false, last = null, turn = 0;

  const go = el("button", { type: "button", class: "main", text: t`Train` });
  const one = el("button", { type: "button", text: t`One step` }), again = el("button", { type: "button", text: t`Start again` });
  const seed = el("input", { id: id("seed"), type: "number", min: 1, max: 999999, step: 1 });
  const until = el("input", { id: id("until"), type: "number", min: 1, step: 1, placeholder: t`last` });
  const choice = (name, label, list, fallback) => {
    const node = el("select", { id: id(name) }, ...list.map(([value, text]) => el("option", { value, text })));
    return { node, label: el("label", { for: id(name), text: label }, node), get: () => node.value || fallback };
  };
  const network = choice("network", t`network`, networks, ""), score = choice("score", t`score`, scores, "");
  const text = el("input", { id: id("text"), type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", size: 24 });
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const values = {}, readout = el("dl", { class: "readout" }, ...[["step", t`step`], ["loss", t`loss, nats per token`], ["rate", t`tokens per second`], ["time", t`computing time`], ["output", t`the model writes`]].map(([k, label]) =>
    el("div", {}, el("dt", { text: label }), (values[k] = el("dd", { text: "–" })))));
  const curve = chart({ title: t`Loss`, x: t`step`, y: t`loss (log scale)`, height: 230 }), grid = headGrid({ onPick: (head) => state.set({ [name("head")]: `${head.layer}-${head.number}` }) });
  const result = el("p", { class: "small", role: "status" }), check = el("button", { type: "button", text: t`Test on ${test} new texts` });
  const slept = el("p", { class: "quiet small", role: "status", hidden: true });
  node.append(
    el("div", { class: "controls" }, go, one, again, el("label", { for: id("until"), text: t`until step` }, until), el("label", { for: id("seed"), text: t`seed` }, seed),
      ...(networks.length ? [network.label] : []), ...(scores.length ? [score.label] : [])),
    readout, slept,
    // The map that forms is beside the loss, or above it on a phone: it stays in sight while the model trains.
    el("div", { class: "columns" }, grid.large, curve.node), problem,
    el("div", { class: "controls" }, el("label", { for: id("text"), text: hint }, text), check), result, grid.small);
  curve.node.hidden = true;

  /** Returns the number of a box, or null and says which numbers it accepts. */
  function whole(box, what, low, high) {
    const n = box.value.trim() === "" ? NaN : Number(box.value), good = Number.isInteger(n) && n >= low && n <= high;
    box.setAttribute("aria-invalid", String(!good));
    if (good) return n;
    fail({ message: t`${what} must be a whole number from ${grouped(low)} to ${grouped(high)}` });
    return null;
  }
  const options = () => ({ task, seed: Number(seed.value) || 1, arch: network.get(), score: score.get() });
  const busy = () => run !== null;

  /** Shows an error of the program, or none. */
  function fail(e) {
    problem.hidden = !e;
    problem.textContent = e ? sentence(e.message) : "";
  }

  /** One call after the other. */
  const inTurn = (job) => (queue = queue.then(job).then(() => fail(null), fail));

  function controls() {
    go.textContent = busy() ? t`Pause` : at >= steps && at > 0 ? t`Trained` : at > 0 ? t`Continue` : t`Train`;
    go.disabled = !busy() && at >= steps && at > 0;
    one.disabled = busy() || (started && at >= steps);
    check.disabled = busy();
    until.max = steps;
    node.setAttribute("aria-busy", String(busy()));
  }

  function take(s, keep = true) {
    at = s.step;
    steps = s.steps;
    seconds = s.seconds;
    losses.push(...s.losses);
    if (s.rate) rate = s.rate;
    if (s.shown) shown = s.shown;
    const now = performance.now();
    if (busy() && heard && now - heard > 5000) {
      slept.hidden = false;
      slept.textContent = t`The browser let this tab sleep for ${duration((now - heard) / 1000)}. Nothing is lost: training continued at step ${grouped(at)}.`;
    }
    heard = now;
    if (!keep || !busy() || now - drawn > (calm() ? 2000 : 0)) draw();
  }

  function draw() {
    drawn = performance.now();
    curve.node.hidden = false;
    values.step.textContent = t`${grouped(at)} of ${grouped(steps)}`;
    values.loss.textContent = number(mean(losses.slice(-20)), 3);
    values.rate.textContent = rate ? grouped(Math.round(rate)) : "–";
    values.time.textContent = seconds ? duration(seconds) : "–";
    const right = shown && answer(shown.input);
    values.output.textContent = shown ? shown.output.slice(0, 44) || t`nothing` : "–";
    values.output.classList.toggle("good", Boolean(right) && shown.output === right);
    const width = Math.max(1, Math.ceil(losses.length / 250)), x = [], y = [];
    for (let i = 0; i < losses.length; i += width) {
      const part = losses.slice(i, i + width);
      x.push(i + part.length);
      y.push(mean(part));
    }
    curve.show({ lines: [{ name: width > 1 ? t`mean of ${width} steps` : t`loss of a step`, x, y }], xRange: [0, Math.max(100, at)], log: true,
      summary: y.length ? t`The loss fell from ${number(y[0], 2)} to ${number(y.at(-1), 3)} in ${grouped(at)} steps.` : t`No step yet.` });
    if (shown) grid.show(shown.layers);
  }

  /** Builds the model anew, and trains it to a step of the address. */
  async function restart(to = 0, end = 0) {
    const mine = ++turn;
    run?.abort();
    await inTurn(async () => {
      if (mine !== turn) return; // started again once more
      losses = [];
      rate = heard = 0;
      result.textContent = "";
      slept.hidden = true;
      started = true;
      take(await ask("train.start", options()), false);
      until.value = end >= 1 && end <= steps ? end : steps;
      until.removeAttribute("aria-invalid");
      await ask("train.look", { text: text.value, target: answer(text.value) }).then((s) => take(s, false), fail);
    });
    if (mine !== turn) return;
    const [layer, n] = [state.get(name("head")).replace(/-\d+$/, ""), Number(state.get(name("head")).split("-").at(-1))];
    if (layer && shown?.layers.some((l) => l.name === layer && l.numbers.includes(n))) grid.choose({ layer, number: n });
    controls();
    if (to > 0) await train(Math.min(to, steps));
  }

  async function train(to) {
    const mine = turn, now = (run = new AbortController());
    heard = 0;
    controls();
    await inTurn(async () => {
      const s = await ask("train.run", { to }, (f) => mine === turn && take(f), now.signal);
      if (run === now) run = null;
      if (mine === turn) take(s, false);
    });
    if (run === now) run = null;
    if (mine !== turn) return; // "Start again" was pressed meanwhile
    save();
    controls();
    say(t`Step ${grouped(at)}, loss ${values.loss.textContent}, writes ${values.output.textContent}.`);
  }

  function save() {
    const o = options();
    state.set({ [name("seed")]: o.seed === 1 ? null : o.seed, [name("step")]: at || null, [name("text")]: text.value === example ? null : text.value, [name("until")]: until.value === String(steps) ? null : until.value,
      ...(networks.length ? { [name("network")]: o.arch === networks[0][0] ? null : o.arch } : {}), ...(scores.length ? { [name("score")]: o.score === scores[0][0] ? null : o.score } : {}) });
    last = state.text();
  }

  async function load() {
    if (state.text() === last) return;
    last = state.text();
    seed.value = Math.max(1, Math.min(999999, Math.round(state.get(name("seed"), 1))));
    text.value = state.get(name("text"), example);
    network.node.value = networks.some(([v]) => v === state.get(name("network"))) ? state.get(name("network")) : networks[0]?.[0] ?? "";
    score.node.value = scores.some(([v]) => v === state.get(name("score"))) ? state.get(name("score")) : scores[0]?.[0] ?? "";
    const to = Math.max(0, Math.round(state.get(name("step"), 0))), end = Math.round(state.get(name("until"), 0));
    if (to > 0 || autostart) await restart(to, end);
    else {
      steps = 0;
      controls();
    }
  }

  go.onclick = async () => {
    if (busy()) return run.abort();
    if (!(await begun())) return;
    const to = at >= Number(until.value) && until.value !== "" ? steps : whole(until, t`The last step`, at + 1, steps);
    if (to !== null) await train(to);
  };
  one.onclick = async () => (await begun()) && train(at + 1);
  /** Starts a training if there is none; false if it cannot, or if another one began meanwhile. */
  async function begun() {
    if (started) return true;
    const mine = turn + 1;
    return whole(seed, t`The seed`, 1, 999999) !== null && (await restart().then(() => mine === turn && started));
  }
  const anew = () => whole(seed, t`The seed`, 1, 999999) !== null && restart().then(save);
  again.onclick = seed.onchange = network.node.onchange = score.node.onchange = anew;
  until.onchange = () => {
    if (whole(until, t`The last step`, 1, steps || 1e6) === null) return;
    fail(null);
    if (started && !busy()) save();
  };
  const retext = later(120, () => {
    if (!started) return;
    const mine = turn;
    ask("train.look", { text: text.value, target: answer(text.value) }).then((s) => {
      if (mine !== turn) return;
      fail(null);
      take({ ...s, losses: [] }, false);
      if (s.shown.unknown.length) fail({ message: unknown(s.shown.unknown) });
      if (!busy()) save();
    }, (e) => {
      if (mine !== turn) return;
      fail(e);
      values.output.textContent = "–";
      values.output.classList.remove("good");
    });
  });
  text.oninput = retext;
  check.onclick = () => inTurn(async () => {
    if (!started) throw new Error(t`train first`);
    check.disabled = true;
    result.textContent = t`Testing …`;
    try {
      const q = await ask("train.measure", { texts: test });
      result.textContent = t`After step ${grouped(at)}: ${q.exact} of ${q.texts} new texts are right (${number((100 * q.exact) / q.texts, 1)}%), loss ${number(q.loss, 3)}.`;
    } catch (e) {
      result.textContent = "";
      throw e;
    } finally {
      check.disabled = false;
    }
  });
  state.onChange(load);
  return load().catch((e) => complain(e.message));
}
