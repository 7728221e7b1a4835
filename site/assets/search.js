// The search page: sections that contain all words, first those with a word in their title or with the words next to each
// other. Dashes count as spaces.

import { sections } from "./search-index.js";
import { byId, el, later, state } from "./page.js";

const box = byId("words"), list = byId("found"), count = byId("count"), most = 40;
/** Returns a text of the same length in small letters, with a space for each dash: cross-attention is cross attention. */
const fold = (text) => text.toLowerCase().replace(/[-\u2010-\u2014_]/g, " ");
const join = (text) => text.toLowerCase().replace(/[-\u2010-\u2014_]/g, ""); // multi-head is multihead, too
const folded = sections.map((s) => ({ s, title: fold(s.title), text: fold(s.text), joined: join(`${s.title} ${s.text}`) }));

/** Returns the part of a text around the words next to each other or around the first of them, with all of them marked. */
function excerpt(text, words) {
  const low = fold(text), whole = low.indexOf(words.join(" ")), found = words.map((w) => low.indexOf(w)).filter((i) => i >= 0);
  const first = whole >= 0 ? whole : found.length > 0 ? Math.min(...found) : 0;
  const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, first - 60)) + 1), part = text.slice(from, from + 240);
  const node = el("p", { text: from > 0 ? "… " : "" });
  for (let at = 0; at < part.length; ) {
    const here = fold(part), next = words.map((w) => [here.indexOf(w, at), w.length]).filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    if (!next) {
      node.append(part.slice(at));
      break;
    }
    node.append(part.slice(at, next[0]), el("mark", { text: part.slice(next[0], next[0] + next[1]) }));
    at = next[0] + next[1];
  }
  return node;
}

function search() {
  const words = fold(box.value).split(/\s+/).filter(Boolean).slice(0, 20), phrase = words.join(" ");
  state.set({ q: box.value.slice(0, 200) || null });
  const score = (f) => words.reduce((sum, w) => sum + (f.title.includes(w) ? 10 : 0) + (f.text.includes(w) ? 1 : 0), words.length > 1 && f.text.includes(phrase) ? 15 : 0);
  const hits = words.length === 0 ? [] : folded.filter((f) => words.every((w) => f.title.includes(w) || f.text.includes(w) || f.joined.includes(w)));
  hits.sort((a, b) => score(b) - score(a));
  count.textContent = words.length === 0 ? "" : hits.length === 0 ? "Nothing found. A part of a word finds more." : `${hits.length} ${hits.length === 1 ? "section" : "sections"}${hits.length > most ? `, the first ${most}` : ""}`;
  list.replaceChildren(...hits.slice(0, most).map(({ s }) => el("li", {}, el("a", { href: s.page + (s.id ? "#" + s.id : ""), text: s.title || s.page }), excerpt(s.text, words))));
}

byId("search").addEventListener("submit", (event) => event.preventDefault());
box.addEventListener("input", later(80, search));
const load = () => {
  box.value = state.get("q");
  search();
};
state.onChange(load);
load();
box.focus();
