// What all pages share: the worker that computes, the state in the address, elements, colours of the page.

import { byId, el, later, svg } from "./dom.js"; // the page of attn view has it too
import { told } from "./errors.js";
import { t } from "./words.js";

export { byId, el, later, svg, t };

/**
 * Formats a number for the screen and for screen readers; – is a missing value.
 * @param {number|null|undefined} x
 * @param {number} digits after the point
 */
export function number(x, digits = 2) {
  if (x == null || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "∞";
  if (Math.abs(x) >= 1e5) return x.toExponential(1).replace("e+", " × 10^").replace("-", "−");
  return x.toFixed(digits).replace(/^-(?=.*[1-9])/, "−").replace(/^-/, "");
}

/** Formats a whole number with a comma between thousands. */
export const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** Fills a <dl class="readout"> with names and values. */
export function readout(list, rows) {
  list.replaceChildren(...rows.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: String(value) }))));
}

/** Returns a function that calls the asynchronous run again and again while there are new arguments, one at a time. */
export function latest(run) {
  let next = null, busy = false;
  return async (...args) => {
    next = args;
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const now = next;
        next = null;
        await run(...now);
      }
    } finally {
      busy = false;
    }
  };
}

/** Reports whether the reader asked for reduced motion. */
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Colours of the page.

const dimmed = matchMedia("(prefers-color-scheme: dark)");
const themeListeners = [];

/** Returns "light" or "dark". */
export const theme = () => document.documentElement.dataset.theme || (dimmed.matches ? "dark" : "light");

/** Calls run whenever the colours change. */
export const onTheme = (run) => themeListeners.push(run);

function prepareTheme() {
  const button = byId("theme"), names = { "": t`System`, light: t`Light`, dark: t`Dark` };
  const changed = () => {
    const name = names[document.documentElement.dataset.theme || ""];
    button.replaceChildren(el("span", { text: t`Colours:` + " " }), name);
    button.setAttribute("aria-label", t`Colours: ${name}`);
    for (const run of themeListeners) run();
  };
  button.addEventListener("click", () => {
    const order = ["", "light", "dark"], root = document.documentElement;
    const next = order[(order.indexOf(root.dataset.theme || "") + 1) % 3];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      localStorage.setItem("attn-theme", next);
    } catch {
      // Storage is blocked: the choice is not kept.
    }
    changed();
  });
  dimmed.addEventListener("change", changed);
  changed();
}

// The state in the address.

// While the program of a lesson is loaded, the page shows how its figures begin, with answers of the same program that
// the site contains. Then the settings of the address apply, and the program computes all figures again.
const { program } = document.body.dataset, lesson = document.body.dataset.lesson ?? "index";
const first = new Map(program ? (await import(`./first-${lesson}.js`)).default : []);
let early = Boolean(program);

const stateListeners = [];
const read = () => new URLSearchParams(state.text().slice(1));

export const state = {
  /** Returns the settings in the address, with #, as far as they apply. */
  text: () => (early ? "#" : location.hash),
  /** Returns a value of the address, or the fallback. A number if the fallback is one. */
  get(name, fallback = "") {
    const text = read().get(name);
    if (text == null) return fallback;
    if (typeof fallback !== "number") return text;
    const value = Number(text);
    return text.trim() !== "" && Number.isFinite(value) ? value : fallback;
  },
  /** Writes values into the address; null removes one. */
  set(values) {
    if (early) return;
    const now = read();
    for (const [name, value] of Object.entries(values)) {
      if (value == null || value === "") now.delete(name);
      else now.set(name, String(value));
    }
    const text = now.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
    try {
      history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
    } catch {
      // Browsers limit how often the address changes; the next change repeats this one.
    }
  },
  /** Calls run, which may be asynchronous, when the reader changes the address. */
  onChange: (run) => stateListeners.push(run),
};
addEventListener("hashchange", () => stateListeners.forEach((run) => run()));

// Messages.

const spoken = later(400, (text) => {
  const place = byId("spoken") ?? document.body.appendChild(el("p", { id: "spoken", class: "unseen", role: "status", "aria-live": "polite" }));
  place.textContent = text;
});

/** Speaks a text by the screen reader, once changes pause. */
export const say = (text) => spoken(text);

/** The end of a sentence in the language of the page. */
export const stop = /^(zh|ja)/.test(document.documentElement.lang) ? "。" : ".";

/** Writes an error of the program as a sentence. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?。！？…]$/.test(text) ? "" : stop);

const again = () => el("button", { type: "button", text: t`Start again`, onclick: () => location.reload() });

/**
 * Shows an error, or hides it if there is no text. The end of the program stays on the screen.
 * @param {string} text
 * @param {boolean} [over] offers to start again
 */
