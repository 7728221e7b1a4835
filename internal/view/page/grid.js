// All heads as thumbnails, by kind and layer. A layer's are fetched when they scroll into sight.

import { byId, el, later } from "./dom.js";
import { change, lens, place, state } from "./state.js";
import { theme } from "./colour.js";
import { check, thumbs } from "./data.js";
import { picture, whole } from "./pool.js";
import { axesOf, numberOf, part, visibleKeys } from "./tokens.js";

const titles = { encoder: "Encoder", decoder: "Decoder", cross: "Cross attention" };

// hint says who attends to whom: a model without cross attention has one text only.
function hint(kind) {
  const two = record.layers.some((l) => l.kind === "cross");
  if (kind === "cross") return "the target attends to the source";
  const who = !two ? "the text" : kind === "encoder" ? "the source" : "the target";
  return `${who} attends to itself` + (kind === "decoder" ? ", up to each token" : "");
}

const root = byId("grid");
let record = null;
let drawn = ""; // what the thumbnails show
let rows = []; // of layers: { layer, cells: [{ button, canvas }], shown }
let sight = null;

// showGrid draws a record's heads.
export function showGrid(next) {
  if (record !== next) {
    record = next;
    build();
    drawn = "";
  }
  const wanted = [lens(), state.c, theme()].join();
  if (drawn !== wanted) {
    drawn = wanted;
    sight?.disconnect();
    sight = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) draw(rows.find((r) => r.node === entry.target), wanted);
    }, { rootMargin: "200px" });
    for (const row of rows) {
      if (row.shown) draw(row, wanted); // what has been seen once need not come into sight again
      sight.observe(row.node);
    }
  }
  mark();
}

function build() {
  root.replaceChildren();
  rows = [];
  if (record.layers.length === 0) root.append(el("p", { class: "quiet", text: "There are no layers in this record." }));
  for (const kind of Object.keys(titles)) {
    const layers = record.layers.map((l, i) => ({ ...l, at: i })).filter((l) => l.kind === kind);
    if (layers.length === 0) continue;
    const most = Math.max(...layers.map((l) => l.heads));
    const box = el("div", { class: "heads", role: "grid", "aria-label": `${titles[kind]}: layers down, heads across` });
    box.style.setProperty("--heads", most);
    if (most > 12) box.style.setProperty("--gap", "2px");
    root.append(el("h2", {}, titles[kind] + " ", el("small", { text: hint(kind) })), box);
    box.append(el("div", { class: "row top", "aria-hidden": "true" }, el("span", { class: "layer", text: "" }),
      ...Array.from({ length: most }, (_, h) => el("span", { text: h }))));
    for (const l of layers) {
      const q = record.axes[l.q].tokens.length, k = record.axes[l.k].tokens.length;
      const cells = Array.from({ length: l.heads }, (_, h) => {
        const canvas = el("canvas", { width: 1, height: 1 });
        const button = el("button", { type: "button", role: "gridcell", tabindex: "-1", class: "thumb",
          "aria-label": `${kind} layer ${l.index} head ${numberOf(l, h)}`, title: `${l.name} head ${numberOf(l, h)}`, onclick: () => pick(l.at, h) }, canvas);
        button.style.aspectRatio = String(Math.max(0.75, Math.min(2, k / Math.max(1, q))));
        return { button, canvas };
      });
      const node = el("div", { class: "row", role: "row" }, el("span", { class: "layer", role: "rowheader", title: l.name, text: l.index }),
        ...cells.map((c) => c.button));
      box.append(node);
      rows.push({ node, layer: l.at, cells, shown: "" });
    }
  }
}

