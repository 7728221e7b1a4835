// The form for typing texts or, without a model, for choosing a record.

import { byId, el } from "./dom.js";
import { change, state } from "./state.js";
import { frozen } from "./data.js";
import { shorten } from "./tokens.js";
import { t } from "./words.js";

const form = byId("ask");
let start = null;

// prepareForm builds the fields for the models and records of the server.
export function prepareForm(given) {
  start = given;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  showForm();
}

const fields = new Map();

function box(key, label, optional) {
  const area = el("textarea", { rows: "1", id: "text-" + key, spellcheck: "false", autocomplete: "off", dir: "auto", placeholder: optional ? start.second.hint : "" });
  for (const event of ["input", "focus", "blur"]) area.addEventListener(event, () => grow(area));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  fields.set(key, area);
  return el("label", { class: "field-text" }, el("span", { text: label }), area);
}

const twoLines = 54, manyLines = 162; // pixels

// grow fits the height of a field to its text: up to two lines, without the padding below, which would show half of the
// third line. The focused field may be higher and then covers the page below it, because moving that page would move it
// away from the pointer when the field loses focus.
function grow(area) {
  area.style.height = "auto";
  area.style.marginBottom = "";
  area.classList.remove("cut");
  const all = area.scrollHeight + 2, typing = document.activeElement === area, long = all > twoLines + 8;
  const height = !long ? all : typing ? Math.min(manyLines, all) : twoLines;
  area.classList.toggle("cut", long && !typing);
  area.style.height = height + "px";
  area.style.marginBottom = (long ? twoLines - height : 0) + "px";
  area.classList.toggle("open", typing && long);
  if (!typing) area.scrollTop = 0;
}

function choice(key, label) {
  const select = el("select", { onchange: () => change({ [key]: select.value, z: "", tok: "", mask: "" }) },
    ...start.records.map((r, i) => el("option", { value: i, text: [r.source, r.target].filter(Boolean).join(" → ") || t`Record ${i}` })));
  fields.set(key, select);
  return el("label", { class: "field-text" }, el("span", { text: label }), select);
}

// given returns a menu of the texts of the command line.
function given() {
  const field = choice("r", "Examples");
  const select = fields.get("r");
  select.prepend(el("option", { value: "", text: "typed", hidden: true }));
  select.addEventListener("change", () => change({ s: "", t: "", f: "" }));
  field.classList.add("given");
  return field;
}

let built = "";

// showForm updates the fields from the state.
export function showForm() {
  const two = state.cmp === "text";
  const kind = frozen ? "" : start.models.length ? "model" : start.records.length > 1 ? "records" : "";
  form.hidden = !kind;
  if (!kind) return;
  if (built !== kind + two) {
    built = kind + two;
    fields.clear();
    const rows = [];
    const pair = (s, t, name) => el("div", { class: "pair" }, box(s, name, false), box(t, start.second.label, true));
    if (kind === "model") {
      const first = pair("s", "t", two ? "First text" : "Text");
      if (start.records.length > 1) first.prepend(given()); // next to the text that it replaces
      rows.push(el("div", { class: "pairs" }, first, ...(two ? [pair("s2", "t2", "Second text")] : [])));
      rows.push(el("button", { type: "submit", class: "main", text: "Show" }));
    } else {
      rows.push(choice("r", two ? t`First` : t`Record`));
      if (two) rows.push(choice("r2", t`Second`));
    }
    form.replaceChildren(...rows);
  }
  for (const [key, field] of fields) {
    const value = key === "r" && state.s ? "" : key in shown ? shown[key] : state[key];
    if (document.activeElement !== field || field.dataset.was !== value) {
      field.value = value;
      field.dataset.was = value;
    }
    if (field.tagName === "TEXTAREA") grow(field);
  }
}

let shown = {};

// showTexts writes the texts of the shown records into the fields.
export function showTexts(a, b) {
  shown = {};
  if (!start.models.length) return;
  if (a) shown = { s: a.source, t: state.t };
  if (b) shown = { ...shown, s2: b.source, t2: state.t2 };
  for (const [key, record] of [["t", a], ["t2", b]]) {
    const field = fields.get(key);
    if (field && record) field.placeholder = shorten(record.target, 40) || start.second.hint;
  }
  showForm();
}

function submit() {
  const value = (key) => fields.get(key)?.value.trim() ?? state[key];
  const patch = { s: value("s"), t: value("t"), f: "" };
  if (state.cmp === "text" && patch.s === shown.s) patch.f = state.f; // a step beside a text
  if (state.cmp === "text") Object.assign(patch, { s2: value("s2"), t2: value("t2") });
  change({ ...patch, z: "", tok: "", mask: "" });
}

export function busy(on) {
  form.classList.toggle("busy", on);
  const button = form.querySelector("button.main");
  if (button) button.textContent = on ? "Working…" : "Show";
}
