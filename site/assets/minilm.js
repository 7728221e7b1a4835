// Lesson 6: opens heads of the exported page, which is in a frame.

import { byId, onTheme, state, theme } from "./page.js";

// The heads and numbers are those that docs/lessons.md names.
const patterns = {
  previous: { at: "0.2", text: "Layer 0, head 2: each token after the first gives all of its weight to the token before it. The line is one cell below the diagonal." },
  sink: { at: "4.5", text: "Layer 4, head 5: on average [CLS], the first column, gets 0.90 of the weight." },
  separator: { at: "3.11", text: "Layer 3, head 11: the full stop and [SEP], the last two columns, get 0.38 of the weight." },
  it: { at: "3.1", tok: "q10", text: "Layer 3, head 1: the selected query “it” gives 0.68 of its weight to “animal”." },
};

function open() {
  const name = state.get("find"), found = Object.hasOwn(patterns, name) ? patterns[name] : null;
  for (const button of document.querySelectorAll("[data-find]")) button.setAttribute("aria-pressed", button.dataset.find === name);
  byId("answer").textContent = found?.text ?? "Nothing is opened yet: look first.";
  const values = new URLSearchParams({ theme: theme(), ...(found ? { a: found.at, c: "one" } : {}), ...(found?.tok ? { tok: found.tok } : {}) });
  byId("heads").src = "assets/minilm-heads.html#" + values;
}

for (const button of document.querySelectorAll("[data-find]")) button.addEventListener("click", () => {
  state.set({ find: button.dataset.find === state.get("find") ? null : button.dataset.find });
  open();
});
onTheme(open);
state.onChange(open);
open();
document.body.dataset.drawn = "";
