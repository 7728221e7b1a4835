// The difference of the two compared heads, cell by cell, in colours that show its sign.

import { el, number } from "./dom.js";
import { state } from "./state.js";
import { legend } from "./colour.js";
import { divergence, divergencePath, weight } from "./data.js";
import { heatView } from "./heat.js";
import { frame } from "./panel.js";
import { sameAxis } from "./tokens.js";
import { t } from "./words.js";

// subtract returns a − b as a matrix of codes, of which 127 is 0. Without exact weights it subtracts the rounded ones.
function subtract(a, b, exactA, exactB) {
  const n = a.codes.length, x = new Float32Array(n);
  let most = 0;
  for (let p = 0, i = 0; i < a.rows; i++)
    for (let j = 0; j < a.cols; j++, p++) {
      x[p] = exactA && exactB ? exactA[p] - exactB[p] : weight(a, i, j) - weight(b, i, j);
      if (Math.abs(x[p]) > most) most = Math.abs(x[p]);
    }
  const codes = new Uint8Array(n);
  for (let p = 0; p < n; p++) codes[p] = Number.isNaN(x[p]) ? 255 : 127 + (most > 0 ? Math.round((127 * x[p]) / most) : 0);
  return { rows: a.rows, cols: a.cols, blockQ: a.blockQ, blockK: a.blockK, lo: -most, hi: most, signed: true, codes, seen: a.seen };
}

export function differencePanel(say, ontell) {
  const f = frame(() => { if (what) draw(); });
  f.node.classList.add("difference");
  let what = null, from = [], sources = [];
  const view = heatView(say, (hit) => ontell("d", hit, what));

  function draw() {
    if (f.stage.firstChild !== view.node) f.stage.replaceChildren(view.node);
    f.drawn();
    view.show(what);
    f.key.replaceChildren(legend(what, view.note()));
  }

  return {
    node: f.node,
    // fits reports whether a difference can be drawn: both panels are maps of the same tokens.
    fits: (a, b) => !!a && !!b && state.v === "map" && sameAxis(a.q, b.q) && sameAxis(a.k, b.k) && a.m.codes.length > 0 && a.m.codes.length === b.m.codes.length,
    // show draws a − b.
    async show(a, b) {
      if (from[0] !== a.m || from[1] !== b.m) {
        from = [a.m, b.m];
        const [x, y] = await Promise.all([a.values(), b.values()]).catch(() => [null, null]);
        if (from[0] !== a.m || from[1] !== b.m) return; // the compared heads have changed
        const m = subtract(a.m, b.m, x, y);
        sources = [[divergencePath(b.record, b.layer, a, b.head, a.record), b.record], ...(x && y ? [[a.exactPath, a.record], [b.exactPath, b.record]] : [])];
        what = { ...a, m, scale: m, exact: async (i) => {
          const [x, y] = await Promise.all([a.exact(i), b.exact(i)]);
          return x.map((v, j) => v - y[j]);
        } };
      } else what = { ...what, part: a.part, whole: a.whole };
      f.title.textContent = t`Difference, first − second`;
      const sum = what.m.codes.reduce((s, code) => s + Math.abs(code - 127) / 127, 0) * what.m.hi;
      f.facts.replaceChildren(el("div", { title: t`Half the sum of absolute differences, averaged over the queries: 0 for equal heads, 1 for heads that attend to different keys` },
        el("dt", { text: t`total variation` }), el("dd", { text: number(sum / 2 / what.m.rows, 2) })));
      divergence(b.record, b.layer, a, b.head, a.record).then(([d]) => {
        if (from[0] !== a.m || from[1] !== b.m) return;
        f.facts.children[1]?.remove();
        f.facts.append(el("div", { title: t`Jensen–Shannon divergence of the two heads, averaged over the queries, in nats: 0 for equal heads, 0.69 for heads that attend to different keys` },
          el("dt", { text: t`divergence` }), el("dd", { text: number(d, 2) })));
      }, () => {}); // an exported page may not contain it
      draw();
    },
    redraw() {
      if (what) draw();
    },
    mirror: (hit) => { if (what) view.mirror(hit && "i" in hit ? hit : null); },
    cancel: () => !!what && view.cancel(),
    picture: () => (what ? { title: f.title.textContent, sub: "", what, ...view.svg() } : null),
    sources: () => (what ? sources : []),
  };
}
