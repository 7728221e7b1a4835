// A heat map of weights: a row for each query, a column for each key. It is drawn on a canvas; arrow keys move a cell
// whose number is spoken.

import { canvasFor, fillToken } from "./dom.js";
import { el, number, onTheme, say, t } from "./page.js";
import { brokenRGB, css, legend, maskRGB, rgb, signedRGB } from "./colour.js";

const family = "system-ui, sans-serif", letters = 12, least = 9; // sizes of labels, in pixels

/** Draws cells of any size; hidden ones are hatched. */
export function cells(context, what, x0, y0, w, h, place) {
  const { weights, columns, rows, hidden } = what, [ground, stripe] = maskRGB();
  for (let i = 0; i < rows.length; i++)
    for (let j = 0; j < columns.length; j++) {
      const at = i * columns.length + j, value = weights[at];
      const x = x0 + j * w, y = y0 + i * h;
      if (hidden?.[at]) {
        context.fillStyle = css(ground);
        context.fillRect(x, y, w, h);
        context.save();
        context.beginPath();
        context.rect(x, y, w, h);
        context.clip();
        context.strokeStyle = css(stripe);
        context.beginPath();
        for (let d = -h + (5 - ((x + y) % 5)); d < w; d += 5) {
          context.moveTo(x + d, y + h);
          context.lineTo(x + d + h, y);
        }
        context.stroke();
        context.restore();
        continue;
      }
      context.fillStyle = css(Number.isFinite(value) ? (what.scale === "signed" ? signedRGB(place(value)) : rgb(place(value))) : brokenRGB());
      context.fillRect(x, y, w + 0.5, h + 0.5);
    }
}

/** Returns the ends of the scale, and a function from a value to its place on it. */
export function scaleOf({ weights, hidden, scale = "own", low, high }) {
  const seen = weights.filter((w, i) => Number.isFinite(w) && !hidden?.[i]);
  if (scale === "signed") {
    const most = high ?? seen.reduce((m, w) => Math.max(m, Math.abs(w)), 1e-9);
    return { lo: -most, hi: most, place: (w) => w / most };
  }
  const lo = low ?? 0, most = seen.reduce((m, w) => Math.max(m, w), lo), hi = high ?? (scale === "one" || most === lo ? lo + 1 : most);
  return { lo, hi, place: (w) => (w - lo) / (hi - lo) };
}

/**
 * Returns a heat map. With small it is a thumbnail: no labels, no cursor.
 * @param {{title?: string, rowTitle?: string, columnTitle?: string, small?: boolean, largest?: number, digits?: number,
 *   level?: string, onPick?: (i: number, j: number) => void}} options largest is that of a cell in pixels
 */
