// The start of the page: fetches the records and redraws the screen when the state changes.

import { byId, el, embedded, later, onPaper } from "./dom.js";
import { begin, change, follow, headOn, setDefaults, state, subscribe, tell } from "./state.js";
import { onSystemTheme, prepareColours, theme } from "./colour.js";
import { fetchRecord, frozen, start } from "./data.js";
import { prepareGrid, repaint, showGrid, step } from "./grid.js";
import { differencePanel } from "./difference.js";
import { prepareGlossary } from "./glossary.js";
import { prepareMeasured } from "./measured.js";
import { panel } from "./panel.js";
import { sameHead, whyNoVectors } from "./tokens.js";
import { prepareTable, showTable } from "./table.js";
import { frameRecord, prepareFilm, showFilm } from "./film.js";
import { busy, prepareForm, showForm, showTexts } from "./form.js";
import { prepareExport } from "./export.js";
import { prepareExamples, showExamples } from "./examples.js";
import { prepareOutput, showOutput } from "./output.js";
import { showPredictions } from "./predictions.js";
import { t, tr, translate } from "./words.js";

let given = null, panels = {}, difference = null, preview = null, records = { a: null, b: null }, turn = 0;

function say(text) {
  const line = el("p", { class: "said", text });
  byId("notes").querySelectorAll(".said").forEach((n) => n.remove());
  byId("notes").append(line);
  setTimeout(() => line.remove(), 6000);
}

const whisper = byId("notes").appendChild(el("p", { class: "unseen", "aria-live": "polite" }));

// recordOf returns the record that a side of the screen shows, or, without steps, the one that a recorded step replaced.
async function recordOf(side, steps = true) {
  const second = side === "b" && state.cmp === "text";
  const [s, t, r] = second ? [state.s2, state.t2, state.r2] : [state.s, state.t, state.r], model = Number(state.p);
  const frame = !steps || second || model > 0 ? null : frameRecord(s || given.records.length);
  if (frame) return frame;
  if (given.models.length && s) return fetchRecord(s, t, model);
  const record = given.records[Number(r)] ?? (second ? null : given.records[0]) ?? null;
  return record && given.models.length && model > 0 ? fetchRecord(record.source, "", model) : record;
}

// secondRecord returns the record of side b of a comparison. A second model reads the text that the first one wrote, so
// that the queries of both match.
async function secondRecord(a) {
  if (!state.cmp || !a) return null;
  if (state.cmp !== "model") return recordOf("b");
  return given.models[Number(state.p2)] === undefined ? null : fetchRecord(a.source, a.target, Number(state.p2));
}

async function render() {
  const mine = ++turn;
  delete document.body.dataset.drawn;
  applyTheme();
  controls();
  const slow = setTimeout(() => busy(true), 150);
  let a = null, b = null, failure = "";
  try {
    a = await recordOf("a");
    b = await secondRecord(a);
  } catch (problem) {
    failure = problem.message;
  }
  clearTimeout(slow);
  if (mine !== turn) return;
  busy(false);
  records = { a, b }; // a text that failed has none: the maps of an earlier text would seem to be its own
  problems([a, b], failure);
  byId("notes").dataset.ready = "";
  document.body.classList.toggle("blank", !records.a);
  showForm();
  showTexts(unasked(records.a) ? null : records.a, state.cmp === "text" ? records.b : null);
  if (!records.a) {
    if (document.activeElement === document.body) byId("text-s")?.focus();
    return;
  }
  setDefaults(records.a);
  offer(records.a);
  follow(records.b && sameHead(records.a, headOn("a"), records.b));
  showFilm(records.a);
  const active = state.side === "b" && state.cmp !== "head" && records.b ? records.b : records.a;
  showGrid(active);
  showTable(active);
  showOutput(records.a, state.cmp === "text" ? records.b : null);
  showPredictions(active);
  const two = !!(state.cmp && records.b);
  const name = (i) => (given.models.length > 1 && two && state.cmp === "model" ? given.models[i] : "");
  await Promise.all([panels.a.load(records.a, name(Number(state.p))), two && panels.b.load(records.b, name(Number(state.p2)))]);
  if (mine !== turn) return;
  await paint(two);
  await showExamples(active, headOn(state.side === "b" && state.cmp !== "text" ? "b" : "a"));
  if (mine === turn) document.body.dataset.drawn = ""; // the screen shows the state; tests wait for this
}

