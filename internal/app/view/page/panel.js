// The panel of one head: its name, its measures, and one of the views.

import { el, later, number } from "./dom.js";
import { lens, headOn, state } from "./state.js";
import { legend } from "./colour.js";
import { exact, exactPath, facts, factsPath, head, headPath, neuronsPath, row, rowPath } from "./data.js";
import { heatView } from "./heat.js";
import { linesView } from "./lines.js";
import { neuronsView, queryOf } from "./neurons.js";
import { textView } from "./text.js";
import { axesOf, headName, headTitle, headsOf, layerName, part, sameAxis, visibleKeys } from "./tokens.js";
import { t } from "./words.js";

const largest = 2048; // rows and columns; the server sends larger heads as blocks

let frames = 0;

// frame returns the elements that all panels have. The width for a view is known only after layout, and changes with
// the window and the overview: redraw is called when the width differs from the one that was drawn.
export function frame(redraw) {
  const title = el("h3", { id: "panel-" + ++frames }), sub = el("p", { class: "sub", dir: "auto" }), facts = el("dl", { class: "facts" });
  const note = el("p", { class: "note", hidden: true, role: "status" });
  const tools = el("div", { class: "tools" });
  const stage = el("div", { class: "stage" }), key = el("div", { class: "key" });
  const node = el("article", { class: "panel", "aria-labelledby": title.id }, el("header", {}, tools, title, sub), facts, note, stage, key);
  const message = (text) => {
    note.textContent = text;
    note.hidden = !text;
  };
  const clear = (text) => {
    stage.replaceChildren();
    key.replaceChildren();
    message(text);
  };
  let width = 0;
  const drawn = () => { width = stage.clientWidth; };
  new ResizeObserver(later(60, () => { if (stage.clientWidth !== width && stage.clientWidth > 0) redraw(); })).observe(stage);
  return { node, title, sub, facts, tools, stage, key, message, clear, drawn };
}