export function heatmap({ title = "", rowTitle = t`query`, columnTitle = t`key`, small = false, largest = 40, digits = 3, level = "h3", onPick } = {}) {
  const base = el("canvas", { "aria-hidden": "true" });
  let what = null, at = null, cell = null;
  if (small) {
    const node = el("div", { class: "thumb", role: "img" }, base);
    const draw = () => {
      if (!what) return;
      const size = Math.max(1, Math.round(96 / Math.max(what.rows.length, what.columns.length)));
      base.width = what.columns.length * size;
      base.height = what.rows.length * size;
      cells(base.getContext("2d"), what, 0, 0, size, size, scaleOf(what).place);
    };
    onTheme(draw);
    return { node, show(next) {
      what = next;
      node.setAttribute("aria-label", next.label ?? title);
      draw();
    } };
  }

  const over = el("canvas", { "aria-hidden": "true" }), tip = el("div", { class: "tip", hidden: true });
  const field = el("div", { class: "field", tabindex: "0", role: "application", "aria-roledescription": t`heat map` }, base, over, tip);
  const key = el("div"), heading = el(level, { text: title, hidden: !title });
  const node = el("div", { class: "heat" }, heading, field, key);

  function plan() {
    const { rows, columns } = what, context = base.getContext("2d");
    const wide = (list, size = letters) => {
      context.font = `${size}px ${family}`;
      return list.reduce((m, t) => Math.max(m, context.measureText(t).width), 0);
    };
    const width = Math.max(160, node.clientWidth || 320);
    const left = Math.ceil(18 + Math.min(110, width * 0.3, wide(rows)) + 8);
    const size = Math.max(1, Math.min(largest, (width - left - 2) / columns.length)), high = Math.max(1, Math.min(size, 520 / rows.length));
    // In narrow cells, labels are smaller if that spares leaving some out.
    const font = (n) => (n < 1.2 * least ? letters : Math.min(letters, n / 1.2)), step = (n) => Math.max(1, Math.ceil((1.2 * font(n)) / n - 1e-9));
    const stepK = step(size), wideK = wide(columns, font(size)), upright = wideK + 2 <= size * stepK, top = Math.ceil(18 + (upright ? letters + 8 : Math.min(100, wideK) + 8));
    // The name of an axis may be longer than the axis.
    const across = Math.max(columns.length * size, wide([columnTitle], 11)), down = Math.max(rows.length * high, wide([rowTitle], 11));
    return { left, top, size, high, upright, across, down, fontQ: font(high), fontK: font(size), stepQ: step(high), stepK,
      width: Math.ceil(left + across + 2), height: Math.ceil(top + down + 2) };
  }

  function draw() {
    if (!what) return;
    field.hidden = what.rows.length === 0 || what.columns.length === 0;
    if (field.hidden) return key.replaceChildren(el("p", { class: "small quiet", text: t`There are no weights.` }));
    at = plan();
    const context = canvasFor(base, at.width, at.height), style = getComputedStyle(document.documentElement);
    canvasFor(over, at.width, at.height);
    field.style.width = at.width + "px";
    field.style.height = at.height + "px";
    const { rows, columns } = what, scale = scaleOf(what), ink = getComputedStyle(node).color;
    const quiet = getComputedStyle(heading.nextSibling).getPropertyValue("color");
    cells(context, what, at.left, at.top, at.size, at.high, scale.place);
    if (Math.min(at.size, at.high) >= 14) {
      context.fillStyle = getComputedStyle(node.closest(".live") ?? document.body).backgroundColor;
      for (let i = 1; i < rows.length; i++) context.fillRect(at.left, at.top + i * at.high - 0.5, columns.length * at.size, 1);
      for (let j = 1; j < columns.length; j++) context.fillRect(at.left + j * at.size - 0.5, at.top, 1, rows.length * at.high);
    }
    context.strokeStyle = "#858d9b";
    context.lineWidth = 1;
    context.strokeRect(Math.round(at.left) - 0.5, Math.round(at.top) - 0.5, columns.length * at.size + 1, rows.length * at.high + 1);
    const write = (text, x, y, { down = false, align = "center", colour = ink, most = 200, size = letters } = {}) => {
      context.save();
      context.translate(x, y);
      if (down && text.length > 1) context.rotate(-Math.PI / 2); // one character, such as 层, is upright
      context.textAlign = align;
      context.textBaseline = "middle";
      context.font = `${size}px ${family}`;
      context.fillStyle = colour;
      fillToken(context, text, most);
      context.restore();
    };
    write(columnTitle, at.left + at.across / 2, 8, { colour: quiet, size: 11 });
    write(rowTitle, 7, at.top + at.down / 2, { down: true, colour: quiet, size: 11 });
    for (let i = 0; i < rows.length; i += at.stepQ) write(rows[i], at.left - 6, at.top + (i + 0.5) * at.high, { align: "right", most: at.left - 26, size: at.fontQ });
    for (let j = 0; j < columns.length; j += at.stepK)
      write(columns[j], at.left + (j + 0.5) * at.size, at.top - (at.upright ? 11 : 6), { down: !at.upright, align: at.upright ? "center" : "left", most: at.upright ? at.size * at.stepK : at.top - 24, size: at.fontK });
    key.replaceChildren(legend(scale.lo, scale.hi, { signed: what.scale === "signed", masked: what.hidden?.some(Boolean), digits: scale.hi - scale.lo < 0.05 ? 3 : 2 }));
    field.setAttribute("aria-label", (title && title + ": ") + t`${rows.length} ${rowTitle} rows, ${columns.length} ${columnTitle} columns. Arrow keys read single weights.`);
    point();
  }

  const told = () => {
    const k = cell.i * what.columns.length + cell.j;
    const called = (token) => (token === "▁" ? t`space` : token);
    return `${rowTitle} ${called(what.rows[cell.i])}, ${columnTitle} ${called(what.columns[cell.j])}: ${what.hidden?.[k] ? t`masked` : number(what.weights[k], digits)}`;
  };

  function point() {
    const context = over.getContext("2d");
    context.clearRect(0, 0, at.width, at.height);
    if (cell && (cell.i >= what.rows.length || cell.j >= what.columns.length)) cell = null;
    tip.hidden = !cell;
    if (!cell) return;
    context.strokeStyle = getComputedStyle(node).color;
    context.strokeRect(at.left + cell.j * at.size, at.top + cell.i * at.high, at.size, at.high);
    tip.textContent = told();
    const x = at.left + (cell.j + 1) * at.size + 8, y = at.top + (cell.i + 1) * at.high + 6;
    tip.style.left = Math.max(0, Math.min(x, at.width - tip.offsetWidth)) + "px";
    tip.style.top = (y + tip.offsetHeight > at.height ? Math.max(0, y - tip.offsetHeight - at.high - 12) : y) + "px";
  }

  function under(event) {
    const box = field.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - at.left) / at.size), i = Math.floor((event.clientY - box.top - at.top) / at.high);
    return i >= 0 && j >= 0 && i < what.rows.length && j < what.columns.length ? { i, j } : null;
  }

  field.addEventListener("pointermove", (event) => {
    if (!what) return;
    cell = under(event);
    point();
  });
  field.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "touch") return; // what was tapped stays until another tap
    cell = null;
    if (what) point();
  });
  field.addEventListener("click", (event) => {
    cell = what && under(event);
    if (what) point();
    if (cell) onPick?.(cell.i, cell.j);
  });
  field.addEventListener("keydown", (event) => {
    const go = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!what) return;
    if (event.key === "Enter" && cell) onPick?.(cell.i, cell.j);
    if (event.key === "Escape") cell = null;
    else if (!go) return;
    else {
      const from = cell ?? { i: go[0] ? -go[0] : 0, j: go[1] ? -go[1] : 0 };
      const clamp = (n, length) => Math.max(0, Math.min(length - 1, n));
      cell = { i: clamp(cell ? from.i + go[0] : 0, what.rows.length), j: clamp(cell ? from.j + go[1] : 0, what.columns.length) };
      say(told());
      event.preventDefault();
    }
    point();
  });
  field.addEventListener("blur", () => {
    cell = null;
    if (what) point();
  });
  let known = 0;
  new ResizeObserver(() => {
    if (node.clientWidth === known) return;
    known = node.clientWidth;
    draw();
  }).observe(node);
  onTheme(draw);

  return { node,
    /** @param {{weights: number[], rows: string[], columns: string[], hidden?: boolean[], scale?: string, low?: number, high?: number}} next */
    show(next) {
      what = next;
      draw();
    },
    rename(text) {
      title = text;
      heading.textContent = text;
      heading.hidden = !text;
    },
  };
}
