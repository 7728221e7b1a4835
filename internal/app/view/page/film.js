// The recording of the training: a slider over its steps. All views show the recorded weights of the chosen step.

import { byId, el } from "./dom.js";
import { change, state } from "./state.js";
import { frozen } from "./data.js";

const root = byId("film"), calm = matchMedia("(prefers-reduced-motion: reduce)");
const play = el("button", { type: "button", text: "Play", onclick: () => (playing ? pause() : start()) });
const slide = el("input", { type: "range", min: "0", id: "film-step", "aria-label": "Recorded step of the training", oninput: () => {
  pause();
  go(Number(slide.value));
} });
const back = el("button", { type: "button", text: "Text", title: "Leave the recording", hidden: true, onclick: () => change({ f: "" }) });
const now = el("output", { for: "film-step" }), about = el("span", { class: "quiet" });
root.append(el("b", { text: "Training" }), play, slide, back, now, about);

let film = null, playing = false, timer = 0;
const records = [];

// single is the only step that an exported page contains if the whole recording is too large, as its index.
let single = -1;

// prepareFilm takes the recording of the server, if it has one.
export function prepareFilm(given) {
  film = given.film;
  root.hidden = !film;
  if (!film) return;
  slide.max = film.steps.length - 1;
  pause();
  if (!frozen || frozen.film) return;
  single = state.f ? film.steps.indexOf(Number(state.f)) : film.steps.length - 1;
  play.hidden = slide.hidden = true;
}

export const hasFilm = () => !!film;

// frameRecord returns the record of the chosen step, or null if none is chosen. Without another record, the last step is
// shown.
export function frameRecord(other) {
  let at = film && state.f ? film.steps.indexOf(Number(state.f)) : -1;
  if (film && at < 0 && !other) at = film.steps.length - 1;
  if (at >= 0 && single >= 0) at = single;
  if (at < 0) return null;
  // The frames share their layers, so the overview keeps its elements.
  return (records[at] ??= { ...film.record, id: "f" + at, warnings: [], frame: at });
}

const name = (i) => `step ${film.steps[i].toLocaleString("en")} of ${film.steps.at(-1).toLocaleString("en")}` + (film.losses[i] === null ? "" : `, loss ${film.losses[i].toFixed(4)}`);

// showFilm shows which step a record is of, and plays the next one.
export function showFilm(record) {
  if (!film) return;
  const at = record?.frame ?? film.steps.length - 1, text = name(at);
  slide.value = at;
  slide.setAttribute("aria-valuetext", text);
  now.textContent = record?.frame === undefined ? "" : text;
  back.hidden = !frozen?.text || record?.frame === undefined; // the page of a server has the form
  const [recorded, absent] = [`recorded with ${film.record.source} → ${film.record.target}`, "The recording is too large for this page"];
  if (single < 0) about.textContent = record?.frame === undefined ? recorded : "";
  else about.textContent = record?.frame === undefined ? absent + "." : absent + ", which contains only this step.";
  if (!playing) return;
  if (record?.frame === undefined || at === film.steps.length - 1) pause();
  else {
    clearTimeout(timer); // of an earlier rendering of this step
    timer = setTimeout(() => go(at + 1), calm.matches ? 1000 : 100);
  }
}

function go(at) {
  change({ f: String(film.steps[at]) });
}

function start() {
  playing = true;
  play.textContent = "Pause";
  const at = state.f ? film.steps.indexOf(Number(state.f)) : -1, from = at < film.steps.length - 1 ? at + 1 : 0;
  go(from);
}

function pause() {
  playing = false;
  clearTimeout(timer);
  play.textContent = "Play";
}
