// What each layer predicts at each position: the logit lens.

import { byId, el, number } from "./dom.js";
import { change, state } from "./state.js";
import { css, inkOn } from "./colour.js";
import { frozen, fetchPredictions } from "./data.js";

const box = el("details", { hidden: true }, el("summary", {}, el("h2", { text: "Predictions of each layer" })));
const area = el("div", { class: "scroll", tabindex: "0", "aria-label": "Table of predictions" });
box.append(area);
box.addEventListener("toggle", () => change({ l: box.open ? "1" : "" }));
byId("measures").append(box);

let record = null;

// showPredictions fetches and draws the table, if it is open and the model runs.
export async function showPredictions(next) {
  box.hidden = frozen || !next.runs;
  box.open = state.l === "1";
  if (box.hidden || !box.open || record === next) return;
  record = next;
  area.replaceChildren(el("p", { class: "quiet", text: "Measuring…" }));
  let answer;
  try {
    answer = await fetchPredictions(next);
  } catch (problem) {
    if (record !== next) return;
    record = null;
    area.replaceChildren(el("p", { class: "quiet", text: problem.message }));
    return;
  }
  if (record === next) area.replaceChildren(el("p", { class: "quiet", text: "What each position predicts if the model ended before that layer: the most probable token. Point at it for the next ones." }), draw(answer));
}

function draw({ tokens, layers }) {
  const rows = layers.map((row, i) => el("tr", {}, el("th", { scope: "row", class: "token", text: i < layers.length - 1 ? `layer ${i}` : "output" }), ...row.map((list) => {
    const td = el("td", { class: "token", dir: "auto", text: shown(list[0].label), title: list.map((x) => `${shown(x.label)} ${number(x.p, 3)}`).join("\n") });
    td.style.background = css(list[0].p);
    td.style.color = inkOn(list[0].p);
    return td;
  })));
  return el("table", {}, el("thead", {}, el("tr", {}, el("th"), ...tokens.map((text) => el("th", { scope: "col", class: "token", dir: "auto", text: shown(text) })))), el("tbody", {}, ...rows.reverse()));
}

// shown makes spaces and line ends visible.
const shown = (text) => (text.trim() === "" ? JSON.stringify(text) : text);
