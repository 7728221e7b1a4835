// What the model makes of the text, with all heads and without those that are switched off.

import { byId, el, number } from "./dom.js";
import { change, headOn, state } from "./state.js";
import { fetchOutput, frozen } from "./data.js";
import { t, tr } from "./words.js";

const list = () => state.off.split(",").filter(Boolean);

// isOff reports whether a head is switched off.
export const isOff = (layer, head) => list().includes(`${layer}.${head}`);

function toggle(name) {
  const all = list();
  change({ off: (all.includes(name) ? all.filter((x) => x !== name) : [...all, name]).join(",") });
}

// prepareOutput connects the switch of the open head.
export function prepareOutput() {
  const open = () => { const { layer, head } = headOn("a"); return typeof head === "number" ? `${layer}.${head}` : ""; };
  byId("off").addEventListener("change", () => { if (open()) toggle(open()); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "0" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, input, select") || byId("switch").hidden) return;
    if (open()) toggle(open());
  });
}

let turn = 0;

// showOutput draws the output for a record whose model runs.
export async function showOutput(record) {
  const box = byId("output"), mine = ++turn, can = !frozen && !!record?.runs;
  byId("switch").hidden = box.hidden = !can;
  if (!can) return;
  const { layer, head } = headOn("a");
  byId("off").checked = isOff(layer, head);
  byId("off").disabled = typeof head !== "number";
  let answer;
  try {
    answer = await fetchOutput(record, state.off);
  } catch (problem) {
    if (mine === turn) box.replaceChildren(el("p", { class: "quiet small", text: problem.message }));
    return;
  }
  if (mine !== turn) return;
  const off = list(), changed = off.length > 0;
  const rows = answer.rows.map((row) => el("tr", {}, el("th", { scope: "row", dir: "auto", text: row.label.trim() === "" ? JSON.stringify(row.label) : row.label }),
    el("td", { text: number(row.before, 3) }), ...(changed ? [el("td", { class: row.after > row.before ? "up" : "down", text: number(row.after, 3) })] : [])));
  const names = off.map((name) => {
    const button = el("button", { type: "button", text: name, title: t`Switch on` });
    button.addEventListener("click", () => toggle(name));
    return button;
  });
  box.replaceChildren(el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: tr(answer.what) }), el("th", { scope: "col", text: t`all heads` }), ...(changed ? [el("th", { scope: "col" }, t`without`, " ", ...names)] : []))),
    el("tbody", {}, ...rows)));
}