// offer shows the controls for value norms, queries and keys if the record contains them.
function offer(record) {
  byId("valued").hidden = !record.layers.some((l) => l.values);
  const tab = byId("views").querySelector('[data-view="neurons"]');
  tab.title = record.layers.some((l) => l.vectors) ? "" : whyNoVectors(record);
  tab.setAttribute("aria-disabled", String(!!tab.title));
}

// unasked reports whether a record is shown only because no text and no step was chosen.
const unasked = (record) => record?.frame !== undefined && !state.f;

// problems shows warnings about the records and errors.
function problems(list, failure) {
  const box = byId("notes");
  box.querySelectorAll(".note").forEach((n) => n.remove());
  const lines = [...new Set(list.filter(Boolean).flatMap((r) => r.warnings))];
  if (failure) box.append(el("p", { class: "note bad", text: failure }));
  if (lines.length) box.append(el("p", { class: "note" }, el("b", { text: "Errors in the attention weights: " }), lines.join("; ")));
  if (given.models.length && !failure && list.every((r) => !r || unasked(r))) box.append(el("p", { class: "note hint", text: "Type a text above to see what the model attends to." }));
}

// paint draws the loaded panels; two panels share one colour scale and get a third panel with their difference.
async function paint(two) {
  const a = panels.a.what(), b = two ? panels.b.what() : null;
  const scale = a && b ? { lo: Math.min(a.m.lo, b.m.lo), hi: Math.max(a.m.hi, b.m.hi), signed: a.m.signed || b.m.signed } : null;
  const third = difference.fits(a, b);
  arrange(two, third);
  const jobs = [panels.a.paint(scale), two && panels.b.paint(scale)];
  if (third) jobs.push(difference.show(a, b));
  await Promise.all(jobs);
}

// shown are the panels on the screen.
const shown = () => [panels.a, panels.b, difference].filter((p) => p?.node.isConnected);

// relay marks the cell or token under the pointer in the other panels too.
function relay(from, hit, what) {
  for (const [side, p] of Object.entries({ ...panels, d: difference })) if (side !== from && p.node.isConnected) p.mirror(hit, what);
}

// arrange puts one or two panels on the screen, and their difference if there is one.
function arrange(two, third) {
  const wanted = [panels.a.node, two && panels.b.node, third && difference.node].filter(Boolean);
  const box = byId("panels");
  if (wanted.length !== box.children.length || wanted.some((n, i) => n !== box.children[i])) box.replaceChildren(...wanted);
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
    if (input.selectedIndex === -1) input.value = ""; // the address names none of the options
  }
  byId("grid-order").disabled = byId("grid-measure").value === "";
  for (const button of byId("views").children) {
    const on = button.dataset.view === state.v;
    button.setAttribute("aria-checked", String(on));
    button.tabIndex = on ? 0 : -1;
  }
  for (const option of document.querySelectorAll('[data-state="cmp"] option[value="text"]')) option.hidden = !given.models.length && given.records.length < 2;
  for (const option of document.querySelectorAll('[data-state="cmp"] option[value="model"]')) option.hidden = given.models.length < 2;
}

function applyTheme() {
  document.documentElement.dataset.theme = theme();
  const names = { "": t`Colours: system`, light: t`Colours: light`, dark: t`Colours: dark` };
  byId("theme").textContent = { "": "◐", light: "☀", dark: "☾" }[state.theme];
  byId("theme").setAttribute("aria-label", names[state.theme]);
  byId("theme").title = names[state.theme];
}

// other returns the state of side b when a comparison starts: the head next to the open one, or, in a layer of one
// head, the first head of the next layer. Side b is then the active side, so that a click in the overview replaces its
// head.
function other(kind) {
  if (kind === "model") return { side: "a", b: "=" };
  if (kind !== "head") return { side: "a" };
  const a = headOn("a"), b = headOn("b"), layers = records.a?.layers ?? [], heads = layers[a.layer]?.heads ?? 1;
  if (b.layer === a.layer && b.head !== a.head && b.head < heads) return { side: "b", b: state.b };
  if (typeof a.head !== "number") return { side: "b", b: `${a.layer}.0` };
  return { side: "b", b: heads > 1 ? `${a.layer}.${(a.head + 1) % heads}` : `${(a.layer + 1) % Math.max(1, layers.length)}.0` };
}

