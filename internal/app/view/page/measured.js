// Colouring of the overview by a measure, and its legend.

import { byId, el, number } from "./dom.js";
import { headOn, state } from "./state.js";
import { css, inkOn, ramp } from "./colour.js";
import { divergence, effects, frozen, measures } from "./data.js";
import { t, tr } from "./words.js";

let columns = [];

// prepareMeasured fills the menu of measures. Effects need a model that runs.
export function prepareMeasured(given) {
  columns = given.columns;
  byId("grid-measure").replaceChildren(el("option", { value: "", text: t`thumbnails` }),
    ...columns.map((c) => el("option", { value: c.key, text: c.label })), el("option", { value: "divergence", text: t`divergence` }), ...(frozen || given.models.length === 0 ? [] : [el("option", { value: "effect", text: t`effect on the output` })]));
}

// measured returns the index of the measure that colours the heads, -1 if there is none.
export const measured = () => columns.findIndex((c) => c.key === state.g);

// computed reports whether the heads are coloured by a number that is computed for this text.
export const computed = () => state.g === "divergence" || state.g === "effect";

// magnitude is what colours and orders a head: an effect may have either sign.
export const magnitude = (x) => (state.g === "effect" ? Math.abs(x) : x);

// ranked reports whether the heads are sorted by a measure.
export const ranked = () => state.go !== "" && (measured() >= 0 || computed());

// values returns the measure of each head of a layer; null if it is missing.
export async function values(record, layer) {
  if (state.g === "divergence") {
    const from = headOn("a");
    return divergence(record, layer, from);
  }
  if (state.g === "effect") return effects(record, layer);
  const at = measured();
  return (await measures(record, layer)).map((row) => row[at] ?? null);
}

// shade colours cells { button, value, x } from the smallest to the largest value and returns the legend; missing is
// the number of layers not measured yet.
export function shade(cells, missing) {
  const known = cells.map((c) => magnitude(c.x)).filter(Number.isFinite);
  const lo = Math.min(...known), hi = Math.max(...known);
  for (const { button, value, sign, x } of cells) {
    const none = !Number.isFinite(x), t = hi > lo ? (magnitude(x) - lo) / (hi - lo) : 0;
    button.style.background = none ? "" : css(t);
    value.style.color = none ? "" : inkOn(t);
    value.textContent = button.classList.contains("summary") ? "" : (ranked() ? sign + "\n" : "") + number(none ? null : x, 2);
    button.dataset.value = none ? "" : `${name()} ${number(x, 4)}`;
    button.setAttribute("aria-label", `${button.dataset.name}, ${name()} ${number(none ? null : x, 4)}`);
    button.classList.toggle("empty", none);
  }
  if (known.length === 0) return [el("p", { text: missing ? t`Measuring…` : t`No head has a ${name()}.` })];
  return [el("p", { class: "legend" }, el("span", { text: `${columns[measured()]?.label ?? tr(state.g)} ${number(lo)}` }), ramp(css), el("span", { text: number(hi) }),
    ...(missing ? [el("span", { text: t`measuring, ${missing} layers left` })] : []))];
}

const name = () => (state.g === "divergence" ? t`divergence from the open head` : state.g === "effect" ? t`effect on the output, if it is switched off` : columns[measured()]?.label ?? "");

// gridKey returns the legend of thumbnails.
export const gridKey = () => [el("p", { class: "thumbs", text: t`Each pixel of a thumbnail shows the largest weight under it.` })];
