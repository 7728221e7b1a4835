// The search page: sections that contain all words. Those in the language of the page are first, then those with a word in
// their title or with the words next to each other. Dashes count as spaces; between Chinese or Japanese and other letters,
// spaces do not count.

import { sections } from "./search-index.js";
import { byId, el, later, state, t } from "./page.js";

const box = byId("words"), list = byId("found"), count = byId("count"), most = 40;
const cjk = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}ー、。，：；（）「」《》]/u;

/**
 * Returns a text in small letters of one width, with a space for each dash: cross-attention is cross attention. A space
 * beside Chinese or Japanese is left out: 掩蔽 softmax is 掩蔽softmax. places has the place of each letter in the text.
 */
function fold(text) {
  let out = "", from = 0;
  const places = [];
  for (const letter of text) {
    const small = letter.normalize("NFKC").toLowerCase().replace(/[-\u2010-\u2014_]/g, " ");
    const after = text[from + letter.length] ?? "";
    if (small !== " " || !(cjk.test(out.slice(-1)) || cjk.test(after))) {
      out += small;
      for (const _ of small) places.push(from);
    }
    from += letter.length;
  }
  places.push(text.length);
  return { out, places };
}
const join = (text) => text.toLowerCase().replace(/[-\u2010-\u2014_]/g, ""); // multi-head is multihead, too
const code = document.documentElement.lang, languageOf = (page) => /(?:^|[./])(zh|ja)[./]/.exec(page)?.[1] ?? "en";

/** Returns the order of a page: 0 for the language of this page, 1 for English documents, 2 for others. */
function far(page) {
  const language = languageOf(page);
  return language === code ? 0 : language === "en" && page.includes("/") ? 1 : 2;
}
const folded = sections.map((s) => ({ s, far: far(s.page), title: fold(s.title).out, text: fold(s.text).out, joined: join(`${s.title} ${s.text}`) }));

/** Returns the part of a text around the words next to each other or around the first of them, with all of them marked. */
function excerpt(text, words, phrase) {
  const low = fold(text).out, places = fold(text).places, whole = low.indexOf(phrase), found = words.map((w) => low.indexOf(w)).filter((i) => i >= 0);
  const first = places[whole >= 0 ? whole : found.length > 0 ? Math.min(...found) : 0];
  const from = cjk.test(text.slice(first, first + 2)) ? Math.max(0, first - 30) : Math.max(0, text.lastIndexOf(" ", Math.max(0, first - 60)) + 1), part = text.slice(from, from + 240);
  const node = el("p", { text: from > 0 ? "… " : "" }), here = fold(part);
  for (let at = 0; at < here.out.length; ) {
    const next = words.map((w) => [here.out.indexOf(w, at), w.length]).filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    if (!next) {
      node.append(part.slice(here.places[at]));
      break;
    }
    const end = next[0] + next[1];
    node.append(part.slice(here.places[at], here.places[next[0]]), el("mark", { text: part.slice(here.places[next[0]], here.places[end]) }));
    at = end;
  }
  return node;
}

function search() {
  const words = box.value.split(/[\s\-\u2010-\u2014_]+/).map((w) => fold(w).out).filter(Boolean).slice(0, 20), phrase = fold(box.value).out.trim();
  state.set({ q: box.value.slice(0, 200) || null });
  const score = (f) => words.reduce((sum, w) => sum + (f.title.includes(w) ? 10 : 0) + (f.text.includes(w) ? 1 : 0), words.length > 1 && f.text.includes(phrase) ? 15 : 0);
  const hits = words.length === 0 ? [] : folded.filter((f) => words.every((w) => f.title.includes(w) || f.text.includes(w) || f.joined.includes(w)));
  hits.sort((a, b) => a.far - b.far || score(b) - score(a));
  count.textContent = words.length === 0 ? "" : hits.length === 0 ? t`Nothing found. A part of a word finds more.` : hits.length === 1 ? t`1 section` : hits.length > most ? t`${hits.length} sections, the first ${most}` : t`${hits.length} sections`;
  list.replaceChildren(...hits.slice(0, most).map(({ s }) => el("li", { lang: languageOf(s.page) }, el("a", { href: (code === "en" ? "" : "../") + s.page + (s.id ? "#" + s.id : ""), text: s.title || s.page }), excerpt(s.text, words, phrase))));
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
