// Two columns of tokens, the strongest weights as lines between them.

import { el, number, svg } from "./dom.js";
import { change, state } from "./state.js";
import { brokenCSS, share } from "./colour.js";
import { weight } from "./data.js";
import { choose, chosen, shorten } from "./tokens.js";

// strongest returns the cells with the largest weights, of one row or column if a token is picked. Codes are bytes, so
// counting them finds the bound without sorting millions.
export function strongest(m, most, pick) {
  const places = function* () {
    if (pick?.side === "q") for (let j = 0; j < m.cols; j++) yield pick.at * m.cols + j;
    else if (pick?.side === "k") for (let i = 0; i < m.rows; i++) yield i * m.cols + pick.at;
    else for (let p = 0; p < m.codes.length; p++) yield p;
  };
  const count = new Uint32Array(256);
  for (const p of places()) count[m.codes[p]]++;
  let bound = 254, above = count[255];
  while (bound > 1 && above + count[bound] < most) above += count[bound--];
  const found = [];
  for (const p of places()) if (m.codes[p] >= bound && m.codes[p] > 0) found.push(p);
  found.sort((a, b) => m.codes[b] - m.codes[a] || a - b);
  return found.slice(0, most).map((p) => ({ i: Math.floor(p / m.cols), j: p % m.cols }));
}

export function linesView(say, tell) {
  const drawing = svg("svg", { role: "application", "aria-label": "Lines between tokens; arrow keys choose a token", tabindex: "0" });
  const many = el("input", { type: "range", min: "1", max: "400", "aria-label": "Number of lines", oninput: () => change({ n: many.value }) }), count = el("output", {});
  const node = el("div", { class: "lines" }, drawing);
  const tools = el("label", { class: "slide" }, "Lines ", many, count);
  const key = el("p", { class: "legend" });
  let what = null, at = null, hover = null, links = svg("g"), texts = [];

  function draw() {
    const { q, k } = what;
    const n = Math.max(q.labels.length, k.labels.length);
    const width = Math.max(220, Math.min(node.clientWidth, 640));
    const pitch = n <= 80 ? 20 : n <= 300 ? 16 : 13;
    const column = Math.min(150, width * 0.32);
    at = { width, pitch, column, height: n * pitch + 28 };
    // The shorter column stands level with the middle of the longer one.
    at.dq = ((n - q.labels.length) * pitch) / 2 + 28;
    at.dk = ((n - k.labels.length) * pitch) / 2 + 28;
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", at.height);
    drawing.setAttribute("viewBox", `0 0 ${width} ${at.height}`);
    links = svg("g", { fill: "none" });
    texts = [];
    const letters = Math.floor(column / 7);
    const token = (side, view, i, x, y, anchor) => {
      const t = svg("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", "font-size": Math.min(13, pitch - 3), class: "token" + (view.marks[i] ? " mark" : ""),
        text: shorten(view.labels[i], letters), onclick: () => change(choose(side, view, i)),
        onpointerenter: () => { hover = { side, at: i }; connect(); tell(hover); }, onpointerleave: () => { hover = null; connect(); tell(null); } });
      texts.push({ node: t, side, i });
      return t;
    };
    const head = (x, anchor, text) => svg("text", { x, y: 10, "text-anchor": anchor, class: "head", "font-size": 12, text });
    drawing.replaceChildren(links, head(column - 6, "end", "query"), head(width - column + 6, "start", "key"),
      ...q.labels.map((_, i) => token("q", q, i, column - 6, at.dq + (i + 0.5) * pitch, "end")),
      ...k.labels.map((_, j) => token("k", k, j, width - column + 6, at.dk + (j + 0.5) * pitch, "start")));
    connect();
  }

  // connect draws the lines of the token under the pointer, else of the chosen one, else of all.
  function connect() {
    const pick = hover ?? chosen(what.q, what.k);
    const x0 = at.column, x1 = at.width - at.column, bend = (x1 - x0) / 2;
    links.replaceChildren();
    const lit = new Set();
    const cells = strongest(what.m, Number(state.n), pick);
    const bounds = [cells.at(-1), cells[0]].map((c) => c && number(weight(what.m, c.i, c.j)));
    key.textContent = cells.length ? `The ${cells.length} strongest${pick ? " of this token" : ""}: ${bounds[0]} to ${bounds[1]}` : "No weight is above 0";
    for (const { i, j } of cells.reverse()) { // the strongest on top
      const y0 = at.dq + (i + 0.5) * at.pitch, y1 = at.dk + (j + 0.5) * at.pitch;
      const x = weight(what.m, i, j), t = Number.isNaN(x) ? 1 : share(x, what.scale);
      const line = svg("path", { d: `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`, stroke: Number.isNaN(x) ? brokenCSS() : "var(--accent)",
        "stroke-width": (0.6 + 2.6 * t).toFixed(2), "stroke-opacity": (0.12 + 0.88 * t).toFixed(2) });
      line.append(svg("title", { text: `${what.q.labels[i]} → ${what.k.labels[j]}  ${number(x)}` }));
      links.append(line);
      lit.add("q" + i).add("k" + j);
    }
    for (const t of texts) {
      t.node.classList.toggle("picked", pick?.side === t.side && pick.at === t.i);
      t.node.classList.toggle("faint", !!pick && !lit.has(t.side + t.i) && !(pick.side === t.side && pick.at === t.i));
    }
  }

  drawing.addEventListener("keydown", (event) => {
    const pick = chosen(what.q, what.k) ?? { side: "q", at: -1 };
    let { side, at: i } = pick;
    if (event.key === "ArrowDown") i++;
    else if (event.key === "ArrowUp") i--;
    else if (event.key === "ArrowLeft") side = "q";
    else if (event.key === "ArrowRight") side = "k";
    else return;
    event.preventDefault();
    const view = side === "q" ? what.q : what.k;
    if (view.labels.length === 0) return;
    i = Math.max(0, Math.min(view.labels.length - 1, i));
    change({ tok: side + view.spans[i][0] });
    say(`${side === "q" ? "query" : "key"} ${view.labels[i]}`);
    const box = node.getBoundingClientRect(), y = (side === "q" ? at.dq : at.dk) + i * at.pitch;
    if (y < node.scrollTop || y > node.scrollTop + box.height - 40) node.scrollTop = y - box.height / 2;
  });

  return {
    node, key, tools,
    show(next) {
      what = next;
      hover = null;
      many.value = count.textContent = state.n;
      draw();
    },
    cancel: () => false,
    mirror(hit) {
      hover = hit;
      connect();
    },
    svg() {
      const copy = svg("g", {}, ...[...drawing.children].map((c) => c.cloneNode(true)));
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      for (const p of copy.querySelectorAll("path[stroke^=var]")) p.setAttribute("stroke", colour("--accent"));
      for (const t of copy.querySelectorAll("text")) {
        const faint = t.classList.contains("faint") || t.classList.contains("mark") || t.classList.contains("head");
        t.setAttribute("fill", colour(t.classList.contains("picked") ? "--accent" : faint ? "--quiet" : "--ink"));
        t.removeAttribute("class");
      }
      return { node: copy, width: at.width, height: at.height, legend: key.textContent };
    },
  };
}
