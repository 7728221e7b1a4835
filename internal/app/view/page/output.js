// What the model makes of the text as it is, and with changes: heads that are switched off, or patched with their weights for
// another text, and tokens that are masked.

import { byId, el, number } from "./dom.js";
import { change, headOn, state } from "./state.js";
import { fetchOutput, frozen, prune } from "./data.js";
import { axesOf, choose, chosen, headShort, labelOf } from "./tokens.js";
import { t, tr } from "./words.js";

// The changes, by the name of their list in the state. The box with the id of a list is for the open head or, that of mask,
// for the selected token. said is what the table says of it, and undo the title of the buttons that undo it.
const changes = {
  off: { key: "0", said: "without", undo: "Switch on" },
  patch: { key: "w", said: "with the weights of the second text", undo: "With its own weights" },
  mask: { key: "m", said: "masked", undo: "Unmask" },
};

const list = (what) => state[what].split(",").filter(Boolean);

// toggled returns the state that adds names to a list or, if it has all, removes them.
function toggled(what, names) {
  const all = list(what), rest = all.filter((x) => !names.includes(x));
  return { [what]: (rest.length + names.length === all.length ? rest : [...rest, ...names]).join(",") };
}

let current = null; // the record whose output is shown

// tokensOf returns the names of the tokens of an item on the side of a head: 2.3 is token 3 of the text whose tokens are the
// keys of layer 2, the first that has them. There are none in other records, nor of a text that no layer has as keys.
function tokensOf({ record, layer, q, k }, side, at) {
  const { kind } = record.layers[layer], [from, to] = (side === "q" ? q : k).spans[at];
  const target = kind === "decoder" || (kind === "cross" && side === "q"), keys = record.layers.findIndex((l) => (l.kind === "decoder") === target);
  return record === current && keys >= 0 ? Array.from({ length: to - from }, (_, i) => `${keys}.${from + i}`) : [];
}

// isMasked reports whether a token, or a word, in the view of a head is masked.
export function isMasked(what, side, at) {
  const names = state.mask ? tokensOf(what, side, at) : [];
  return names.length > 0 && names.every((name) => list("mask").includes(name));
}

// press selects a token after a click on it. A second click masks it.
export function press(event, what, side, at) {
  change({ ...choose(side, what[side], at), ...(event.detail === 2 ? toggled("mask", tokensOf(what, side, at)) : {}) });
}

// subject returns what a box is for: the names of the open head, or of the selected tokens; none for a summary.
function subject(what) {
  const { layer, head } = headOn("a");
  if (what !== "mask") return typeof head === "number" ? [`${layer}.${head}`] : [];
  if (!current.layers[layer]) return [];
  const { q, k } = axesOf(current, current.layers[layer]), token = chosen(q, k);
  return token ? tokensOf({ record: current, layer, q, k }, token.side, token.at) : [];
}

// prepareOutput connects the boxes.
export function prepareOutput() {
  const act = (what) => { if (!byId(what).parentNode.hidden && !byId(what).disabled) change(toggled(what, subject(what))); };
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
  current = can ? record : null;
  for (const what of Object.keys(changes)) {
    byId(what).parentNode.hidden = !can || (what === "patch" && !second);
    const names = can ? subject(what) : [];
    byId(what).checked = names.length > 0 && names.every((name) => list(what).includes(name));
    byId(what).disabled = !names.length;
  }
  if (!can) return;
  const made = Object.keys(changes).filter((what) => !byId(what).parentNode.hidden && list(what).length > 0);
  const line = made.length > 0 && el("p", { class: "made" }, ...made.flatMap((what) => [changes[what].said + " ", ...list(what).map((name) => {
    const button = el("button", { type: "button", class: what, text: shown(record, what, name), title: changes[what].undo });
    button.addEventListener("click", () => change(toggled(what, [name])));
    return button;
  }), " "]));
  const draw = (node) => { if (mine === turn) box.replaceChildren(...[line, node, record.prunes_to && list("off").length > 0 && pruner(record, state.off)].filter(Boolean)); };
  let answer;
  try {
    answer = await fetchOutput(record, second, Object.fromEntries(made.map((what) => [what, state[what]])));
  } catch (problem) {
    draw(el("p", { class: "quiet small", text: problem.message }));
    return;
  }
  draw(table(tr(answer.what), answer.rows, ...(line ? ["unchanged", "changed"] : [t`all heads`])));
}

// table returns rows of numbers before and, if after is a name, after a change.
function table(what, rows, before, after) {
  const title = (text) => el("th", { scope: "col", text }), shown = (x) => (x >= 1e4 ? x.toLocaleString("en") : number(x, 3));
  return el("table", {}, el("thead", {}, el("tr", {}, title(what), title(before), ...(after ? [title(after)] : []))), el("tbody", {}, ...rows.map((row) =>
    el("tr", {}, el("th", { scope: "row", dir: "auto", text: row.label.trim() === "" ? JSON.stringify(row.label) : row.label }),
      el("td", { text: shown(row.before) }), ...(after ? [el("td", { class: ["down", "", "up"][Math.sign(row.after - row.before) + 1], text: shown(row.after) })] : [])))));
}

const pruners = new Map(); // by their heads

// pruner returns a button that writes the model without heads, and what is said of it then.
function pruner(record, off) {
  const name = record.id + off;
  if (pruners.has(name)) return pruners.get(name);
  const button = el("button", { type: "button", text: "Prune", title: `Write the model without these heads to ${record.prunes_to}` }), said = el("div", { role: "status" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    said.replaceChildren(el("p", { class: "quiet small", text: `Writing ${record.prunes_to}…` }));
    try {
      const y = await prune(record, off);
      said.replaceChildren(el("p", { class: "small", text: `Written to ${y.dir}` + (y.note && `, in its full size: ${y.note}`) }),
        table("size", y.sizes, "all heads", "pruned"), table(tr(y.output.what), y.output.rows, "all heads", "pruned"),
        el("p", { class: "small" }, "The report on your data: ", el("code", { text: y.command })));
    } catch (problem) {
      button.disabled = false;
      said.replaceChildren(el("p", { class: "note bad", text: problem.message }));
    }
  });
  pruners.set(name, el("div", { class: "pruner" }, button, said));
  return pruners.get(name);
}

// shown returns a token, or a head, as it is called on the page: with its kind, if there are several.
function shown(record, what, name) {
  const [layer, head] = name.split(".").map(Number), at = record.layers[layer], axis = record.axes[at?.k];
  if (!at || (what === "mask" && head >= axis.tokens.length)) return name;
  if (what === "mask") return labelOf(axis, head);
  return record.layers.every((l) => l.kind === at.kind) ? headShort(at, head).replace(/^.* /u, "") : headShort(at, head);
}
