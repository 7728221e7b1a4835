// One head: what it is called, its measures, and one of the views.

import { el, number } from "./dom.js";
import { place, state } from "./state.js";
import { legend } from "./colour.js";
import { head, headPath, measures } from "./data.js";
import { heatView } from "./heat.js";
import { linesView } from "./lines.js";
import { textView } from "./text.js";
import { axesOf, part, visibleKeys } from "./tokens.js";

const largest = 2048; // rows and columns that come at once; the server makes blocks of more

// panel returns the panel of a side.
export function panel(side, columns, onactive, say) {
  const title = el("h3", {}), sub = el("p", { class: "sub" }), facts = el("dl", { class: "facts" });
  const note = el("p", { class: "note", hidden: true, role: "status" });
  const tools = el("div", { class: "tools" });
  const stage = el("div", { class: "stage" }), key = el("div", { class: "key" });
  const node = el("article", { class: "panel", "aria-label": "Head " + side }, el("header", {}, tools, title, sub), facts, note, stage, key);
  node.addEventListener("pointerdown", () => onactive(side), { capture: true });
  node.addEventListener("focusin", () => onactive(side));
  const views = { map: heatView(say), lines: linesView(say), text: textView(say) };
  let turn = 0, what = null;

  function message(text) {
    note.textContent = text;
    note.hidden = !text;
  }

  // show fetches and draws the head that the state names.
  async function show(record) {
    const mine = ++turn;
    const p = place(state.cmp === "text" ? "a" : side); // two texts are seen through one head
    const layer = record.layers[p.layer];
    if (!layer || p.head >= layer.heads) {
      node.setAttribute("aria-busy", "false");
      what = null;
      title.textContent = layer ? `${layer.kind} layer ${layer.index} has no head ${p.head}`
        : record.layers.length ? `There is no layer ${p.layer} with a head ${p.head} here` : "";
      sub.textContent = "";
      facts.replaceChildren();
      stage.replaceChildren();
      key.replaceChildren();
      message("");
      return;
    }
    const whole = axesOf(record, layer);
    const rows = whole.q.labels.length, cols = whole.k.labels.length;
    const z = window_(rows, cols);
    const large = rows > largest || cols > largest;
    const zoomed = large && state.v === "map" && z;
    const name = () => { // together with the picture: a title never stands over another head's weights
      title.textContent = `${layer.kind} layer ${layer.index}, head ${p.head}`;
      sub.textContent = texts(record);
    };
    node.setAttribute("aria-busy", "true");
    try {
      const m = await head(record, p.layer, p.head, zoomed ? `&rows=${z.r0}-${z.r1}&cols=${z.c0}-${z.c1}` : "");
      if (mine !== turn) return;
      name();
      const from = zoomed || { r0: 0, r1: rows, c0: 0, c1: cols };
      const q = zoomed || m.blockQ > 1 ? part(whole.q, from.r0, from.r1, m.blockQ) : whole.q;
      const k = zoomed || m.blockK > 1 ? part(whole.k, from.c0, from.c1, m.blockK) : whole.k;
      m.seen = visibleKeys(layer, q, k);
      const inside = !large && z ? z : { r0: 0, r1: m.rows, c0: 0, c1: m.cols };
      what = { record, layer: p.layer, head: p.head, m, q, k, part: inside, same: layer.q === layer.k,
        whole: () => ({ ...(z || { r0: 0, r1: rows, c0: 0, c1: cols }), rows, cols, startQ: zoomed ? z.r0 : 0, startK: zoomed ? z.c0 : 0 }) };
      message(m.blockQ * m.blockK > 1 ? `${rows} × ${cols} tokens are too many to draw: each cell shows the largest of ${m.blockQ} × ${m.blockK} weights. Zoom in to see single ones.` : "");
      draw();
    } catch (problem) {
      if (mine !== turn) return;
      name();
      what = null;
      stage.replaceChildren();
      key.replaceChildren();
      message(problem.message);
    }
    node.setAttribute("aria-busy", "false");
    await tell(record, p, mine);
  }

  function draw() {
    const view = views[state.v];
    if (tools.firstChild !== (view.tools ?? null)) tools.replaceChildren(...(view.tools ? [view.tools] : [])); // a button that is pressed stays
    if (stage.firstChild !== view.node) stage.replaceChildren(view.node);
    if (what.m.rows === 0 || what.m.cols === 0) {
      stage.replaceChildren(el("p", { class: "quiet", text: state.x ? "There are no tokens but special ones." : "There are no tokens." }));
      key.replaceChildren();
      return;
    }
    view.show(what);
    key.replaceChildren(view.key ?? legend(what.m, view.note?.()));
  }

  // tell writes the measures under the title.
  async function tell(record, p, mine) {
    const list = await measures(record, p.layer).catch(() => null);
    if (mine !== turn) return;
    facts.replaceChildren(...(list ? list[p.head] : []).flatMap((x, i) => (x == null ? [] : [el("div", { title: columns[i].help },
      el("dt", { text: columns[i].label }), el("dd", { text: number(x, 2) }))])));
  }

  return {
    node, show,
    redraw() { if (what) draw(); },
    cancel: () => !!what && views[state.v].cancel(),
    picture: () => (what && what.m.rows * what.m.cols ? { title: title.textContent, sub: sub.textContent, m: what.m, ...views[state.v].svg() } : null),
    sources: () => (what ? [[headPath(what.record, what.layer, what.head), what.record]] : []), // paths and what they are about
  };
}

// window_ returns the part that the state zooms to, null if it is everything or does not fit.
function window_(rows, cols) {
  const found = /^(\d+)-(\d+),(\d+)-(\d+)$/.exec(state.z);
  if (!found) return null;
  const [r0, r1, c0, c1] = found.slice(1).map(Number);
  return r0 < r1 && r1 <= rows && c0 < c1 && c1 <= cols ? { r0, r1, c0, c1 } : null;
}

const texts = (record) => [record.source, record.target].filter(Boolean).join(" → ");
