// The lines view: two columns of tokens with lines for the strongest weights, of one head or of several, each in its
// colour.

import { el, lighter, number, svg } from "./dom.js";
import { change, state } from "./state.js";
import { brokenCSS, headCSS, share, signedCSS } from "./colour.js";
import { weight } from "./data.js";
import { ranks } from "./pool.js";
import { isMasked, press } from "./output.js";
import { chosen, headName, numberOf, shorten } from "./tokens.js";
import { t as words } from "./words.js";

// strongest returns the cells with the largest weights, in one row or column if a token is picked. Codes are bytes, so
// counting them finds the smallest weight to include without sorting millions.
export function strongest(m, most, pick) {
  const places = function* () {
    if (pick?.side === "q") for (let j = 0; j < m.cols; j++) yield pick.at * m.cols + j;
    else if (pick?.side === "k") for (let i = 0; i < m.rows; i++) yield i * m.cols + pick.at;
    else for (let p = 0; p < m.codes.length; p++) yield p;
  };
  const rank = ranks(m), count = new Uint32Array(512); // rank 1 is the weight 0
  for (const p of places()) count[rank[m.codes[p]]]++;
  let bound = 510, above = count[511];
  while (bound > 2 && above + count[bound] < most) above += count[bound--];
  const found = [];
  for (const p of places()) if (rank[m.codes[p]] >= bound) found.push(p);
  found.sort((a, b) => rank[m.codes[b]] - rank[m.codes[a]] || a - b);
  return found.slice(0, most).map((p) => ({ i: Math.floor(p / m.cols), j: p % m.cols }));
}

// strongestOf returns the cells with the largest weights of several heads { m, … }, largest first.
function strongestOf(list, most, pick) {
  const found = list.flatMap((h) => strongest(h.m, most, pick).map(({ i, j }) => ({ i, j, head: h, x: weight(h.m, i, j) })));
  const size = (c) => (Number.isNaN(c.x) ? Infinity : Math.abs(c.x));
  return list.length > 1 ? found.sort((a, b) => (size(a) === size(b) ? 0 : size(b) - size(a))).slice(0, most) : found;
}