function wire() {
  for (const input of document.querySelectorAll("[data-state]")) {
    const key = input.dataset.state;
    input.addEventListener("change", () => {
      const patch = { [key]: input.type === "checkbox" ? (input.checked ? "1" : "") : input.value };
      if (key === "x" || key === "w") patch.z = "";
      if (key === "cmp") Object.assign(patch, other(input.value));
      change(patch);
    });
  }
  byId("views").addEventListener("click", (event) => {
    const { view } = event.target.dataset;
    if (!view) return;
    if (event.target.ariaDisabled === "true") say(event.target.title);
    else change({ v: view });
  });
  byId("views").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const list = [...byId("views").children].filter((b) => b.ariaDisabled !== "true");
    const next = list[(list.findIndex((b) => b.dataset.view === state.v) + by + list.length) % list.length];
    change({ v: next.dataset.view });
    next.focus();
  });
  byId("theme").addEventListener("click", () => change({ theme: { "": "dark", dark: "light", light: "" }[state.theme] }));
  byId("help").addEventListener("click", () => byId("glossary").showModal());
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("panels").focus();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("textarea, select, input:not([type=checkbox])");
    if (event.key === "Escape") {
      if (byId("glossary").open) return; // it closes by itself
      if (byId("export").open) {
        byId("export").open = false;
        byId("export").firstElementChild.focus();
      } else if (preview.hide()) {
        // the preview was open
      } else if (!shown().some((p) => p.cancel())) {
        if (state.tok) change({ tok: "" });
        else if (state.z) change({ z: "" });
        else if (state.cmp) change({ cmp: "", side: "a" });
        else if (state.f && (!frozen || frozen.text)) change({ f: "" });
        else typing?.blur();
      }
    } else if ((event.key === "[" || event.key === "]") && !typing) step(0, event.key === "]" ? 1 : -1, false);
  });
  onSystemTheme(() => render());
  const fine = window.matchMedia("(pointer: fine)"); // on phones the address bar changes the height
  let height = window.innerHeight;
  window.addEventListener("resize", later(120, () => { // panels observe their own width
    if (height === window.innerHeight || !fine.matches) return;
    height = window.innerHeight;
    for (const p of shown()) p.redraw();
  }));
  onPaper(() => {
    applyTheme();
    for (const p of shown()) p.redraw();
    repaint();
  });
}

async function open() {
  try {
    given = await start();
  } catch (problem) {
    byId("notes").append(el("p", { class: "note bad", text: problem.message }));
    return;
  }
  prepareColours(given.palette);
  given.columns = given.columns.map((c) => ({ ...c, label: tr(c.label), help: tr(c.help) }));
  translate(document.body);
  byId("name").textContent = tr(given.name);
  document.title = given.name + " · attn view";
  begin(frozen ? "#" + frozen.address : "");
  const active = (side) => { if (state.cmp) change({ side }); };
  const aloud = (text) => { whisper.textContent = text; };
  panels = { a: panel("a", given.columns, active, aloud, relay), b: panel("b", given.columns, active, aloud, relay) };
  difference = differencePanel(aloud, relay);
  prepareMeasured(given);
  preview = prepareGrid();
  wire();
  prepareForm(given);
  prepareOutput();
  prepareFilm(given);
  prepareExamples(given);
  prepareTable(given.columns);
  prepareGlossary(given.columns);
  prepareExport(() => ({
    panels: shown(),
    records: [...new Set([records.a, state.cmp ? records.b : null])].filter(Boolean),
    text: async () => (records.a?.frame === undefined ? null : recordOf("a", false).catch(() => null)), // a text that the model refuses is in no page
  }), say);
  if (frozen) document.body.classList.add("frozen");
  if (embedded) document.body.classList.add("embedded");
  if (embedded && frozen) {
    subscribe(tell);
    tell(); // the page around this one knows now that it works
  }
  byId("grid").addEventListener("warned", () => problems([records.a, records.b]));
  subscribe(render);
  render();
}

open();
