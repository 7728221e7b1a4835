// A chart of lines and points as SVG, with a summary for screen readers.

import { el, number, svg } from "./page.js";

/** Returns about n round numbers in a range. */
export function ticks(low, high, n = 5) {
  const rough = (high - low) / n, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) list.push(i * step);
  return list;
}

const short = (x) => (Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(0) : String(Number(x.toPrecision(4)))).replace(/^(-?\d)(\d{3})$/, "$1,$2").replace("-", "−");

/**
 * Returns a chart. Colours are 0 to 4: quiet, accent, other, good, bad.
 * @param {{title?: string, x: string, y: string, height?: number, level?: string, onDraw?: () => void}} options
 */
export function chart({ title = "", x: xName, y: yName, height = 260, level = "h3", onDraw = () => {} }) {
  const right = 8, top = 10, bottom = 38;
  const picture = svg("svg", { role: "img", height }), names = el("ul", { class: "names" });
  const heading = el(level, { text: title, hidden: !title }), node = el("div", { class: "chart" }, heading, names, picture);
  const marks = svg("g"), frame = svg("g"), above = svg("g");
  picture.append(frame, marks, above);
  let place = { x: (v) => v, y: (v) => v, back: () => [0, 0] }, last = null, width = 0, left = 46;

  const drawing = { node, picture, above,
    /** Returns where values are in the picture. */
    at: () => place,
    /**
     * @param {{lines: {name: string, x: number[], y: number[], colour?: number, points?: boolean, dashed?: boolean, sizes?: number[]}[],
     *   xRange?: [number, number], yRange?: [number, number], log?: boolean, logX?: boolean, summary?: string}} what
     */
    show(what) {
      last = what;
      const { lines, xRange, yRange, log = false, logX = false, summary } = what;
      width = Math.max(220, node.clientWidth || 560);
      picture.setAttribute("width", width);
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const range = (list) => {
        const seen = list.filter(Number.isFinite);
        const low = Math.min(...seen), high = Math.max(...seen);
        return seen.length === 0 ? (log ? [0.1, 10] : [0, 1]) : low === high ? (log ? [low / 2, low * 2] : [low - 0.5, high + 0.5]) : [low, high];
      };
      const fy = log ? (v) => Math.log10(Math.max(v, 1e-12)) : (v) => v, fx = logX ? Math.log10 : (v) => v;
      let [x0, x1] = (xRange ?? range(lines.flatMap((l) => l.x))).map(fx);
      let [y0, y1] = (yRange ?? range(lines.flatMap((l) => l.y.filter((v) => !log || v > 0)))).map(fy);
      if (log) [y0, y1] = [Math.floor(y0 - 0.05), Math.ceil(y1 + 0.05)];
      const powers = (low, high) => Array.from({ length: Math.floor(high + 1e-9) - Math.ceil(low - 1e-9) + 1 }, (_, i) => 10 ** (Math.ceil(low - 1e-9) + i));
      const marked = log ? powers(y0, y1) : ticks(y0, y1);
      left = Math.max(46, 24 + 7 * Math.max(0, ...marked.map((v) => short(v).length))); // the name of the axis is left of the numbers
      const px = (v) => left + ((fx(v) - x0) / (x1 - x0)) * (width - left - right), py = (v) => top + ((y1 - fy(v)) / (y1 - y0)) * (height - top - bottom);
      place = { x: px, y: py, back: (a, b) => [x0 + ((a - left) / (width - left - right)) * (x1 - x0), y1 - ((b - top) / (height - top - bottom)) * (y1 - y0)] };
      frame.replaceChildren();
      for (const v of marked) frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: py(v), y2: py(v) }),
        svg("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end", text: short(v) }));
      for (const v of logX ? powers(x0, x1) : ticks(x0, x1, width < 400 ? 4 : 8)) frame.append(svg("text", { x: px(v), y: height - bottom + 16, "text-anchor": "middle", text: short(v) }));
      frame.append(svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", text: xName }),
        svg("text", { transform: `translate(11 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", text: yName }));
      marks.replaceChildren(...lines.flatMap((l) => {
        const ink = `ink-${l.colour ?? 1}`;
        if (l.points) return l.x.flatMap((v, i) => (!Number.isFinite(l.y[i]) ? [] : svg("circle", { class: ink, cx: px(v), cy: Math.max(top, Math.min(height - bottom, py(l.y[i]))), r: l.sizes?.[i] ?? 3.5, fill: "currentColor", "fill-opacity": 0.75 })));
        let path = "", pen = "M";
        for (let i = 0; i < l.x.length; i++) {
          if (!Number.isFinite(l.y[i]) || (log && l.y[i] <= 0)) pen = "M";
          else {
            path += `${pen}${px(l.x[i]).toFixed(1)} ${Math.max(top - 2, Math.min(height - bottom + 2, py(l.y[i]))).toFixed(1)}`;
            pen = "L";
          }
        }
        return [svg("path", { class: ink, d: path, stroke: "currentColor", "stroke-dasharray": l.dashed ? "5 4" : null }), ...(l.x.length === 1 && Number.isFinite(l.y[0]) && !(log && l.y[0] <= 0) ? [svg("circle", { class: ink, cx: px(l.x[0]), cy: py(l.y[0]), r: 3, fill: "currentColor" })] : [])]; // a single value is a dot
      }));
      names.replaceChildren(...lines.filter((l) => l.name).map((l) => el("li", { class: `ink-${l.colour ?? 1}${l.points ? " dots" : ""}${l.dashed ? " dashes" : ""}` }, el("span", { text: l.name }))));
      picture.setAttribute("aria-label", summary ?? `${title || yName}: ` + lines.map((l) => `${l.name}, ${l.x.length} values, the last ${number(l.y.at(-1), 3)}`).join("; "));
      onDraw();
    },
  };
  new ResizeObserver(() => {
    if (last && node.clientWidth !== width) drawing.show(last);
  }).observe(node);
  return drawing;
}