export function linesView(say, tell) {
  const drawing = svg("svg", { role: "application", "aria-label": words`Lines between tokens; arrow keys select a token`, tabindex: "0" });
  const many = el("input", { type: "range", min: "1", max: "400", "aria-label": words`Number of lines`, oninput: () => change({ n: many.value }) }), count = el("output", {});
  const several = el("div", { class: "several", role: "group", "aria-label": words`Heads whose lines are drawn` });
  const scroller = el("div", { class: "lines" }, drawing);
  const node = el("div", {}, several, scroller);
  const tools = el("label", { class: "slide" }, words`Lines` + " ", many, count);
  const key = el("p", { class: "legend" });
  let what = null, at = null, hover = null, links = svg("g"), texts = [], list = [], scale = null;

  // offer shows a button for each head of the layer; the state contains the pressed ones.
  function offer() {
    const layer = what.record.layers[what.layer], on = new Set(list.map((h) => h.head));
    several.hidden = layer.heads < 2;
    const name = what.record.id + "." + what.layer;
    if (several.dataset.of !== name) {
      several.dataset.of = name;
      several.replaceChildren(el("span", { text: words`Heads` }), ...Array.from({ length: layer.heads }, (_, h) =>
        el("button", { type: "button", "aria-label": headName(layer, h), onclick: () => toggle(h) }, el("i", {}), String(numberOf(layer, h)))),
      el("button", { type: "button", class: "all", onclick: () => set(list.length > layer.heads - 1 ? [] : Array.from({ length: layer.heads }, (_, h) => h)) }));
    }
    const buttons = [...several.querySelectorAll("button")];
    buttons.forEach((b, h) => {
      if (h === layer.heads) b.textContent = list.length > layer.heads - 1 ? words`only this head` : words`all heads`;
      else {
        b.setAttribute("aria-pressed", String(on.has(h)));
        b.style.setProperty("--head", list.length > 1 || !on.has(h) ? headCSS(h, layer.heads) : "var(--accent)");
      }
      b.tabIndex = h === (several.dataset.focus ? Math.min(Number(several.dataset.focus), layer.heads) : 0) ? 0 : -1;
    });
  }

  const set = (heads) => change({ hs: heads.filter((h) => h !== what.head).join("-") });

  // toggle adds or removes the lines of a head. Removing the open head opens the next one with lines.
  function toggle(h) {
    const on = list.map((x) => x.head), rest = on.filter((x) => x !== h);
    if (!on.includes(h)) set([...on, h].sort((a, b) => a - b));
    else if (h !== what.head) set(rest);
    else if (rest.length) change({ [what.side]: `${what.layer}.${rest[0]}`, hs: rest.slice(1).join("-") });
  }

  several.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key], buttons = [...several.querySelectorAll("button")];
    if (!by) return;
    event.preventDefault();
    const next = (buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length;
    several.dataset.focus = next;
    buttons.forEach((b, i) => { b.tabIndex = i === next ? 0 : -1; });
    buttons[next].focus();
  });

  const colourOf = (h) => (list.length > 1 && typeof h.head === "number" ? headCSS(h.head, what.record.layers[what.layer].heads) : "var(--accent)");

  function draw() {
    const { q, k } = what;
    const n = Math.max(q.labels.length, k.labels.length);
    const width = Math.max(220, Math.min(scroller.clientWidth, 640));
    const pitch = n <= 80 ? 20 : n <= 300 ? 16 : 13;
    const column = Math.min(150, width * 0.32);
    at = { width, pitch, column, height: n * pitch + 28 };
    // The shorter column is centred on the longer one.
    at.dq = ((n - q.labels.length) * pitch) / 2 + 28;
    at.dk = ((n - k.labels.length) * pitch) / 2 + 28;
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", at.height);
    drawing.setAttribute("viewBox", `0 0 ${width} ${at.height}`);
    links = svg("g", { fill: "none" });
    texts = [];
    const letters = Math.floor(column / 7);
    const token = (side, view, i, x, y, anchor) => {
      const t = svg("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", "font-size": Math.min(13, pitch - 3), class: "token" + (view.marks[i] ? " mark" : ""), ...(isMasked(what, side, i) ? { "text-decoration": "line-through" } : {}),
        onclick: (event) => press(event, what, side, i),
        onpointerenter: () => { hover = { side, at: i }; connect(); tell(hover); }, onpointerleave: () => { hover = null; connect(); tell(null); } }, ...lighter(shorten(view.labels[i], letters), svg, "tspan"));
      texts.push({ node: t, side, i });
      return t;
    };
    const head = (x, anchor, text) => svg("text", { x, y: 10, "text-anchor": anchor, class: "head", "font-size": 12, text });
    drawing.replaceChildren(links, head(column - 6, "end", words`query`), head(width - column + 6, "start", words`key`),
      ...q.labels.map((_, i) => token("q", q, i, column - 6, at.dq + (i + 0.5) * pitch, "end")),
      ...k.labels.map((_, j) => token("k", k, j, width - column + 6, at.dk + (j + 0.5) * pitch, "start")));
    connect();
  }

  // connect draws the lines of the token under the pointer, else of the selected token, else of all tokens.
  function connect() {
    const pick = hover ?? chosen(what.q, what.k);
    const x0 = at.column, x1 = at.width - at.column, bend = (x1 - x0) / 2;
    links.replaceChildren();
    const lit = new Set();
    const cells = strongestOf(list, Number(state.n), pick), one = list.length === 1;
    const bounds = [cells.at(-1), cells[0]].map((c) => c && (c.head.m.signed ? "±" + number(Math.abs(c.x)) : number(c.x)));
    const n = cells.length, [low, high] = bounds, many = list.length;
    if (n === 0) key.textContent = words`No weight is larger than 0`;
    else if (one) key.textContent = pick ? words`The ${n} strongest weights of this token: ${low} to ${high}` : words`The ${n} strongest weights: ${low} to ${high}`;
    else key.textContent = pick ? words`The ${n} strongest weights of this token in ${many} heads: ${low} to ${high}` : words`The ${n} strongest weights in ${many} heads: ${low} to ${high}`;
    for (const { i, j, x, head } of cells.reverse()) { // the strongest on top, so last
      const y0 = at.dq + (i + 0.5) * at.pitch, y1 = at.dk + (j + 0.5) * at.pitch;
      const t = Number.isNaN(x) ? 1 : share(x, scale);
      const line = svg("path", { d: `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`, stroke: Number.isNaN(x) ? brokenCSS() : one && head.m.signed ? signedCSS(Math.sign(x) * 0.6) : colourOf(head),
        "stroke-width": (0.6 + 2.6 * t).toFixed(2), "stroke-opacity": (0.12 + 0.88 * t).toFixed(2) });
      const name = one ? "" : headName(what.record.layers[what.layer], head.head) + ": ";
      line.append(svg("title", { text: `${name}${what.q.labels[i]} → ${what.k.labels[j]}  ${number(x)}` }));
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
    say(`${side === "q" ? words`query` : words`key`} ${view.labels[i]}`);
    const box = scroller.getBoundingClientRect(), y = (side === "q" ? at.dq : at.dk) + i * at.pitch;
    if (y < scroller.scrollTop || y > scroller.scrollTop + box.height - 40) scroller.scrollTop = y - box.height / 2;
  });

  return {
    node, key, tools,
    show(next) {
      what = next;
      hover = null;
      many.value = count.textContent = state.n;
      list = [{ head: what.head, m: what.m }, ...what.others];
      scale = list.reduce((s, { m }) => ({ lo: Math.min(s.lo, m.lo), hi: Math.max(s.hi, m.hi), signed: s.signed || m.signed }), what.scale); // one scale for all heads
      offer();
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
      let x = 0;
      const layer = what.record.layers[what.layer], line = at.height + 14;
      if (list.length > 1) for (const h of list) {
        const text = headName(layer, h.head);
        copy.append(svg("rect", { x, y: line - 5, width: 10, height: 10, fill: colourOf(h).startsWith("var") ? colour("--accent") : colourOf(h) }),
          svg("text", { x: x + 14, y: line, "dominant-baseline": "central", "font-size": 11, fill: colour("--ink"), text }));
        x += 30 + 6.5 * text.length;
      }
      return { node: copy, width: Math.max(at.width, x), height: at.height + (list.length > 1 ? 24 : 0), legend: key.textContent };
    },
  };
}
