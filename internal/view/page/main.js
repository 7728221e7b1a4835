// Where the page begins: it fetches what there is, and brings the screen in line with the state.

import { byId, el, later } from "./dom.js";
import { begin, change, place, state, subscribe } from "./state.js";
import { onSystemTheme, prepareColours, theme } from "./colour.js";
import { frozen, look, start } from "./data.js";
import { showGrid, step } from "./grid.js";
import { panel } from "./panel.js";
import { prepareTable, showTable } from "./table.js";
import { busy, prepareForm, showForm, tellTexts } from "./form.js";
import { prepareExport } from "./export.js";

let given = null, panels = {}, records = { a: null, b: null }, turn = 0;

function say(text) {
  const line = el("p", { class: "said", text });
  byId("notes").querySelectorAll(".said").forEach((n) => n.remove());
  byId("notes").append(line);
  setTimeout(() => line.remove(), 6000);
}

const whisper = byId("notes").appendChild(el("p", { class: "unseen", "aria-live": "polite" }));

// recordOf returns the record that a side of the screen is about.
async function recordOf(side) {
  const second = side === "b" && state.cmp === "text";
  const [s, t, r] = second ? [state.s2, state.t2, state.r2] : [state.s, state.t, state.r];
  if (given.model && s) return look(s, t);
  return given.records[Number(r)] ?? (second ? null : given.records[0]) ?? null;
}

async function render() {
  const mine = ++turn;
  delete document.body.dataset.drawn;
  applyTheme();
  controls();
  const slow = setTimeout(() => busy(true), 150);
  const notes = byId("notes");
  try {
    const [a, b] = [await recordOf("a"), state.cmp ? await recordOf("b") : null];
    if (mine !== turn) return;
    records = { a, b };
    problems([a, b]);
  } catch (problem) {
    if (mine !== turn) return;
    problems([records.a, records.b], problem.message);
  } finally {
    clearTimeout(slow);
    if (mine === turn) busy(false);
  }
  notes.dataset.ready = "";
  document.body.classList.toggle("blank", !records.a);
  showForm();
  tellTexts(records.a, state.cmp === "text" ? records.b : null);
  if (!records.a) {
    byId("text-s")?.focus();
    return;
  }
  showGrid(state.side === "b" && state.cmp === "text" && records.b ? records.b : records.a);
  arrange();
  const jobs = [panels.a.show(records.a)];
  if (state.cmp && records.b) jobs.push(panels.b.show(records.b));
  showTable(state.side === "b" && state.cmp === "text" && records.b ? records.b : records.a);
  await Promise.all(jobs);
  if (mine === turn) document.body.dataset.drawn = ""; // the screen shows the state: a test may wait for it
}

// problems writes what the reader should know before believing the picture.
function problems(list, failure) {
  const box = byId("notes");
  box.querySelectorAll(".note").forEach((n) => n.remove());
  const lines = [...new Set(list.filter(Boolean).flatMap((r) => r.warnings))];
  if (failure) box.append(el("p", { class: "note bad", text: failure }));
  if (lines.length) box.append(el("p", { class: "note" }, el("b", { text: "These are not all weights: " }), lines.join("; ")));
  if (given.model && !failure && list.every((r) => !r)) box.append(el("p", { class: "note hint", text: "Type a text above to see what the model looks at while it writes." }));
}

// arrange puts one panel or two on the screen.
function arrange() {
  const two = state.cmp && records.b;
  const wanted = two ? [panels.a.node, panels.b.node] : [panels.a.node];
  const box = byId("panels");
  if (box.children.length !== wanted.length) box.replaceChildren(...wanted);
  box.classList.toggle("two", !!two);
  document.body.classList.toggle("comparing", !!two);
  panels.a.node.classList.toggle("active", !!two && state.side === "a");
  panels.b.node.classList.toggle("active", !!two && state.side === "b");
}

