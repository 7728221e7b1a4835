// The text view: each token has the colour of its weight for the selected query, or of the selected key.

import { el, lighter, number, svg } from "./dom.js";
import { change, state } from "./state.js";
import { brokenCSS, weightRGB } from "./colour.js";
import { css, inkOn } from "./palette.js";
import { weight } from "./data.js";
import { isMasked, press } from "./output.js";
import { choose, chosen, direction } from "./tokens.js";
import { t as words, tr } from "./words.js";

export function textView(say, tell) {
  const queries = el("p", { class: "flow", role: "listbox" }), keys = el("p", { class: "flow", role: "listbox" });
  const titleQ = el("h4", {}), titleK = el("h4", {});
  const roles = ["query", "key"].map((name) => el("button", { type: "button", text: tr(name), "data-side": name[0], onclick: () => setSide(name[0]) }));
  const turn = el("div", { class: "as", role: "group", "aria-label": words`Token as` }, el("span", { text: words`Token as:` }), el("span", { class: "segments" }, ...roles));
  const hint = el("p", { class: "note hint", text: words`Point at a token, or select one, to see its weights.` });
  const node = el("div", { class: "text" }, turn, titleQ, queries, titleK, keys, hint); // the hint is last: hiding it moves no token
  let what = null, chips = [], hover = null, one = false, side = "q";

  // setSide makes the selected token a query ("q") or a key ("k").
  function setSide(to) {
    side = to;
    if (state.tok) change({ tok: side + state.tok.slice(1) });
    else draw();
  }

  function draw() {
    const { q, k } = what;
    one = what.same; // in self-attention the text is shown once
    const pick = chosen(q, k);
    if (pick) side = pick.side;
    turn.hidden = !one;
    roles.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.side === side)));
    titleQ.textContent = one ? "" : words`Queries`;
    titleK.textContent = one ? "" : words`Keys`;
    titleQ.hidden = titleK.hidden = keys.hidden = one;
    chips = [];
    const chip = (s, view, i) => {
      const c = el("span", { class: "chip" + (view.marks[i] ? " mark" : ""), role: "option", tabindex: "-1",
        onclick: (event) => press(event, what, s(), i),
        onpointerenter: () => { hover = { side: s(), at: i }; shade(); tell(hover); }, onpointerleave: () => { hover = null; shade(); tell(null); } }, ...lighter(view.labels[i]));
      return c;
    };
    const list = (place, s, view) => {
      const made = view.labels.map((_, i) => chip(s, view, i));
      place.replaceChildren(...made);
      place.dir = direction(view);
      return made;
    };
    if (one) {
      const made = list(queries, () => side, q);
      chips = { q: made, k: made };
      queries.setAttribute("aria-label", words`Tokens`);
    } else {
      chips = { q: list(queries, () => "q", q), k: list(keys, () => "k", k) };
      queries.setAttribute("aria-label", words`Queries`);
      keys.setAttribute("aria-label", words`Keys`);
    }
    shade();
  }

  function shade() {
    const pick = hover ?? chosen(what.q, what.k);
    for (const [s, list] of Object.entries(chips)) list.forEach((c, i) => {
      c.style.background = c.style.color = "";
      c.classList.remove("picked");
      c.classList.toggle("struck", isMasked(what, s, i));
      c.title = "";
      c.tabIndex = -1;
      c.setAttribute("aria-selected", "false");
    });
    const entry = pick ? chips[pick.side][pick.at] : chips.q[0];
    if (entry) entry.tabIndex = 0;
    if (!one && chips.k[0] && !(pick?.side === "k")) chips.k[0].tabIndex = 0;
    hint.hidden = !!pick;
    if (!pick) return;
    const { m, scale } = what;
    chips[pick.side === "q" ? "k" : "q"].forEach((c, n) => {
      const x = pick.side === "q" ? weight(m, pick.at, n) : weight(m, n, pick.at);
      const ground = weightRGB(m, scale, x);
      c.style.background = Number.isNaN(x) ? brokenCSS() : css(ground);
      c.style.color = Number.isNaN(x) ? "#fff" : inkOn(ground);
      c.title = number(x);
    });
    entry.classList.add("picked");
    entry.setAttribute("aria-selected", "true");
  }

  node.addEventListener("keydown", (event) => {
    const s = one ? side : queries.contains(event.target) ? "q" : "k", right = event.target.parentNode?.dir === "rtl" ? -1 : 1;
    const go = { ArrowLeft: -right, ArrowUp: -1, ArrowRight: right, ArrowDown: 1 }[event.key];
    const from = chips[s].indexOf(event.target);
    if (from < 0) return;
    const view = s === "q" ? what.q : what.k;
    if (event.key === "Enter" || event.key === " ") change(choose(s, view, from));
    else if (go) {
      const to = Math.max(0, Math.min(view.labels.length - 1, from + go));
      change({ tok: s + view.spans[to][0] });
      chips[s][to].focus();
      say(`${s === "q" ? words`query` : words`key`} ${view.labels[to]}`);
    } else return;
    event.preventDefault();
  });

  return {
    node, flows: true, // the browser wraps the tokens at any width
    show(next) {
      const focused = node.contains(document.activeElement) && what?.m === next.m;
      const same = what && what.m === next.m && what.q === next.q && what.k === next.k;
      what = next;
      hover = null;
      if (same && focused) {
        const pick = chosen(what.q, what.k);
        if (pick) side = pick.side;
        shade(); // keeps the elements, and the focus with them
      } else draw();
    },
    cancel: () => false,
    mirror(hit) {
      hover = hit;
      shade();
    },
    // svg returns a picture with the tokens at their places on the screen.
    svg() {
      const box = node.getBoundingClientRect(), group = svg("g", {});
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      const write = (n, r) => svg("text", { x: r.left - box.left + r.width / 2, y: r.top - box.top + r.height / 2, "text-anchor": "middle", "dominant-baseline": "central",
        "font-size": parseFloat(getComputedStyle(n).fontSize), fill: n.style.color || colour(n.classList.contains("mark") ? "--quiet" : "--ink"), text: n.textContent });
      for (const n of node.querySelectorAll(".chip, h4")) {
        const r = n.getBoundingClientRect();
        if (r.width === 0) continue;
        if (n.classList.contains("chip")) {
          group.append(svg("rect", { x: r.left - box.left, y: r.top - box.top, width: r.width, height: r.height, rx: 3, fill: n.style.background || "none",
            stroke: n.classList.contains("picked") ? colour("--accent") : "none", "stroke-width": 2 }));
        }
        const t = write(n, r);
        if (!n.classList.contains("chip")) {
          t.setAttribute("x", r.left - box.left);
          t.setAttribute("text-anchor", "start");
        }
        group.append(t);
      }
      return { node: group, width: Math.ceil(box.width), height: Math.ceil(box.height) };
    },
  };
}
