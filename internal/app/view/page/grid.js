// The overview of all heads, by kind and layer: as thumbnails, or coloured, and if wanted sorted, by a measure. The
// data of a layer is fetched from a server when the layer scrolls into view.

import { byId, el, later } from "./dom.js";
import { change, lens, headOn, state } from "./state.js";
import { theme } from "./colour.js";
import { check, frozen, thumbs } from "./data.js";
import { computed, gridKey, magnitude, measured, ranked, shade, values } from "./measured.js";
import { picture, show, whole } from "./pool.js";
import { preparePreview } from "./preview.js";
import { axesOf, headName, headSign, headsOf, keyHeadOf, layerName, part, visibleKeys } from "./tokens.js";
import { t, tr } from "./words.js";

const titles = { encoder: t`Encoder`, decoder: t`Decoder`, cross: t`Cross-attention`, mamba: t`Mamba, beside attention`, alignment: t`Alignment` };

// hint says which text attends to which. A model without cross-attention has only one text.
function hint(kind) {
  const two = record.layers.some((l) => l.kind === "cross");
  if (kind === "alignment") return t`each token of the query is compared with the nearest of the document`;
  if (kind === "cross") return t`the target attends to the source`;
  const who = !two ? t`the text` : kind === "encoder" ? t`the source` : t`the target`;
  return kind === "decoder" || kind === "mamba" ? t`${who} attends to itself, up to each token` : t`${who} attends to itself`;
}

const root = byId("grid");
let record = null;
let drawn = ""; // the parts of the state that the cells show
let rows = []; // one per layer: { layer, cells: [{ button, canvas, layer, head }], shown }
let boxes = []; // one per kind of layer: { node, most }, most cells in a row
let sight = null;

// showGrid draws the heads of a record.
export function showGrid(next) {
  if (record?.layers !== next.layers) {
    record = next;
    build();
    drawn = "";
  }
  record = next; // frames of a recording share their layers
  size();
  const wanted = [record.id, lens(), state.c, theme(), state.g, state.go, state.g === "divergence" ? Object.values(headOn("a")) : ""].join();
  if (drawn !== wanted) {
    drawn = wanted;
    arrange();
    sight?.disconnect();
    sight = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) draw(rows.find((r) => r.node === entry.target), wanted);
    }, { rootMargin: "200px" });
    for (const row of rows) {
      row.values = null;
      // Rows that were drawn before, even out of view. An exported page has all data: it draws every row at once, since
      // in a frame it may be printed or photographed without ever being scrolled into view.
      if (row.shown || ranked() || frozen) draw(row, wanted);
      else sight.observe(row.node);
    }
  }
  mark();
}

function build() {
  root.replaceChildren();
  rows = [];
  boxes = [];
  if (record.layers.length === 0) root.append(el("p", { class: "quiet", text: t`This record has no layers.` }));
  for (const kind of Object.keys(titles)) {
    const layers = record.layers.map((l, i) => ({ ...l, at: i })).filter((l) => l.kind === kind);
    if (layers.length === 0) continue;
    const heads = Math.max(...layers.map((l) => l.heads)), sums = ["mean", "rollout"].filter((s) => layers.some((l) => l.summaries?.includes(s)));
    const most = heads + sums.length;
    const box = el("div", { class: "heads", role: "grid", "aria-label": t`${titles[kind]}: layers down, heads across` });
    box.style.setProperty("--heads", most);
    if (most > 12) box.style.setProperty("--gap", "2px");
    root.append(el("h2", {}, titles[kind] + " ", el("small", { text: hint(kind) })), box);
    box.append(el("div", { class: "row top", "aria-hidden": "true" }, el("span", { class: "layer", text: "" }),
      ...Array.from({ length: heads }, (_, h) => el("span", { text: h })), ...sums.map((s) => el("span", { class: "turned", text: tr(s) }))));
    const groups = sharing(layers, heads);
    if (groups.length) box.append(el("div", { class: "row top groups", "aria-hidden": "true" }, el("span", { class: "layer", text: "" }), ...groups));
    boxes.push({ node: box, most });
    for (const l of layers) {
      const q = record.axes[l.q].tokens.length, k = record.axes[l.k].tokens.length;
      const cells = headsOf(l).map((h) => {
        const canvas = el("canvas", { width: 1, height: 1 }), value = el("span", { class: "value" });
        const button = el("button", { type: "button", role: "gridcell", tabindex: "-1", class: "thumb", "data-name": `${layerName(l)}, ${headName(l, h)}`,
          "aria-label": `${layerName(l)}, ${headName(l, h)}`, title: `${l.name}, ${headName(l, h)}${shared(l, h)}`, onclick: () => pick(l.at, h) }, canvas, value);
        if (typeof h === "string") { // the mean of all layers is below the mean of the last layer
          button.classList.add("summary");
          button.style.gridColumn = heads + 2 + Math.max(0, sums.indexOf(h));
          if (h === "all") button.style.gridRow = 2;
        }
        button.style.aspectRatio = String(Math.max(0.75, Math.min(2, k / Math.max(1, q))));
        return { button, canvas, value, layer: l.at, head: h, sign: `${l.index}.${headSign(h)}` };
      });
      const node = el("div", { class: "row", role: "row" }, el("span", { class: "layer", role: "rowheader", title: l.name, text: l.index }),
        ...cells.map((c) => c.button), ...(l.summaries?.includes("all") ? [el("span", { class: "layer all", "aria-hidden": "true", text: tr("all") })] : []));
      box.append(node);
      rows.push({ node, box, layer: l.at, cells, shown: "" });
    }
  }
}