function controls() {
  for (const input of document.querySelectorAll("[data-state]")) {
    const key = input.dataset.state;
    if (input.type === "checkbox") input.checked = state[key] === "1";
    else input.value = state[key];
    if (key === "n") input.nextElementSibling.textContent = state.n;
  }
  for (const button of byId("views").children) {
    const on = button.dataset.view === state.v;
    button.setAttribute("aria-checked", String(on));
    button.tabIndex = on ? 0 : -1;
  }
  byId("many").hidden = state.v !== "lines";
  for (const option of document.querySelectorAll('[data-state="cmp"] option[value="text"]')) option.hidden = !given.model && given.records.length < 2;
}

function applyTheme() {
  document.documentElement.dataset.theme = theme();
  const names = { "": "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
  byId("theme").textContent = { "": "◐", light: "☀", dark: "☾" }[state.theme];
  byId("theme").setAttribute("aria-label", names[state.theme]);
  byId("theme").title = names[state.theme];
}

// other returns the second side of a comparison that begins: a neighbour of the head that is open, in the next layer if
// this one has no other head, and the next click in the overview chooses another.
function other(kind) {
  if (kind !== "head") return { side: "a" };
  const a = place("a"), b = place("b"), layers = records.a?.layers ?? [], heads = layers[a.layer]?.heads ?? 1;
  if (b.layer === a.layer && b.head !== a.head && b.head < heads) return { side: "b", b: state.b };
  return { side: "b", b: heads > 1 ? `${a.layer}.${(a.head + 1) % heads}` : `${(a.layer + 1) % Math.max(1, layers.length)}.0` };
}

function wire() {
  for (const input of document.querySelectorAll("[data-state]")) {
    const key = input.dataset.state;
    input.addEventListener(input.type === "range" ? "input" : "change", () => {
      const patch = { [key]: input.type === "checkbox" ? (input.checked ? "1" : "") : input.value };
      if (key === "x" || key === "w") patch.z = "";
      if (key === "cmp") Object.assign(patch, other(input.value));
      change(patch);
    });
  }
  byId("views").addEventListener("click", (event) => {
    if (event.target.dataset.view) change({ v: event.target.dataset.view });
  });
  byId("views").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const list = [...byId("views").children];
    const next = list[(list.findIndex((b) => b.dataset.view === state.v) + by + list.length) % list.length];
    change({ v: next.dataset.view });
    next.focus();
  });
  byId("theme").addEventListener("click", () => change({ theme: { "": "dark", dark: "light", light: "" }[state.theme] }));
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("panels").focus();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("textarea, input, select");
    if (event.key === "Escape") {
      if (byId("export").open) {
        byId("export").open = false;
        byId("export").firstElementChild.focus();
      } else if (!panels.a.cancel() && !(state.cmp && panels.b.cancel())) {
        if (state.tok) change({ tok: "" });
        else if (state.z) change({ z: "" });
        else if (state.cmp) change({ cmp: "", side: "a" });
        else typing?.blur();
      }
    } else if ((event.key === "[" || event.key === "]") && !typing) step(0, event.key === "]" ? 1 : -1, false);
  });
  onSystemTheme(() => render());
  let width = window.innerWidth;
  window.addEventListener("resize", later(120, () => {
    if (width === window.innerWidth) return; // a phone's address bar comes and goes
    width = window.innerWidth;
    panels.a.redraw();
    if (state.cmp) panels.b.redraw();
  }));
}

async function open() {
  try {
    given = await start();
  } catch (problem) {
    byId("notes").append(el("p", { class: "note bad", text: problem.message }));
    return;
  }
  prepareColours(given.palette);
  byId("name").textContent = given.name;
  document.title = given.name + " · attn view";
  begin(frozen ? "#" + frozen.address : "");
  const active = (side) => { if (state.cmp) change({ side }); };
  const aloud = (text) => { whisper.textContent = text; };
  panels = { a: panel("a", given.columns, active, aloud), b: panel("b", given.columns, active, aloud) };
  wire();
  prepareForm(given);
  prepareTable(given.columns);
  prepareExport(() => ({
    panels: state.cmp && records.b ? [panels.a, panels.b] : [panels.a],
    records: [...new Set([records.a, state.cmp ? records.b : null])].filter(Boolean),
  }), say);
  if (frozen) document.body.classList.add("frozen");
  subscribe(render);
  render();
}

open();
