// The heat map of a head: a row for each query, a column for each key.

import { canvasFor, el, embedded, fillToken, later, number, paper, svg } from "./dom.js";
import { change, state } from "./state.js";
import { colourOf, masked, picture, show } from "./pool.js";
import { maskRGB } from "./colour.js";
import { weight } from "./data.js";
import { isMasked, press } from "./output.js";
import { choose, chosen, shorten } from "./tokens.js";
import { t } from "./words.js";

// hatching is the pattern of masked cells.
function hatching() {
  const [ground, stripe] = maskRGB().map((c) => `rgb(${c.join(",")})`);
  return svg("defs", {}, svg("pattern", { id: "masked", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(-45)" },
    svg("rect", { width: 5, height: 5, fill: ground }), svg("rect", { width: 5, height: 1, fill: stripe })));
}

const family = "system-ui, sans-serif";
const largestCell = 64, edge = 7, gapped = 14, titled = 18; // pixels; thin gaps make single cells easy to follow
const largestFont = 12;

// heatView returns the view that a panel shows: node, show(what), svg(), cancel() and others.
export function heatView(say, tell) {
  const base = el("canvas", { "aria-hidden": "true" }), over = el("canvas", { class: "over", "aria-hidden": "true" });
  const tip = el("div", { class: "tip", hidden: true });
  const field = el("div", { class: "field", tabindex: "0", role: "application",
    "aria-roledescription": t`heat map` }, base, over, tip);
  const zoomIn = el("button", { type: "button", text: "+", "aria-label": t`Zoom in`, title: t`Zoom in (Ctrl and wheel)`, onclick: () => zoom(0.5) });
  const zoomOut = el("button", { type: "button", text: "−", "aria-label": t`Zoom out`, onclick: () => zoom(2) });
  const fit = el("button", { type: "button", text: t`Fit`, onclick: () => change({ z: "" }) });
  const tools = el("span", { class: "zoom" }, zoomIn, zoomOut, fit);
  const printed = svg("svg", { class: "printed", "font-family": family }); // browsers print canvases empty that were drawn just before
  const node = el("div", { class: "heat" }, field, printed);
  let what = null, at = null, cell = null, exact = null, untold = false; // whether a screen reader has yet to speak the cell

  // heightFor returns the height available for the rows of the map. It depends only on the window and the panel, not on
  // the elements above the map: they wrap and load late, so the same head would get several sizes. In a frame of
  // another page nothing above the map changes, and the map gets the rest of the frame. Height never makes a map much
  // narrower than its panel, unless the map has more rows than columns.
  function heightFor(width, rows, cols, labels) {
    if (paper()) return paper();
    if (embedded) return Math.max(160, window.innerHeight - node.getBoundingClientRect().top - window.scrollY - titled - labels - 68);
    return Math.max(window.innerHeight - 360, 0.62 * width * Math.min(1, rows / Math.max(1, cols)));
  }

  // plan computes the layout: the part to show, the size of a cell and the places of the labels. Column labels are
  // upright if they fit, else all of them are turned; if labels would touch, only every n-th is drawn.
  function plan() {
    const { m, q, k, part } = what;
    const context = base.getContext("2d");
    context.font = `${largestFont}px ${family}`;
    const widths = (view, from, to) => { // in multiples of the font size
      const list = [];
      const step = Math.max(1, Math.floor((to - from) / 400)); // a sample is enough
      for (let i = from; i < to; i += step) list.push(context.measureText(shorten(view.labels[i], 16)).width / largestFont);
      return list;
    };
    const rows = part.r1 - part.r0, cols = part.c1 - part.c0, all = what.whole();
    const wideQ = Math.max(0, ...widths(q, part.r0, part.r1)), widthsK = widths(k, part.c0, part.c1), wideK = Math.max(0, ...widthsK);
    const turned = (letters) => Math.min(100, wideK * letters) + 8;
    const width = paper() || Math.max(180, node.clientWidth), high = heightFor(width, rows, cols, turned(largestFont));
    const least = window.devicePixelRatio >= 2 ? 7 : 9;
    // A word needs a gap beside it, a single letter almost none. A few longer labels, such as a special token among
    // letters, are squeezed instead of turning all labels.
    const fit = (w, size, letters) => w * letters + (w > 1 ? 0.5 * letters : 2) <= size;
    const fitsUpright = (size, letters) => 0.6 * wideK * letters + 2 <= size && widthsK.filter((w) => !fit(w, size, letters)).length <= 0.2 * widthsK.length;
    const singles = widthsK.filter((w) => w > 1).length <= 0.2 * widthsK.length;
    let letters = largestFont, left = 0, size = 0;
    for (let turn = 0; turn < 3; turn++) { // the size of labels depends on the cells, and the cells on the labels
      left = Math.ceil(titled + Math.min(120, width * 0.28, wideQ * letters) + 8);
      const fits = (rows, cols) => Math.min((width - left - edge) / Math.max(1, cols), high / Math.max(1, rows));
      // A zoomed part may be as large as the whole map was.
      const most = largestCell * (state.z ? Math.min(Math.max(1, all.rows / (all.r1 - all.r0)), Math.max(1, all.cols / (all.c1 - all.c0))) : 1);
      size = Math.max(0.02, Math.min(most, fits(rows, cols)));
      letters = Math.max(least, Math.min(largestFont, Math.floor(size / 1.2)));
      let standing = letters; // a smaller font keeps single letters upright
      while (singles && standing > least && !fitsUpright(size, standing)) standing--;
      if (fitsUpright(size, standing)) letters = standing;
    }
    const upright = fitsUpright(size, letters), top = Math.ceil(titled + (upright ? letters + 9 : turned(letters)));
    const step = size >= 1.1 * letters ? 1 : Math.ceil((1.3 * letters) / size);
    return { ...part, rows, cols, left, top, size, letters, upright, stepQ: step, stepK: upright ? 1 : step,
      width: Math.ceil(left + cols * size + edge), height: Math.ceil(top + rows * size + edge) };
  }

  // labels yields the texts around the map with their places.
  function* labels() {
    const pick = chosen(what.q, what.k);
    const mid = (n) => (n + 0.5) * at.size;
    yield { text: t`key`, x: at.left + (at.cols * at.size) / 2, y: 8, middle: true, title: true };
    yield { text: t`query`, x: 7, y: at.top + (at.rows * at.size) / 2, middle: true, down: true, title: true };
    for (let i = 0; i < at.rows; i += at.stepQ) {
      const r = at.r0 + i;
      yield { text: shorten(what.q.labels[r], 16), x: at.left - 5, y: at.top + mid(i), mark: what.q.marks[r], struck: isMasked(what, "q", r), on: pick?.side === "q" && pick.at === r };
    }
    for (let j = 0; j < at.cols; j += at.stepK) {
      const c = at.c0 + j;
      yield { text: shorten(what.k.labels[c], 16), x: at.left + mid(j), y: at.top - (at.upright ? at.letters / 2 + 5 : 5), down: !at.upright, middle: at.upright, column: true,
        mark: what.k.marks[c], struck: isMasked(what, "k", c), on: pick?.side === "k" && pick.at === c };
    }
  }

  const fontOf = (l) => `${l.on ? "bold " : ""}${l.title ? 11 : at.letters}px ${family}`;
  const roomOf = (l) => (l.title ? 200 : l.column && !l.down ? at.size - 2 : (l.down ? at.top : at.left) - titled - 6);

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return { ink: style.getPropertyValue("--ink").trim(), quiet: style.getPropertyValue("--quiet").trim(), accent: style.getPropertyValue("--accent").trim(),
      card: style.getPropertyValue("--card").trim(), edge: style.getPropertyValue("--edge").trim() };
  };

  function write(context, l, colour) {
    context.save();
    context.translate(l.x, l.y);
    if (l.down) context.rotate(-Math.PI / 2);
    context.textAlign = l.middle ? "center" : l.down ? "left" : "right";
    context.textBaseline = "middle";
    context.font = fontOf(l);
    context.fillStyle = colour;
    const room = Math.max(roomOf(l), at.letters), wide = Math.min(room, context.measureText(l.text).width);
    if (l.struck) context.fillRect({ left: 0, center: -wide / 2, right: -wide }[context.textAlign], 0, wide, 1);
    fillToken(context, l.text, room);
    context.restore();
  }

  function draw() {
    at = plan();
    const context = canvasFor(base, at.width, at.height);
    canvasFor(over, at.width, at.height);
    field.style.width = at.width + "px";
    field.style.height = at.height + "px";
    field.dataset.origin = `${at.left},${at.top}`; // for tests: the place of the first cell
    field.dataset.cell = at.size;
    const c = colours();
    const ratio = base.width / at.width; // of device pixels
    if (at.rows * at.cols > 0) {
      const x = Math.round(at.left * ratio), y = Math.round(at.top * ratio);
      context.putImageData(picture(what.m, what.scale, at, at.cols * at.size * ratio, at.rows * at.size * ratio, Math.round(5 * ratio)), x, y);
    }
    if (at.size >= gapped) {
      context.fillStyle = c.card;
      for (let i = 1; i < at.rows; i++) context.fillRect(at.left, at.top + i * at.size - 0.5, at.cols * at.size, 1);
      for (let j = 1; j < at.cols; j++) context.fillRect(at.left + j * at.size - 0.5, at.top, 1, at.rows * at.size);
    }
    context.strokeStyle = c.edge;
    context.lineWidth = 1;
    context.strokeRect(Math.round(at.left) - 0.5, Math.round(at.top) - 0.5, at.cols * at.size + 1, at.rows * at.size + 1);
    for (const l of labels()) write(context, l, l.on ? c.accent : l.mark || l.title ? c.quiet : c.ink);
    if (cell && !(within("q", cell.i) && within("k", cell.j))) cell = null;
    point();
    refine();
    printed.replaceChildren();
    if (!paper()) return;
    const drawing = vectors();
    printed.setAttribute("width", drawing.width);
    printed.setAttribute("height", drawing.height);
    printed.append(drawing.node);
  }

  const within = (side, n) => (side === "q" ? n >= at.r0 && n < at.r1 : n >= at.c0 && n < at.c1);

  // point marks the current cell, of the pointer or the keyboard, and the selected token.
  function point() {
    const context = over.getContext("2d");
    context.clearRect(0, 0, at.width, at.height);
    const c = colours();
    const band = (side, n, colour, thick) => {
      context.strokeStyle = colour;
      context.lineWidth = thick;
      const s = Math.max(at.size, 2);
      if (side === "q") context.strokeRect(at.left, at.top + (n - at.r0) * at.size, at.cols * at.size, s);
      else context.strokeRect(at.left + (n - at.c0) * at.size, at.top, s, at.rows * at.size);
    };
    const pick = chosen(what.q, what.k);
    if (pick && within(pick.side, pick.at)) band(pick.side, pick.at, c.accent, 2);
    tip.hidden = !cell;
    if (!cell) return;
    band("q", cell.i, c.quiet, 1);
    band("k", cell.j, c.quiet, 1);
    const m = what.m, blocks = m.blockQ * m.blockK > 1 ? t`, largest of ${m.blockQ} × ${m.blockK}` : "";
    tip.replaceChildren(el("b", { text: value() }), el("span", { text: blocks }),
      el("div", { text: `${what.q.labels[cell.i]} → ${what.k.labels[cell.j]}` }),
      el("div", { class: "quiet", text: t`query ${what.q.spans[cell.i][0]}, key ${what.k.spans[cell.j][0]}` + (masked(m, cell.i, cell.j) ? t`, masked by design` : "") }));
    const px = at.left + (cell.j - at.c0 + 1) * at.size + 8, py = at.top + (cell.i - at.r0 + 1) * at.size + 8;
    tip.style.left = Math.max(0, Math.min(px, at.width - tip.offsetWidth)) + "px";
    tip.style.top = (py + tip.offsetHeight > at.height && py > tip.offsetHeight + at.size + 16 ? py - tip.offsetHeight - at.size - 16 : py) + "px";
  }

  // value returns the weight of the current cell as text: rounded to a byte until the exact row is loaded.
  const value = () => (exact?.i === cell.i ? number(exact.values[cell.j], 4) : number(weight(what.m, cell.i, cell.j)));

  // speak announces the current cell to screen readers.
  function speak() {
    if (!cell || !untold) return;
    untold = false;
    say(t`${what.q.labels[cell.i]} attends to ${what.k.labels[cell.j]} with weight ${value()}` + (masked(what.m, cell.i, cell.j) ? t`, masked` : ""));
  }

  // refine fetches the exact weights of the current row.
  const refine = later(60, async () => {
    if (!cell) return;
    if (what.m.blockQ * what.m.blockK > 1 || exact?.i === cell.i) {
      speak();
      return;
    }
    const asked = what, i = cell.i;
    const values = await asked.exact(i).catch(() => null);
    if (asked !== what || cell?.i !== i) return; // the current row has changed
    if (values) {
      exact = { i, values };
      point();
    }
    speak();
  });

  function move(next, aloud) {
    cell = next;
    untold = !!aloud;
    point();
    refine();
    tell(cell);
  }

  // under returns the cell, or the label, under the pointer.
  function under(event) {
    const box = field.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const i = at.r0 + Math.floor((y - at.top) / at.size), j = at.c0 + Math.floor((x - at.left) / at.size);
    const row = i >= at.r0 && i < at.r1, col = j >= at.c0 && j < at.c1;
    if (row && col) return { i, j };
    if (row && x < at.left) return { side: "q", at: i };
    if (col && y < at.top) return { side: "k", at: j };
    return null;
  }

  let drag = null;
  field.addEventListener("pointermove", (event) => {
    if (!at) return;
    if (drag) {
      const di = Math.round((drag.y - event.clientY) / at.size), dj = Math.round((drag.x - event.clientX) / at.size);
      if (di || dj) {
        drag.moved = true;
        pan(drag.part, di, dj);
      }
      return;
    }
    const hit = under(event);
    move(hit && "i" in hit ? hit : null);
    field.style.cursor = hit ? "pointer" : "";
  });
  field.addEventListener("pointerleave", () => { if (at) move(null); });
  field.addEventListener("pointerdown", (event) => {
    if (state.z && event.pointerType !== "touch") drag = { x: event.clientX, y: event.clientY, part: what.whole() };
  });
  window.addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); });
  field.addEventListener("click", (event) => {
    if (drag?.moved) return;
    const hit = under(event);
    if (!hit) return;
    if ("i" in hit) move(hit);
    if (hit.side) press(event, what, hit.side, hit.at);
    else change(choose("q", what.q, hit.i));
  });
  field.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const hit = under(event);
    zoom(event.deltaY < 0 ? 0.7 : 1.4, hit && "i" in hit ? hit : null);
  }, { passive: false });
  field.addEventListener("keydown", (event) => {
    const go = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (go && at.rows * at.cols > 0) {
      const from = cell ?? { i: at.r0, j: at.c0 };
      const next = { i: from.i + (cell ? go[0] : 0), j: from.j + (cell ? go[1] : 0) };
      if (next.i < at.r0 || next.i >= at.r1 || next.j < at.c0 || next.j >= at.c1) {
        if (state.z) pan(what.whole(), go[0], go[1]);
        next.i = Math.max(at.r0, Math.min(at.r1 - 1, next.i));
        next.j = Math.max(at.c0, Math.min(at.c1 - 1, next.j));
      }
      move(next, true);
    } else if (event.key === "Enter" && cell) change(choose("q", what.q, cell.i));
    else if (event.key === "+" || event.key === "=") zoom(0.5, cell);
    else if (event.key === "-") zoom(2, cell);
    else if (event.key === "0" && state.z) change({ z: "" });
    else return;
    event.preventDefault();
  });

  // zoom and pan change the visible part, counted in the visible tokens or words.
  function zoom(factor, about) {
    const w = what.whole();
    const axis = (from, to, n, block, start, hit) => {
      const size = Math.max(Math.min(4, n), Math.min(n, Math.round((to - from) * factor)));
      const centre = hit == null ? (from + to) / 2 : start + (hit + 0.5) * block;
      const share = hit == null ? 0.5 : (centre - from) / (to - from);
      const first = Math.max(0, Math.min(n - size, Math.round(centre - share * size)));
      return [first, first + size];
    };
    const [r0, r1] = axis(w.r0, w.r1, w.rows, what.m.blockQ, w.startQ, about?.i);
    const [c0, c1] = axis(w.c0, w.c1, w.cols, what.m.blockK, w.startK, about?.j);
    cell = null;
    change({ z: r1 - r0 === w.rows && c1 - c0 === w.cols ? "" : `${r0}-${r1},${c0}-${c1}` });
  }

  function pan(w, di, dj) {
    const r = Math.max(-w.r0, Math.min(w.rows - w.r1, di * what.m.blockQ)), c = Math.max(-w.c0, Math.min(w.cols - w.c1, dj * what.m.blockK));
    change({ z: `${w.r0 + r}-${w.r1 + r},${w.c0 + c}-${w.c1 + c}` });
  }

  // vectors draws the map as SVG; more than 40,000 cells become one image in it.
  function vectors() {
    const c = colours(), group = svg("g", {});
    const { m } = what;
    if (at.rows * at.cols <= 40000 && at.size >= 1) {
      const fill = (i, j) => (masked(m, i, j) ? "url(#masked)" : `rgb(${colourOf(m, what.scale, m.codes[i * m.cols + j]).join(",")})`);
      if (m.seen) group.append(hatching());
      for (let i = at.r0; i < at.r1; i++) {
        for (let j = at.c0, to; j < at.c1; j = to) { // neighbours of one colour become one rectangle
          const colour = fill(i, j);
          for (to = j + 1; to < at.c1 && fill(i, to) === colour; to++);
          group.append(svg("rect", { x: (at.left + (j - at.c0) * at.size).toFixed(2), y: (at.top + (i - at.r0) * at.size).toFixed(2), width: ((to - j) * at.size).toFixed(2),
            height: at.size.toFixed(2), fill: colour, "shape-rendering": "crispEdges" }));
        }
      }
    } else {
      const sharp = at.size >= 1 ? 1 : at.size; // one pixel per cell, or fewer if the map has fewer pixels
      const cut = show(el("canvas"), picture(m, what.scale, at, at.cols * sharp, at.rows * sharp));
      group.append(svg("image", { x: at.left, y: at.top, width: at.cols * at.size, height: at.rows * at.size, href: cut.toDataURL("image/png"),
        preserveAspectRatio: "none", "image-rendering": "pixelated" }));
    }
    if (at.size >= gapped) {
      const line = (x1, y1, x2, y2) => group.append(svg("line", { x1, y1, x2, y2, stroke: c.card, "stroke-width": 1 }));
      const right = at.left + at.cols * at.size, bottom = at.top + at.rows * at.size;
      for (let i = 1; i < at.rows; i++) line(at.left, at.top + i * at.size, right, at.top + i * at.size);
      for (let j = 1; j < at.cols; j++) line(at.left + j * at.size, at.top, at.left + j * at.size, bottom);
    }
    const pick = chosen(what.q, what.k);
    if (pick && within(pick.side, pick.at)) {
      const row = pick.side === "q", n = pick.at - (row ? at.r0 : at.c0);
      group.append(svg("rect", { x: at.left + (row ? 0 : n * at.size), y: at.top + (row ? n * at.size : 0), width: row ? at.cols * at.size : at.size,
        height: row ? at.size : at.rows * at.size, fill: "none", stroke: c.accent, "stroke-width": 2 }));
    }
    group.append(svg("rect", { x: at.left - 0.5, y: at.top - 0.5, width: at.cols * at.size + 1, height: at.rows * at.size + 1, fill: "none", stroke: c.edge }));
    const context = base.getContext("2d");
    for (const l of labels()) {
      context.font = fontOf(l);
      const room = roomOf(l), squeezed = context.measureText(l.text).width > room;
      group.append(svg("text", { ...(squeezed ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {}), transform: `translate(${l.x.toFixed(2)} ${l.y.toFixed(2)})` + (l.down ? " rotate(-90)" : ""),
        "text-anchor": l.middle ? "middle" : l.down ? "start" : "end", "dominant-baseline": "central", "font-size": l.title ? 11 : at.letters, "font-weight": l.on ? "bold" : "normal", ...(l.struck ? { "text-decoration": "line-through" } : {}),
        fill: l.on ? c.accent : l.mark || l.title ? c.quiet : c.ink, text: l.text }));
    }
    return { node: group, width: at.width, height: at.height };
  }

  return {
    node, tools,
    show(next) {
      const before = what;
      what = next;
      if (before?.m !== next.m) exact = null;
      // Keep the current cell from head to head, unless the tokens differ.
      if (before?.q !== next.q || before.k !== next.k || before.m.blockQ !== next.m.blockQ || before.m.blockK !== next.m.blockK) cell = null;
      const n = Math.max(what.m.rows * what.m.blockQ, what.m.cols * what.m.blockK);
      tools.hidden = n < 24 && !state.z;
      zoomOut.disabled = fit.disabled = !state.z;
      field.setAttribute("aria-label", t`Heat map, ${what.m.rows} queries attend to ${what.m.cols} keys. Arrow keys move, Enter selects a query.`);
      draw();
    },
    // note says how many cells share a pixel.
    note() {
      const under = 1 / (at.size * (base.width / at.width));
      return under > 1 ? t`each pixel shows the largest weight under it` + (under >= 1.5 ? t`, of about ${under.toFixed(1)} × ${under.toFixed(1)}` : "") : "";
    },
    // mirror marks the cell that the pointer is on in another panel.
    mirror(next) {
      cell = next && within("q", next.i) && within("k", next.j) ? next : null;
      point();
      refine();
    },
    // cancel removes the mark of the current cell and reports whether there was one.
    cancel() {
      if (!cell) return false;
      move(null);
      return true;
    },
    svg: vectors,
  };
}