export function complain(text, over = false) {
  if (broken) [text, over] = [broken.message, true];
  const notes = byId("notes");
  let note = notes.querySelector(".note.bad");
  if (!text) return note?.remove();
  if (!note) notes.append((note = el("p", { class: "note bad" })));
  note.replaceChildren(sentence(text), ...(over ? [" ", again()] : []));
}

/** Shows a line that is not an error and returns it. */
const remark = (...parts) => byId("notes").appendChild(el("p", { class: "note" }, ...parts));

// The worker.

let worker = null, count = 0, ready = false, broken = null, begin;
const waiting = new Map();

// While an answer is due, the worker is asked every two seconds whether it is alive: one that has died sends no event.
const tick = 2000, patience = 30_000;

function start() {
  if (worker) return;
  let silent = 0, loading = 0, slow = null; // silent and loading are in milliseconds
  const bar = el("p", { id: "loading", role: "status" }), progress = el("progress", { max: 1, "aria-hidden": "true" }), line = el("span", { text: t`The figures' program is loading` });
  if (early) document.body.append(bar), bar.append(progress, line);
  const usable = () => {
    bar.remove();
    ready = true;
    slow?.remove();
    document.documentElement.dataset.ready = "";
    begin();
  };
  const fail = (text) => {
    if (broken) return;
    broken = Object.assign(new Error(t`The program of this lesson cannot run: ${text}`), { told: true });
    worker.terminate();
    clearInterval(watch);
    slow?.remove();
    bar.remove();
    complain("");
    for (const w of waiting.values()) w.reject(broken);
    waiting.clear();
  };
  const watch = setInterval(() => {
    if (!ready && (loading += tick) === patience) slow = remark(t`The program of this lesson is still being loaded.`, " ", again());
    if (ready && waiting.size === 0) silent = 0;
    else if ((silent += tick) > patience) fail(t`it has not answered for 30 seconds, and may have ended`);
    else worker.postMessage({ ping: true });
  }, tick);
  worker = new Worker(new URL("worker.js", import.meta.url), { name: document.body.dataset.program });
  worker.onerror = (event) => {
    event.preventDefault();
    fail(ready ? t`it has stopped at an error; the memory of this tab may be full` : t`worker.js is missing or damaged`);
  };
  worker.onmessage = ({ data: m }) => {
    silent = 0;
    if (m.ready) usable();
    else if (m.loaded) {
      const megabytes = (n) => (n / 1e6).toFixed(1);
      if (m.size) progress.value = m.loaded / m.size;
      line.textContent = !m.size ? t`The figures' program is loading: ${megabytes(m.loaded)} MB` : m.loaded < m.size ? t`The figures' program is loading: ${megabytes(m.loaded)} of ${megabytes(m.size)} MB` : t`The figures' program starts`;
    } else if (m.slow) remark(t`The program runs without vectors (${told(m.slow)}): it is several times slower, and its results may differ from those in the text.`);
    else if (m.failed) fail(told(m.failed));
    const call = waiting.get(m.id);
    if (!call) return;
    if (m.frame !== undefined) call.onFrame?.(m.frame);
    if (!m.done) return;
    waiting.delete(m.id);
    if (m.error) call.reject(new Error(told(m.error)));
    else call.resolve(m.result);
  };
}

/** Gives the files of a model to the program: [path, file] each. */
export function give(files) {
  start();
  if (!broken) worker.postMessage({ files });
}

/**
 * Calls a function of the program.
 * @param {string} call such as "regression.estimate"
 * @param {any} args
 * @param {(frame: any) => void} [onFrame]
 * @param {AbortSignal} [signal] ends the call
 * @returns {Promise<any>} its result
 */
export function ask(call, args = null, onFrame, signal) {
  start();
  if (early && first.has(`${call} ${JSON.stringify(args)}`)) return Promise.resolve(structuredClone(first.get(`${call} ${JSON.stringify(args)}`)));
  return new Promise((resolve, reject) => {
    if (broken) return reject(broken);
    const id = ++count;
    waiting.set(id, { resolve, reject, onFrame });
    worker.postMessage({ id, call, args });
    const cancel = () => worker.postMessage({ id: ++count, call: "cancel", args: id });
    if (signal?.aborted) cancel(); // such a signal has no more events
    else signal?.addEventListener("abort", cancel);
  });
}

const begun = new Promise((resolve) => (begin = resolve));

