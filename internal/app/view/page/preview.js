// The preview: a larger picture of the head under the pointer, next to its thumbnail.

import { canvasFor, el } from "./dom.js";
import { head } from "./data.js";
import { picture, whole } from "./pool.js";
import { axesOf, visibleKeys } from "./tokens.js";

const side = 260; // pixels of the longer side
const most = 1 << 18; // weights of a head in full; larger heads stay as thumbnails

// preparePreview shows the preview when the pointer rests on a thumbnail; get returns the head of a button.
export function preparePreview(root, get) {
  const canvas = el("canvas"), title = el("b"), note = el("div", { class: "quiet" });
  const box = el("div", { class: "preview", "aria-hidden": "true", hidden: true }, title, note, canvas);
  document.body.append(box);
  let over = null, turn = 0;

  const hide = () => {
    over = null;
    turn++;
    box.hidden = true;
  };

  function draw(m, wide, high) {
    const context = canvasFor(canvas, wide, high), ratio = canvas.width / wide;
    context.putImageData(picture(m, m, whole(m), canvas.width, canvas.height, Math.round(5 * ratio)), 0, 0);
  }

  async function show(button) {
    const mine = ++turn;
    const found = await get(button).catch(() => null);
    if (!found || mine !== turn || found.m.rows * found.m.cols === 0) return;
    const { record, m } = found, layer = record.layers[found.layer], { q, k } = axesOf(record, layer);
    const rows = q.labels.length, cols = k.labels.length, scale = Math.min(side, root.clientWidth - 24) / Math.max(rows, cols);
    const wide = Math.max(40, cols * scale), high = Math.max(40, rows * scale);
    title.textContent = found.name;
    note.textContent = found.note;
    note.hidden = !found.note;
    draw(m, wide, high);
    box.hidden = false;
    // Below or above the row, and within the overview, so as not to cover the controls and the open head.
    const at = button.getBoundingClientRect(), { offsetWidth: w, offsetHeight: h } = box, out = root.parentElement.getBoundingClientRect();
    const below = at.bottom + 8, above = at.top - 8 - h, fits = below + h < window.innerHeight || above < 6;
    box.style.left = Math.max(6, Math.min(Math.max(out.left, at.left + at.width / 2 - w / 2), out.right - w, window.innerWidth - w - 6)) + "px";
    box.style.top = Math.max(6, fits ? Math.min(below, window.innerHeight - h - 6) : above) + "px";
    if (m.blockQ * m.blockK === 1 || rows * cols > most) return;
    const full = await head(record, found.layer, found.head).catch(() => null); // an exported page may not contain it
    if (!full || mine !== turn) return;
    full.seen = visibleKeys(layer, q, k);
    draw(full, wide, high);
  }

  root.addEventListener("pointerover", (event) => {
    const button = event.pointerType === "touch" ? null : event.target.closest(".thumb");
    if (button === over) return;
    const first = box.hidden;
    hide();
    over = button;
    if (button) setTimeout(() => { if (over === button) show(button); }, first ? 250 : 40);
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("click", hide);
  window.addEventListener("scroll", hide, { capture: true, passive: true });
  return { hide: () => !box.hidden && (hide(), true) };
}
