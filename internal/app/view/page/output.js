// What the model makes of the text as it is, and with changes: heads that are switched off, or patched with their weights for another text.

import { byId, el, number } from "./dom.js";
import { change, headOn, state } from "./state.js";
import { fetchOutput, frozen } from "./data.js";
import { headShort } from "./tokens.js";
import { t, tr } from "./words.js";

// The changes, by the name of their list in the state. The box with the id of a list is for the open head. said is what
// the table says of it, and undo the title of the buttons that undo it.
const changes = {
  off: { key: "0", said: "without", undo: "Switch on" },
  patch: { key: "w", said: "with the weights of the second text", undo: "With its own weights" },
};

const list = (what) => state[what].split(",").filter(Boolean);

function toggle(what, name) {
  const all = list(what);
  change({ [what]: (all.includes(name) ? all.filter((x) => x !== name) : [...all, name]).join(",") });
}

// open returns the name of the open head, "" for a summary.
function open() {
  const { layer, head } = headOn("a");
  return typeof head === "number" ? `${layer}.${head}` : "";
}

// prepareOutput connects the boxes for the open head.
export function prepareOutput() {
  const act = (what) => { if (open() && !byId(what).parentNode.hidden) toggle(what, open()); };
  for (const what of Object.keys(changes)) byId(what).addEventListener("change", () => act(what));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("textarea, select, input:not([type=checkbox])")) return;
    for (const [what, { key }] of Object.entries(changes)) if (event.key === key) act(what);
  });
}

let turn = 0;

// showOutput draws the output for a record whose model runs. second is the other text of a comparison, or null.
export async function showOutput(record, second) {
  const box = byId("output"), mine = ++turn, can = !frozen && !!record?.runs;
  box.hidden = !can;
  for (const what of Object.keys(changes)) {
    byId(what).parentNode.hidden = !can || (what === "patch" && !second);
    byId(what).checked = list(what).includes(open());
    byId(what).disabled = !open();
  }
  if (!can) return;
  const made = Object.keys(changes).filter((what) => !byId(what).parentNode.hidden && list(what).length > 0);
  const line = made.length > 0 && el("p", { class: "made" }, ...made.flatMap((what) => [changes[what].said + " ", ...list(what).map((name) => {
    const button = el("button", { type: "button", class: what, text: shown(record, name), title: changes[what].undo });
    button.addEventListener("click", () => toggle(what, name));
    return button;
  }), " "]));
  const draw = (node) => { if (mine === turn) box.replaceChildren(...[line, node].filter(Boolean)); };
  let answer;
  try {
    answer = await fetchOutput(record, second, Object.fromEntries(made.map((what) => [what, state[what]])));
  } catch (problem) {
    draw(el("p", { class: "quiet small", text: problem.message }));
    return;
  }
  const rows = answer.rows.map((row) => el("tr", {}, el("th", { scope: "row", dir: "auto", text: row.label.trim() === "" ? JSON.stringify(row.label) : row.label }),
    el("td", { text: number(row.before, 3) }), ...(line ? [el("td", { class: ["down", "", "up"][Math.sign(row.after - row.before) + 1], text: number(row.after, 3) })] : [])));
  draw(el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: tr(answer.what) }), el("th", { scope: "col", text: line ? "unchanged" : t`all heads` }), ...(line ? [el("th", { scope: "col", text: "changed" })] : []))),
    el("tbody", {}, ...rows)));
}

// shown returns a head as it is called on the page: with its kind, if there are several.
function shown(record, name) {
  const [layer, head] = name.split(".").map(Number), at = record.layers[layer];
  if (!at) return name;
  return record.layers.every((l) => l.kind === at.kind) ? headShort(at, head).replace(/^.* /u, "") : headShort(at, head);
}
