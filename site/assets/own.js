// Lesson 7: a model of the reader, which Go opens in this tab. Its files are read from the disk; nothing is uploaded.

import { ask, byId, give, grouped, say, sentence, t, theme } from "./page.js";
import { nameFrame } from "./words.js";

const most = 1000; // megabytes of weights
nameFrame(byId("own-heads"));
const problem = byId("own-problem"), told = byId("own-told"), heads = byId("own-heads"), text = byId("own-text"), draw = byId("own-draw");
let busy = false, opened = false, opening = "";

function fail(words) {
  problem.hidden = !words;
  problem.textContent = words && sentence(words);
}

let chinese = false; // whether the model is the small one of this page, which reads Chinese

/** Opens a model: list has paths and files. */
async function open(list, ours = false) {
  if (busy || list.length === 0) return;
  chinese = ours;
  const top = list[0][0].split("/")[0] + "/", inside = list.every(([path]) => path.startsWith(top));
  const files = list.map(([path, file]) => [inside ? path.slice(top.length) : path, file]);
  const weights = Math.round(files.reduce((sum, [path, file]) => sum + (/\.(safetensors|bin)$/.test(path) ? file.size : 0), 0) / 1e6);
  opened = false;
  controls();
  told.textContent = "";
  fail("");
  if (!files.some(([path]) => path === "config.json")) return fail(t`this is no directory of a model: it has no config.json`);
  if (weights > most) return fail(t`the model has ${grouped(weights)} MB of weights; this tab can open at most ${grouped(most)}`);
  busy = true;
  controls();
  told.textContent = t`Opening …`;
  try {
    document.body.dataset.program = "model";
    give(files);
    const start = performance.now(), m = await ask("own.open", {});
    told.textContent = opening = t`${m.layers} layers, ${m.heads} heads, opened in ${((performance.now() - start) / 1000).toFixed(1)} s.`;
    opened = true;
  } catch (error) {
    told.textContent = "";
    fail(error.message);
  }
  busy = false;
  controls();
  if (opened) await record();
}

/** Draws all heads for the text. */
async function record() {
  busy = true;
  controls();
  fail("");
  try {
    told.textContent = opening;
    heads.srcdoc = await ask("own.record", { text: text.value, theme: theme() });
    heads.hidden = false;
    if (!chinese && /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(text.value)) told.textContent += " " + t`A model that was trained on English reads each of these characters as a separate token, or as [UNK]: it has learnt little about them, and its heads show little.`;
    say(told.textContent);
  } catch (error) {
    fail(error.message);
  }
  busy = false;
  controls();
}

function controls() {
  draw.disabled = busy || !opened;
  byId("own").setAttribute("aria-busy", String(busy));
}

byId("own-chinese").addEventListener("click", async () => {
  try {
    const list = await Promise.all(["config.json", "model.safetensors", "tokenizer.json"].map(async (name) => {
      const answer = await fetch(new URL(`chinese/${name}`, import.meta.url)).catch(() => null);
      if (!answer?.ok) throw new Error(t`${name} could not be downloaded`);
      return [name, new File([await answer.blob()], name)];
    }));
    if (!/\p{sc=Han}/u.test(text.value)) text.value = "注意力告诉我们，一个词元关注哪些词元。";
    await open(list, true);
  } catch (error) {
    fail(error.message);
  }
});
for (const id of ["own-directory", "own-files"]) byId(id).addEventListener("change", ({ target }) => open([...target.files].map((file) => [file.webkitRelativePath || file.name, file])));
byId("own-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!draw.disabled) record();
});

/** Returns the paths and files of what was dropped. */
async function dropped(entry, path) {
  if (entry.isFile) return [[path, await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader(), list = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail)); // a part of them
    if (some.length === 0) return list;
    for (const e of some) list.push(...(await dropped(e, `${path}/${e.name}`)));
  }
}
const place = byId("own-drop");
for (const name of ["dragenter", "dragover"]) place.addEventListener(name, (event) => event.preventDefault());
place.addEventListener("drop", async (event) => {
  event.preventDefault();
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const list = await Promise.all(entries.map((entry) => dropped(entry, entry.name))).catch((error) => fail(error.message));
  if (list) open(list.flat());
});
controls();
