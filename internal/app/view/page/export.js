// Export of the screen as a picture, or as a page that works without the server.

import { byId, el, number, svg } from "./dom.js";
import { address, lens } from "./state.js";
import { ends, legendCSS, legendWords, theme } from "./colour.js";
import { checkPath, examplesPath, filmAnswers, frozen, get, headPath, recordPath, measuresPath, neuronsPath, startPath, thumbsPath } from "./data.js";
import { headsOf } from "./tokens.js";
import { hasFilm } from "./film.js";
import { hasExamples } from "./examples.js";

const most = 12 << 20; // bytes of weights in a page

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// picture draws the panels side by side with titles and legends.
function picture(panels) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const shown = panels.map((p) => p.picture()).filter(Boolean);
  if (shown.length === 0) throw new Error("There is nothing to export.");
  const gap = 24, top = 52, foot = 44;
  let x = gap;
  const groups = [];
  for (const p of shown) {
    const wide = Math.max(p.width, 300);
    const text = (t, y, size, fill, weight = "normal") => svg("text", { x: 0, y, "font-size": size, fill, "font-weight": weight, text: t });
    const [from, to] = ends(p.what), y = top + p.height + 14;
    const ramp = [text(number(from), y + 9, 11, colour("--quiet")), ...Array.from({ length: 64 }, (_, i) => svg("rect", { x: 44 + 2 * i, y, width: 2.5, height: 10, fill: legendCSS(p.what.m, i / 63) })),
      svg("text", { x: 178, y: y + 9, "font-size": 11, fill: colour("--quiet"), text: number(to) + legendWords(p.what) })];
    groups.push(svg("g", { transform: `translate(${x} ${gap})` }, text(p.title[0].toUpperCase() + p.title.slice(1), 14, 15, colour("--ink"), "bold"), text(p.sub.slice(0, Math.floor(wide / 6.5)), 34, 12, colour("--quiet")),
      svg("g", { transform: `translate(0 ${top})` }, p.node), ...(p.legend ? [text(p.legend, y + 9, 11, colour("--quiet"))] : ramp)));
    x += wide + gap;
  }
  const height = gap + top + Math.max(...shown.map((p) => p.height)) + foot;
  const node = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: x, height, viewBox: `0 0 ${x} ${height}`, "font-family": "system-ui, sans-serif" },
    svg("rect", { width: x, height, fill: colour("--card") }), ...groups);
  return { text: new XMLSerializer().serializeToString(node), width: x, height };
}

// fileName returns a file name with the model and, for a picture, the head: "dates-encoder-layer-0-head-3.svg".
function fileName(kind, head = "") {
  const model = byId("name").textContent.split(/[/\\]/).filter(Boolean).pop() ?? "";
  const plain = (text) => text.replace(/[^\p{L}\p{N}._]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 60);
  return ([plain(model), plain(head)].filter(Boolean).join("-") || "attention") + kind;
}

async function png(drawing) {
  const url = URL.createObjectURL(new Blob([drawing.text], { type: "image/svg+xml" }));
  const picture = new Image();
  await new Promise((resolve, reject) => {
    picture.onload = resolve;
    picture.onerror = () => reject(new Error("The browser cannot draw this picture."));
    picture.src = url;
  });
  const scale = Math.min(2, 12000 / Math.max(drawing.width, drawing.height));
  const canvas = el("canvas", { width: Math.round(drawing.width * scale), height: Math.round(drawing.height * scale) });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((resolve, reject) => canvas.toBlob((b) => (b ? resolve(b) : reject(new Error("The picture is too large."))), "image/png"));
}

function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