/** Is called once the figures of a page are drawn: shows them, and lets the reader use them once the program runs. */
export async function drawn() {
  document.documentElement.dataset.first = "";
  if (program) {
    await begun;
    early = false;
    for (const figure of figures) figure.inert = false;
    await Promise.all(stateListeners.map((run) => run()));
  }
  document.body.dataset.drawn = "";
}
const figures = program ? document.querySelectorAll(".live") : [];
for (const figure of figures) figure.inert = true;

/** Gives a slider − and +, and the whole row of its place. A finger that swipes over it scrolls the page. */
export function slider(range) {
  const step = (by) => el("button", { type: "button", class: "step", tabindex: -1, "aria-hidden": "true", text: by < 0 ? "−" : "+", onclick: () => set(() => range[by < 0 ? "stepDown" : "stepUp"](), true) });
  const track = el("span", { class: "track" }), set = (change, end = false) => {
    const before = range.value;
    change();
    if (range.value !== before) range.dispatchEvent(new Event("input", { bubbles: true }));
    if (end) range.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const thumb = 20, slack = 8; // pixels; less than slack is no swipe
  const move = (event) => set(() => {
    const box = range.getBoundingClientRect(), part = (event.clientX - box.left - thumb / 2) / (box.width - thumb);
    range.value = Number(range.min) + Math.max(0, Math.min(1, part)) * (range.max - range.min);
  });
  let from = null, moving = false;
  range.before(step(-1), track);
  track.after(step(1));
  track.append(range);
  range.closest("label").classList.add("slider");
  range.closest("label").htmlFor = range.id; // not the first button
  track.addEventListener("click", (event) => event.preventDefault());
  track.addEventListener("pointerdown", (event) => {
    if (range.disabled || event.button > 0) return;
    [from, moving] = [event, event.pointerType === "mouse"];
    track.setPointerCapture(event.pointerId);
    range.focus({ preventScroll: true });
    if (moving) move(event);
    event.preventDefault();
  });
  track.addEventListener("pointermove", (event) => {
    if (!from) return;
    moving ||= Math.abs(event.clientX - from.clientX) > slack;
    if (moving) move(event);
  });
  track.addEventListener("pointerup", (event) => {
    if (from) move(event); // also where a finger taps
    if (from) range.dispatchEvent(new Event("change", { bubbles: true }));
    from = null;
  });
  track.addEventListener("pointercancel", () => (from = null));
}

// A bracket that a font cannot stretch is drawn as the border of what it contains.
for (const fence of document.querySelectorAll('math mo[fence="true"]')) {
  const row = fence.parentElement, inside = row.querySelector(":scope > mrow");
  if (/^[()]$/.test(fence.textContent) && inside && fence.getBoundingClientRect().height < 0.75 * inside.getBoundingClientRect().height) row.classList.add("fenced");
}

for (const link of document.querySelectorAll(".languages a")) link.addEventListener("click", () => {
  link.hash = location.hash; // the state of the figures
  try {
    localStorage.setItem("attn-language", link.lang);
    sessionStorage.setItem("attn-language", link.lang);
  } catch {
    // Storage is blocked: the choice is not kept.
  }
});

// Code in Go and in PyTorch: what is chosen for one block is chosen for all, in all lessons.
function choose(code) {
  document.documentElement.dataset.code = code;
  for (const b of document.querySelectorAll("[data-code]:is(button)")) b.setAttribute("aria-pressed", String(b.dataset.code === code));
}
choose(document.documentElement.dataset.code || "go");

/** Copies a text; without the clipboard, as on a page without https, by a selection. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.body.appendChild(el("textarea", { text, class: "unseen" }));
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

for (const block of document.querySelectorAll(".code")) block.addEventListener("click", async ({ target }) => {
  const button = target.closest(".tabs button");
  if (!button) return;
  const { code, copied, whole } = button.dataset;
  if (code) {
    const before = button.getBoundingClientRect().top;
    choose(code);
    scrollBy(0, button.getBoundingClientRect().top - before); // blocks above have changed, too
    try {
      localStorage.setItem("attn-code", code);
    } catch {
      // Storage is blocked: the choice is not kept.
    }
    return;
  }
  const shown = block.querySelector(`:scope > .${document.documentElement.dataset.code}`);
  const from = whole ? document.querySelector(`template[data-file="${shown.querySelector(".from").textContent}"]`) : shown.querySelector("template");
  await copy(from.content.textContent);
  say(copied);
  const label = button.textContent;
  button.textContent = copied;
  button.disabled = true;
  setTimeout(() => Object.assign(button, { textContent: label, disabled: false }), 1500);
});

document.documentElement.dataset.script = "";
prepareTheme();
for (const range of document.querySelectorAll(".controls label input[type=range]")) slider(range);
if (program) start();