// shared returns the end of a tooltip: the key/value head that a head shares with others, if any.
const shared = (l, h) => (keyHeadOf(l, h) === undefined ? "" : `, key/value head ${keyHeadOf(l, h)}`);

// sharing returns brackets over the heads that share a key/value head, or none if the layers differ.
function sharing(layers, heads) {
  const key = layers[0].key_heads;
  if (!key || layers.some((l) => String(l.key_heads) !== String(key))) return [];
  const brackets = [];
  for (let from = 0, to; from < heads; from = to) {
    for (to = from + 1; to < heads && key[to] === key[from]; to++);
    const bracket = el("span", { class: "shared", title: `Heads that share key/value head ${key[from]}`, text: to - from > 1 ? `kv ${key[from]}` : key[from] });
    bracket.style.gridColumn = `${from + 2} / ${to + 2}`;
    brackets.push(bracket);
  }
  return brackets;
}

// size sets the width of the thumbnails. By default all heads of a layer fit.
function size() {
  const wide = window.innerWidth > 860 ? Math.min(window.innerWidth, 1500) * 0.31 : window.innerWidth - 20;
  for (const { node, most } of boxes) {
    const fit = Math.max(13, Math.min(112, (wide - 58) / most - 4));
    node.style.setProperty("--thumb", state.gz ? Math.round(fit * 1.7 ** Number(state.gz)) + "px" : "13px");
  }
  document.body.dataset.gz = state.gz;
  byId("smaller").disabled = !state.gz;
  byId("larger").disabled = state.gz === "3";
}

// arrange puts the cells of each kind into their layers, or all of them into one list sorted by the measure.
function arrange() {
  root.classList.toggle("measured", measured() >= 0 || computed());
  root.classList.toggle("ranked", ranked());
  for (const { node } of boxes) {
    const mine = rows.filter((r) => r.box === node);
    if (!ranked() && node.querySelector(".order")) for (const row of mine) row.node.append(...row.cells.map((c) => c.button));
    node.querySelector(".order")?.remove();
    if (!ranked()) continue;
    const list = mine.flatMap((r) => r.cells.filter((c) => Number.isFinite(c.number)));
    list.sort((a, b) => (state.go === "down" ? b.number - a.number : a.number - b.number));
    node.append(el("div", { class: "order", role: "row" }, ...list.map((c) => c.button)));
  }
}

// inTurn limits requests to two at a time: browsers open few connections to a server, and opening a head must not wait
// for the thumbnails of a large model. soon puts a request at the front of the queue.
let running = 0;
const waiting = [];
function next() {
  if (waiting.length && running < 2) waiting.shift()();
}
async function inTurn(run, soon = false) {
  await new Promise((go) => {
    waiting[soon ? "unshift" : "push"](() => {
      running++;
      go();
    });
    next();
  });
  try {
    return await run();
  } finally {
    running--;
    next();
  }
}