// page returns a copy of the page that contains the answers it needs: those of the open heads first, then others up to
// the limit. The recording of the training is in it as a whole or not at all. text is the record that a step of the
// recording replaced on the screen, if there is one: it is in the page if all of its heads fit.
async function page(panels, records, text) {
  const answers = {};
  let bytes = 0;
  const take = async (path, record) => {
    if (path in answers) return;
    const body = await get(path, record);
    bytes += body.length;
    answers[path] = base64(body);
  };
  const code = (value) => base64(new TextEncoder().encode(JSON.stringify(value)));
  await take(startPath);
  for (const record of records) if (record.asked) answers[recordPath(...record.asked)] = code(record);
  for (const p of panels) for (const [path, record] of p.sources()) await take(path, record);
  for (const record of records)
    for (let l = 0; l < record.layers.length; l++) {
      await take(thumbsPath(record, l), record);
      await take(measuresPath(record, l), record);
      if (record.unread) await take(checkPath(record, l), record);
    }
  const valued = records.some((r) => r.layers.some((l) => l.values)) ? [lens({ x: "", w: "", vw: "1" })] : [];
  const lenses = new Set([lens(), ...valued, ...["", "hide", "renorm"].flatMap((x) => ["", "1"].map((w) => lens({ x, w })))]);
  // whole takes all heads of a record in a lens. It returns false if they do not fit.
  const whole = async (record, through) => {
    for (let l = 0; l < record.layers.length; l++) {
      const { q, k, summaries } = record.layers[l], heads = headsOf(record.layers[l]);
      if (bytes + record.axes[q].tokens.length * record.axes[k].tokens.length * heads.length > most) return false;
      await take(thumbsPath(record, l, through), record);
      await take(measuresPath(record, l, through), record);
      await Promise.all(heads.map((h) => take(headPath(record, l, h, through), record)));
      if (summaries) await take(thumbsPath(record, l, through, true), record);
      for (const s of summaries ?? []) await take(measuresPath(record, l, through, s), record);
    }
    return true;
  };
  let film = false;
  fill: for (const through of lenses) {
    for (const record of records) if (!(await whole(record, through))) break fill;
    const frames = hasFilm() && (film || through === lens()) ? await filmAnswers(Math.max(0, most - bytes), through) : null;
    if (!frames) continue;
    film = true;
    for (const [path, text] of Object.entries(frames)) {
      if (path in answers) continue;
      answers[path] = text;
      bytes += (text.length * 3) / 4;
    }
  }
  let hasText = records[0]?.frame === undefined;
  if (text && (await whole(text, lens()))) {
    hasText = true;
    if (text.asked) answers[recordPath(...text.asked)] = code(text);
    if (text.unread) for (let l = 0; l < text.layers.length; l++) await take(checkPath(text, l), text);
    for (const through of lenses) if (!(await whole(text, through))) break;
  }
  for (const record of records)
    for (let l = 0; l < record.layers.length; l++) {
      const { q, k, heads, vectors = 0 } = record.layers[l], size = 4 * vectors * heads * (record.axes[q].tokens.length + record.axes[k].tokens.length);
      if (vectors && bytes + size <= most) for (let h = 0; h < heads; h++) await take(neuronsPath(record, l, h), record);
    }
  for (const record of hasExamples() ? records : [])
    for (let l = 0; l < record.layers.length; l++)
      for (let h = 0; h < record.layers[l].heads && bytes < most; h++) await take(examplesPath(record, l, h), record);
  const shell = new TextDecoder().decode(await get("api/frozen"));
  const at = shell.indexOf("@" + "FROZEN@");
  // A text may contain the closing tag of a script. JSON can escape its <.
  const data = JSON.stringify({ address: address(), theme: theme(), answers, film, text: hasText }).replaceAll("<", "\\u003c");
  return shell.slice(0, at) + data + shell.slice(at + 8);
}

// prepareExport connects the buttons of the menu.
export function prepareExport(screen, say) {
  const menu = byId("export");
  const head = () => screen().panels.map((p) => p.picture()?.title).find(Boolean) ?? "";
  const ways = {
    svg: async () => save(new Blob([picture(screen().panels).text], { type: "image/svg+xml" }), fileName(".svg", head())),
    png: async () => save(await png(picture(screen().panels)), fileName(".png", head())),
    html: async () => save(new Blob([await page(screen().panels, screen().records, await screen().text())], { type: "text/html" }), fileName(".html")),
    link: async () => {
      await navigator.clipboard.writeText(location.href);
      say("Link copied.");
    },
  };
  for (const button of menu.querySelectorAll("[data-export]")) {
    if (frozen && (button.dataset.export === "html" || button.dataset.export === "link")) button.hidden = true;
    button.addEventListener("click", async () => {
      menu.open = false;
      button.disabled = true;
      try {
        await ways[button.dataset.export]();
      } catch (problem) {
        say(problem.message);
      }
      button.disabled = false;
    });
  }
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
}
