// Handles in a picture that are dragged, by pointer or touch. The page adds what the arrow keys do.

import { svg } from "./page.js";

/** Returns the place of a pointer in the units of a picture. */
export function place(picture, event) {
  const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  return [p.x, p.y];
}

/**
 * Returns a handle with the given shapes.
 * @param {SVGElement} picture
 * @param {{ink: string, role?: string, start?: () => void, drag: (x: number, y: number) => void, end?: () => void}} options
 * @param {...SVGElement} shapes
 */
export function handle(picture, { ink, role, start, drag, end }, ...shapes) {
  const node = svg("g", { class: `grip ${ink}`, role: "button", "aria-roledescription": role }, ...shapes);
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    node.focus();
    start?.();
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (node.hasPointerCapture(event.pointerId)) drag(...place(picture, event));
  });
  for (const name of ["pointerup", "pointercancel"]) node.addEventListener(name, () => end?.());
  return node;
}