async function draw(row, wanted) {
  if (!row || row.shown === wanted) return;
  row.shown = wanted;
  try {
    const asked = record, still = () => row.shown === wanted && asked === record;
    if (state.g) {
      const list = await inTurn(() => (still() ? values(record, row.layer) : null));
      if (!list || !still()) return;
      row.values = list;
      tint();
      return;
    }
    const list = await inTurn(() => (still() ? thumbs(record, row.layer) : null));
    if (!list || !still()) return; // the state has changed
    row.list = list;
    row.more = [];
    mask(row.layer, row.list);
    paint(row);
    if (record.unread) warn(record, row.layer);
    if (!record.layers[row.layer].summaries) return;
    // At once, while the server still has the means of this layer in its cache.
    const more = await inTurn(() => (still() ? thumbs(record, row.layer, true) : null), true);
    if (!more || !still()) return;
    mask(row.layer, more);
    row.more = more;
    paint(row);
  } catch {
    row.shown = ""; // the panel of the head shows the error
    row.list = row.values = null; // nothing that was drawn before remains
    for (const { button, canvas, value } of row.cells) {
      button.classList.add("empty");
      button.style.background = value.textContent = "";
      canvas.width = canvas.height = 1;
    }
  }
}

// mask sets in thumbnails of a layer which cells are masked.
function mask(at, list) {
  const layer = record.layers[at], { q, k } = axesOf(record, layer);
  if (!layer.visible) return;
  for (const m of list) m.seen ??= visibleKeys(layer, part(q, 0, q.spans.length, m.blockQ), part(k, 0, k.spans.length, m.blockK));
}

// tint colours the heads whose measure is known, on one scale for all of them.
const tint = later(30, tintNow);

function tintNow() {
  const cells = rows.flatMap((row) => row.cells.map((c, h) => ({ ...c, cell: c, x: row.values?.[h] ?? NaN })));
  for (const { cell, x } of cells) cell.number = magnitude(x);
  byId("grid-key").replaceChildren(...shade(cells, rows.filter((r) => !r.values).length));
  if (!ranked()) return;
  const focused = document.activeElement;
  arrange();
  if (root.contains(focused)) focused.focus();
}

const checked = new Set(); // layers whose weights were checked; those of files are checked after drawing

async function warn(record, layer) {
  if (checked.has(record.id + "." + layer)) return;
  checked.add(record.id + "." + layer);
  const lines = await check(record, layer).catch(() => []);
  if (lines.length === 0) return;
  const more = record.warnings.length >= 5;
  if (!more) record.warnings.push(...lines);
  if (!more) root.dispatchEvent(new Event("warned"));
}

// paint draws the thumbnails of a layer at the resolution of the screen.
function paint(row) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3), list = [...row.list, ...row.more];
  // Read all sizes before changing anything: the browser then computes the layout once, not once per head.
  const boxes = list.map((_, h) => row.cells[h].canvas.getBoundingClientRect());
  list.forEach((m, h) => {
    const { canvas, button, value } = row.cells[h], box = boxes[h];
    button.classList.toggle("empty", m.rows * m.cols === 0);
    button.style.background = "";
    button.setAttribute("aria-label", button.dataset.name);
    value.textContent = "";
    // No more pixels than the screen has, because it would skip some.
    show(canvas, picture(m, m, whole(m), Math.max(2, Math.floor(box.width * ratio)), Math.max(2, Math.floor(box.height * ratio))));
  });
  if (!byId("grid-key").querySelector(".thumbs")) byId("grid-key").replaceChildren(...gridKey());
}

// repaint draws the loaded heads again, in the current colours and size.
export function repaint() {
  if (state.g) tintNow();
  else for (const row of rows) if (row.list) paint(row);
}

new ResizeObserver(later(60, () => { if (!state.g) repaint(); })).observe(root);

// twoHeads reports whether each side can have a different head.
const twoHeads = () => state.cmp === "head" || state.cmp === "model";

function pick(layer, head) {
  change({ [twoHeads() ? state.side : "a"]: `${layer}.${head}`, z: "" });
}