// inTurn runs two at a time: browsers open few connections to a server, and the head that somebody opens must not wait
// for the thumbnails of a large model.
let running = 0;
const waiting = [];
async function inTurn(run) {
  if (running >= 2) await new Promise((go) => waiting.push(go));
  running++;
  try {
    return await run();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

async function draw(row, wanted) {
  if (!row || row.shown === wanted) return;
  row.shown = wanted;
  try {
    const asked = record;
    const list = await inTurn(() => (row.shown === wanted && asked === record ? thumbs(record, row.layer) : null));
    if (!list) return;
    if (row.shown !== wanted) return; // something else is wanted by now
    const layer = record.layers[row.layer], { q, k } = axesOf(record, layer);
    for (const m of list) m.seen = visibleKeys(layer, part(q, 0, q.spans.length, m.blockQ), part(k, 0, k.spans.length, m.blockK));
    row.list = list;
    paint(row);
    if (record.unread) warn(record, row.layer);
  } catch {
    row.shown = ""; // the panel of the head tells what is wrong
    for (const { button } of row.cells) button.classList.add("empty");
  }
}

const checked = new Set(); // layers of records in files, whose weights are judged when they have been drawn

async function warn(record, layer) {
  if (checked.has(record.id + "." + layer)) return;
  checked.add(record.id + "." + layer);
  const lines = await check(record, layer).catch(() => []);
  if (lines.length === 0) return;
  const more = record.warnings.length >= 5;
  if (!more) record.warnings.push(...lines);
  if (!more) root.dispatchEvent(new Event("warned"));
}

// paint draws the thumbnails of a layer with a pixel for each of the screen's.
function paint(row) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  row.list.forEach((m, h) => {
    const { canvas, button } = row.cells[h];
    button.classList.toggle("empty", m.rows * m.cols === 0);
    const small = picture(m, m, whole(m), Math.max(2, canvas.clientWidth * ratio), Math.max(2, canvas.clientHeight * ratio));
    canvas.width = small.width;
    canvas.height = small.height;
    canvas.getContext("2d").drawImage(small, 0, 0);
  });
}

new ResizeObserver(later(60, () => { for (const row of rows) if (row.list) paint(row); })).observe(root);

// twoHeads reports whether each side has a head of its own.
const twoHeads = () => state.cmp === "head" || state.cmp === "model";

function pick(layer, head) {
  change({ [twoHeads() ? state.side : "a"]: `${layer}.${head}`, z: "" });
}

// mark shows which heads are open.
function mark() {
  const a = place("a"), b = place("b");
  const active = twoHeads() && state.side === "b" ? b : a;
  let any = false;
  for (const row of rows) {
    row.cells.forEach(({ button }, h) => {
      const is = (p) => p.layer === row.layer && p.head === h;
      const opened = state.cmp === "model" && state.side === "b" ? false : is(a);
      const other = (state.cmp === "head" || (state.cmp === "model" && state.side === "b")) && is(b);
      button.classList.toggle("open", opened);
      button.classList.toggle("other", other);
      button.setAttribute("aria-selected", String(opened || other));
      button.tabIndex = is(active) ? 0 : -1;
      any ||= is(active);
    });
  }
  reveal(rows.find((r) => r.layer === active.layer)?.cells[active.head]?.button);
  if (!any && rows[0]?.cells[0]) rows[0].cells[0].button.tabIndex = 0;
}

// reveal scrolls the overview, and never the page, to the open head.
function reveal(button) {
  if (!button) return;
  const box = root.parentElement, out = box.getBoundingClientRect(), at = button.getBoundingClientRect();
  if (at.top < out.top) box.scrollTop -= out.top - at.top + 40;
  else if (at.bottom > out.bottom) box.scrollTop += at.bottom - out.bottom + 40;
}

// step goes from the open head to a neighbour; where a layer ends, to the nearest head of the next.
export function step(down, across, focus) {
  const side = twoHeads() ? state.side : "a";
  const p = place(side);
  const at = rows.findIndex((r) => r.layer === p.layer);
  if (at < 0) return;
  const row = rows[Math.max(0, Math.min(rows.length - 1, at + down))];
  const head = Math.max(0, Math.min(row.cells.length - 1, p.head + across));
  pick(row.layer, head);
  if (focus) row.cells[head].button.focus();
  row.cells[head].button.scrollIntoView({ block: "nearest", inline: "nearest" });
}

root.addEventListener("keydown", (event) => {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6] }[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  step(...move, true);
});