// panel returns the panel of a side. ontell is called with the cell or token under the pointer.
export function panel(side, columns, onactive, say, ontell) {
  const f = frame(() => { if (what && !views[state.v].flows) draw(); });
  f.node.addEventListener("pointerdown", () => onactive(side), { capture: true });
  f.node.addEventListener("focusin", () => onactive(side));
  const tell = (hit) => ontell(side, hit, what);
  const views = { map: heatView(say, tell), lines: linesView(say, tell), text: textView(say, tell), neurons: neuronsView(say, tell) };
  let turn = 0, what = null, named = null;

  // load fetches the head that the state names, and returns false if a later call has replaced this one. The screen
  // changes only in paint, so that a title never appears above another head's weights, and two compared heads always
  // have the same scale.
  async function load(record, name) {
    const mine = ++turn;
    const p = headOn(state.cmp === "text" ? "a" : side); // two texts are compared in the same head
    const layer = record.layers[p.layer];
    const sub = [name, texts(record)].filter(Boolean).join(": ");
    if (!layer || !headsOf(layer).includes(p.head)) {
      what = null;
      const missing = layer ? t`There is no ${typeof p.head === "number" ? t`head ${p.head}` : headName(layer, p.head)} in ${layerName(layer)}`
        : p.layer < 0 ? t`The other model does not have this head` : record.layers.length ? t`There is no layer ${p.layer} in this record` : "";
      named = { title: missing, sub: "", record: null };
      return true;
    }
    const whole = axesOf(record, layer);
    const rows = whole.q.labels.length, cols = whole.k.labels.length;
    const z = window_(rows, cols);
    const large = rows > largest || cols > largest;
    const zoomed = large && state.v === "map" && z;
    const next = { title: headTitle(record, p), sub, record, place: p };
    f.node.setAttribute("aria-busy", "true");
    try {
      const m = await head(record, p.layer, p.head, zoomed ? `&rows=${z.r0}-${z.r1}&cols=${z.c0}-${z.c1}` : "");
      const others = await Promise.all(further(layer, p.head).map(async (h) => ({ head: h, m: await head(record, p.layer, h) })));
      if (mine !== turn) return false;
      const from = zoomed || { r0: 0, r1: rows, c0: 0, c1: cols };
      const q = zoomed || m.blockQ > 1 ? part(whole.q, from.r0, from.r1, m.blockQ) : whole.q;
      const k = zoomed || m.blockK > 1 ? part(whole.k, from.c0, from.c1, m.blockK) : whole.k;
      m.seen = visibleKeys(layer, q, k);
      const inside = !large && z ? z : { r0: 0, r1: m.rows, c0: 0, c1: m.cols };
      next.note = m.blockQ * m.blockK > 1 ? t`${rows.toLocaleString("en")} × ${cols.toLocaleString("en")} tokens are too many to draw: each cell shows the largest of ${m.blockQ} × ${m.blockK} weights. Zoom in to see single weights.` : "";
      const through = lens();
      what = { record, layer: p.layer, head: p.head, m, q, k, part: inside, same: layer.q === layer.k, others, side: state.cmp === "text" ? "a" : side, valued: through.includes("values") && p.head !== "rollout", exact: (i) => row(record, p.layer, p.head, i, through),
        values: () => exact(record, p.layer, p.head, m, through), exactPath: exactPath(record, p.layer, p.head, through),
        whole: () => ({ ...(z || { r0: 0, r1: rows, c0: 0, c1: cols }), rows, cols, startQ: zoomed ? z.r0 : 0, startK: zoomed ? z.c0 : 0 }) };
    } catch (problem) {
      if (mine !== turn) return false;
      what = null;
      next.note = problem.message;
    }
    named = next;
    return true;
  }

  // paint shows the loaded head, its colours on a scale { lo, hi }.
  async function paint(scale) {
    const mine = turn;
    f.node.setAttribute("aria-busy", "false");
    f.title.textContent = named.title;
    f.sub.textContent = named.sub;
    f.message(named.note ?? "");
    if (what) {
      what.scale = scale ?? what.m;
      what.shared = !!scale;
      draw();
    } else f.clear(named.note ?? "");
    const list = named.record && (await facts(named.record, named.place).catch(() => null));
    if (mine !== turn) return;
    f.facts.replaceChildren(...(list ?? []).flatMap((x, i) => (x == null ? [] : [el("div", { title: columns[i].help },
      el("dt", { text: columns[i].label }), el("dd", { text: number(x, 2) }))])));
  }

  function draw() {
    const view = views[state.v];
    if (f.tools.firstChild !== (view.tools ?? null)) f.tools.replaceChildren(...(view.tools ? [view.tools] : [])); // keep the pressed button in the page
    if (f.stage.firstChild !== view.node) f.stage.replaceChildren(view.node);
    if (what.m.rows === 0 || what.m.cols === 0) {
      f.stage.replaceChildren(el("p", { class: "quiet", text: state.x ? t`There are only special tokens, which are hidden.` : t`There are no tokens.` }));
      f.key.replaceChildren();
      return;
    }
    f.drawn();
    view.show(what);
    f.key.replaceChildren(view.key ?? legend(what, view.note?.()));
  }

  return {
    node: f.node, load, paint,
    what: () => what,
    redraw() { if (what) draw(); },
    // mirror marks the cell or token under the pointer of another panel, if this panel has the same tokens.
    mirror(hit, from) {
      if (!what) return;
      const there = hit && from && (("i" in hit || hit.side === "q") ? sameAxis(what.q, from.q) : true) && (("i" in hit || hit.side === "k") ? sameAxis(what.k, from.k) : true);
      views[state.v].mirror(there ? hit : null);
    },
    cancel: () => !!what && views[state.v].cancel(),
    picture: () => (what && what.m.rows * what.m.cols ? { title: f.title.textContent, sub: f.sub.textContent, what, ...views[state.v].svg() } : null),
    // sources returns the request paths of everything shown, each with its record.
    sources: () => (what ? [...[what.head, ...what.others.map((o) => o.head)].map((h) => headPath(what.record, what.layer, h)), factsPath(what.record, what),
      ...(state.v === "neurons" && queryOf(what) >= 0 ? [neuronsPath(what.record, what.layer, what.head), rowPath(what.record, what.layer, what.head, queryOf(what), "")] : [])].map((path) => [path, what.record]) : []),
  };
}

// further returns the additional heads of a layer in the lines view.
const further = (layer, head) => (state.v === "lines" && state.hs ? state.hs.split("-").map(Number).filter((h) => h !== head && h < layer.heads) : []);

// window_ returns the part that the state zooms to, null if it is the whole map or outside it.
function window_(rows, cols) {
  const found = /^(\d+)-(\d+),(\d+)-(\d+)$/.exec(state.z);
  if (!found) return null;
  const [r0, r1, c0, c1] = found.slice(1).map(Number);
  return r0 < r1 && r1 <= rows && c0 < c1 && c1 <= cols ? { r0, r1, c0, c1 } : null;
}

const texts = (record) => [record.source, record.target].filter(Boolean).join(" → ");
