// Matrices as pixels. Where cells are smaller than pixels, each pixel shows the largest weight under it: attention has
// few large weights, and a mean or every n-th cell would lose them.

import { brokenRGB, maskRGB, weightRGB } from "./colour.js";

// ranks orders the codes of a matrix; the highest rank under a pixel is shown. 0 is a masked cell, above it are the
// codes 0 to 254, or, in a signed matrix, the distances from 0; values that are not finite have the highest
// rank.
export function ranks(m) {
  const rank = new Uint16Array(256);
  for (let code = 0; code < 255; code++) rank[code] = m.signed ? 1 + 2 * Math.abs(code - 127) + (code > 127 ? 1 : 0) : 1 + code;
  rank[255] = 511;
  return rank;
}

// zeroCode is the code of weight 0.
const zeroCode = (m) => (m.hi > m.lo ? Math.max(0, Math.min(254, Math.round((254 * (0 - m.lo)) / (m.hi - m.lo)))) : 0);

// pixels returns the colour of each rank, four bytes in one number.
function pixels(m, scale) {
  const out = new Uint32Array(512), bytes = new Uint8ClampedArray(out.buffer), rank = ranks(m);
  for (let code = 0; code < 256; code++) {
    const colour = colourOf(m, scale, code), at = 4 * rank[code];
    for (let c = 0; c < 3; c++) bytes[at + c] = colour[c];
    bytes[at + 3] = 255;
  }
  bytes.set([...maskRGB()[0], 255], 0);
  return out;
}

// colourOf returns the colour of a code.
export function colourOf(m, scale, code) {
  if (code === 255) return brokenRGB();
  return weightRGB(m, scale, m.lo + (code / 254) * (m.hi - m.lo));
}

// masked reports whether a query cannot attend to a key.
export const masked = (m, i, j) => !!m.seen && j >= m.seen[i] && m.codes[i * m.cols + j] === zeroCode(m);

// ranges returns two numbers for each of n pixels: the first and the end of the cells under it, of the cells a to b.
function ranges(a, b, n) {
  const cells = b - a, out = new Uint32Array(2 * n);
  for (let p = 0; p < n; p++) {
    const from = cells <= n ? Math.floor(((p + 0.5) * cells) / n) : Math.floor((p * cells) / n);
    out[2 * p] = a + from;
    out[2 * p + 1] = a + (cells <= n ? from + 1 : Math.max(from + 1, Math.ceil(((p + 1) * cells) / n)));
  }
  return out;
}

// pooled returns the largest rank under each pixel, for a part of the matrix.
function pooled(m, part, width, height) {
  const rank = ranks(m), zero = zeroCode(m), across = ranges(part.c0, part.c1, width), down = ranges(part.r0, part.r1, height);
  const line = new Uint16Array(width), out = new Uint16Array(width * height);
  let at = -1; // the row of cells in line
  const read = (i) => {
    if (at === i) return;
    at = i;
    const row = i * m.cols, seen = m.seen ? m.seen[i] : m.cols;
    for (let x = 0; x < width; x++) {
      let most = 0;
      for (let j = across[2 * x]; j < across[2 * x + 1]; j++) {
        const code = m.codes[row + j], r = j >= seen && code === zero ? 0 : rank[code];
        if (r > most) most = r;
      }
      line[x] = most;
    }
  };
  for (let y = 0; y < height; y++) {
    const to = out.subarray(y * width, (y + 1) * width);
    for (let i = down[2 * y]; i < down[2 * y + 1]; i++) {
      read(i);
      for (let x = 0; x < width; x++) if (line[x] > to[x]) to[x] = line[x];
    }
  }
  return out;
}

// picture returns a part of a matrix as ImageData of width × height pixels. Masked cells have stripes every hatch
// pixels.
export function picture(m, scale, part, width, height, hatch = 0) {
  width = Math.max(1, Math.round(width));
  height = Math.max(1, Math.round(height));
  const data = new ImageData(width, height), out = new Uint32Array(data.data.buffer);
  if (part.r1 <= part.r0 || part.c1 <= part.c0) return data;
  const found = pooled(m, part, width, height), colours = pixels(m, scale);
  for (let p = 0; p < out.length; p++) out[p] = colours[found[p]];
  if (hatch && m.seen) {
    const stripe = new Uint32Array(1), thick = Math.max(1, Math.round(hatch / 5));
    new Uint8ClampedArray(stripe.buffer).set([...maskRGB()[1], 255]);
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++) if (found[y * width + x] === 0 && (x + y) % hatch < thick) out[y * width + x] = stripe[0];
  }
  return data;
}

// show puts a picture on a canvas and sets the size of the canvas. willReadFrequently keeps the canvas in main memory:
// with hundreds of canvases, the page would otherwise wait for the GPU at each.
export function show(canvas, data) {
  if (canvas.width !== data.width) canvas.width = data.width; // setting it clears the canvas
  if (canvas.height !== data.height) canvas.height = data.height;
  canvas.getContext("2d", { willReadFrequently: true }).putImageData(data, 0, 0);
  return canvas;
}

// whole returns the whole matrix as a part.
export const whole = (m) => ({ r0: 0, r1: m.rows, c0: 0, c1: m.cols });