// mark shows which heads are open.
function mark() {
  const a = headOn("a"), b = headOn("b");
  const active = twoHeads() && state.side === "b" ? b : a;
  let any = null;
  for (const row of rows) {
    for (const { button, head } of row.cells) {
      const is = (p) => p.layer === row.layer && p.head === head;
      const opened = state.cmp === "model" && state.side === "b" ? false : is(a);
      const other = (state.cmp === "head" || (state.cmp === "model" && state.side === "b")) && is(b);
      button.classList.toggle("open", opened);
      button.classList.toggle("other", other);
      button.setAttribute("aria-selected", String(opened || other));
      button.tabIndex = is(active) ? 0 : -1;
      if (is(active)) any = button;
    }
  }
  reveal(any);
  if (!any && rows[0]?.cells[0]) rows[0].cells[0].button.tabIndex = 0;
}

// reveal scrolls the overview, and never the page, to the open head.
function reveal(button) {
  if (!button) return;
  const box = root.parentElement, out = box.getBoundingClientRect(), at = button.getBoundingClientRect();
  if (at.top < out.top) box.scrollTop -= out.top - at.top + 40;
  else if (at.bottom > out.bottom) box.scrollTop += at.bottom - out.bottom + 40;
  if (at.left < out.left) box.scrollLeft -= out.left - at.left + 40;
  else if (at.right > out.right) box.scrollLeft += at.right - out.right + 40;
}

// lines returns the cells in the lines in which the screen shows them.
function lines() {
  if (!ranked()) return rows.map((r) => r.cells);
  const list = [], known = new Map(rows.flatMap((r) => r.cells.map((c) => [c.button, c])));
  for (const button of root.querySelectorAll(".order .thumb")) {
    if (list.length === 0 || list.at(-1)[0].button.offsetTop !== button.offsetTop) list.push([]);
    list.at(-1).push(known.get(button));
  }
  return list;
}

// step opens a neighbour of the open head; past the end of a layer, the nearest head of the next layer.
export function step(down, across, focus) {
  const p = headOn(twoHeads() ? state.side : "a"), all = lines(), is = (c) => c.layer === p.layer && c.head === p.head;
  let at = all.findIndex((line) => line.some(is)), from = 0;
  if (at >= 0) from = all[at].findIndex(is);
  else at = ranked() ? 0 : all.findIndex((line) => line[0].layer === p.layer);
  if (at < 0 || all.length === 0) return;
  let line = all[Math.max(0, Math.min(all.length - 1, at + down))], to = from + across;
  if (down && !ranked()) { // from a head to a head, from a mean to a mean
    const same = line.findIndex((c) => c.head === p.head);
    to = same >= 0 ? same : line.findLastIndex((c) => typeof c.head === "number");
  }
  if (ranked() && Math.abs(across) === 1) { // the order continues in the next line
    line = all.flat();
    to = all.slice(0, at).flat().length + from + across;
  }
  const cell = line[Math.max(0, Math.min(line.length - 1, to))];
  pick(cell.layer, cell.head);
  if (focus) cell.button.focus();
  cell.button.scrollIntoView({ block: "nearest", inline: "nearest" });
}

root.addEventListener("keydown", (event) => {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6] }[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  step(...move, true);
});

// prepareGrid connects the controls of the overview and its preview.
export function prepareGrid() {
  byId("smaller").addEventListener("click", () => change({ gz: { 1: "", 2: "1", 3: "2" }[state.gz] ?? "" }));
  byId("larger").addEventListener("click", () => change({ gz: { "": "1", 1: "2" }[state.gz] ?? "3" }));
  return preparePreview(root, async (button) => {
    const row = rows.find((r) => r.cells.some((c) => c.button === button));
    if (!row) return null;
    const at = row.cells.findIndex((c) => c.button === button), asked = record;
    const heads = record.layers[row.layer].heads, list = await thumbs(record, row.layer, at >= heads);
    if (asked !== record) return null;
    mask(row.layer, list);
    return { record, layer: row.layer, head: row.cells[at].head, m: list[at >= heads ? at - heads : at], name: button.dataset.name, note: row.cells[at].button.dataset.value ?? "" };
  });
}
