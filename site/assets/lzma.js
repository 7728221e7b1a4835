// Decompresses a file of LZMA (https://www.7-zip.org/sdk.html): browsers decompress gzip only, whose files are a third
// larger. A bit is decoded with the probability of a 0, which then moves a little towards the bit. The CRC-32 of the
// content follows the file.
'use strict';

/** Probabilities of a 0, in 2,048ths, which begin as ½. */
const halves = (n) => new Uint16Array(n).fill(1024);

/** Decodes bits of a Uint8Array from a position on. Numbers that fill 32 bits stay in an array, which keeps them fast. */
class BitDecoder {
  constructor(input, at) {
    this.input = input;
    this.at = at + 5; // the first byte is 0
    this.state = Uint32Array.of(0xffffffff, new DataView(input.buffer, input.byteOffset).getUint32(at + 1));
  }

  shift() {
    const s = this.state;
    if (s[0] >= 1 << 24) return;
    s[0] <<= 8;
    s[1] = (s[1] << 8) | this.input[this.at++];
  }

  bit(chances, i) {
    const s = this.state, chance = chances[i], bound = (s[0] >>> 11) * chance;
    if (s[1] < bound) {
      s[0] = bound;
      chances[i] += (2048 - chance) >> 5;
      this.shift();
      return 0;
    }
    s[0] -= bound;
    s[1] -= bound;
    chances[i] -= chance >> 5;
    this.shift();
    return 1;
  }

  /** A number whose bits all have the chance ½. */
  even(bits) {
    const s = this.state;
    let number = 0;
    for (; bits > 0; bits--) {
      s[0] >>>= 1;
      const bit = s[1] >= s[0] ? 1 : 0;
      if (bit) s[1] -= s[0];
      number = number * 2 + bit;
      this.shift();
    }
    return number;
  }

  /** A number, highest bit first; the chances of a bit depend on those before it. */
  tree(chances, from, bits) {
    let node = 1;
    for (let i = 0; i < bits; i++) node = (node << 1) | this.bit(chances, from + node);
    return node - (1 << bits);
  }

  /** A number, lowest bit first. */
  reversed(chances, from, bits) {
    let node = 1, number = 0;
    for (let i = 0; i < bits; i++) {
      const bit = this.bit(chances, from + node);
      node = (node << 1) | bit;
      number |= bit << i;
    }
    return number;
  }
}

/** Decodes the lengths of matches, from 2 on. */
class LengthDecoder {
  constructor() {
    [this.choice, this.short, this.middle, this.long] = [halves(2), halves(128), halves(128), halves(256)];
  }

  next(decoder, position) {
    if (!decoder.bit(this.choice, 0)) return 2 + decoder.tree(this.short, position * 8, 3);
    if (!decoder.bit(this.choice, 1)) return 10 + decoder.tree(this.middle, position * 8, 3);
    return 18 + decoder.tree(this.long, 0, 8);
  }
}

/** The CRC-32 of bytes, as in gzip. */
function checksum(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let sum = -1;
  for (let i = 0; i < bytes.length; i++) sum = table[(sum ^ bytes[i]) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** The content of a .lzma file with a known size and a checksum, both as Uint8Array. */
function attnDecompress(input) {
  const damaged = new Error('the file is damaged or cut short'), most = 1 << 28, end = input.length - 4;
  if (end < 18 || input[0] >= 225) throw damaged;
  const header = new DataView(input.buffer, input.byteOffset);
  const lc = input[0] % 9, lp = Math.floor(input[0] / 9) % 5, pb = Math.floor(input[0] / 45);
  const lpMask = (1 << lp) - 1, pbMask = (1 << pb) - 1;
  const size = header.getUint32(5, true);
  if (size === 0 || size > most || header.getUint32(9, true) !== 0) throw damaged; // or a size that is not known
  const out = new Uint8Array(size), decoder = new BitDecoder(input, 13);

  const literals = halves(0x300 * (lpMask + 1) << lc);
  const match = halves(12 * 16), repeated = halves(12);
  const notLast = halves(12), notSecond = halves(12), fourth = halves(12);
  const longer = halves(12 * 16), slots = halves(4 * 64), special = halves(128), align = halves(16);
  const lengths = new LengthDecoder(), repeatedLengths = new LengthDecoder();
  let state = 0, last = 1, second = 1, third = 1, oldest = 1; // the last four distances

  for (let at = 0; at < size;) {
    if (decoder.at > end) throw damaged;
    const position = at & pbMask;
    if (!decoder.bit(match, state * 16 + position)) {
      const context = ((at & lpMask) << lc) + ((at ? out[at - 1] : 0) >> (8 - lc));
      let node = 1;
      if (state >= 7) {
        // After a match, the byte that would have continued it predicts bits until one differs.
        for (let expected = out[at - last]; node < 0x100;) {
          const predicted = (expected >> 7) & 1;
          expected <<= 1;
          const bit = decoder.bit(literals, context * 0x300 + ((1 + predicted) << 8) + node);
          node = (node << 1) | bit;
          if (bit !== predicted) break;
        }
      }
      while (node < 0x100) node = (node << 1) | decoder.bit(literals, context * 0x300 + node);
      out[at++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length;
    if (decoder.bit(repeated, state)) {
      if (!decoder.bit(notLast, state)) {
        if (!decoder.bit(longer, state * 16 + position)) length = 1;
      } else if (!decoder.bit(notSecond, state)) {
        [last, second] = [second, last];
      } else if (!decoder.bit(fourth, state)) {
        [last, second, third] = [third, last, second];
      } else {
        [last, second, third, oldest] = [oldest, last, second, third];
      }
      if (length === 1) state = state < 7 ? 9 : 11;
      else {
        length = repeatedLengths.next(decoder, position);
        state = state < 7 ? 8 : 11;
      }
    } else {
      [second, third, oldest] = [last, second, third];
      length = lengths.next(decoder, position);
      state = state < 7 ? 7 : 10;
      const slot = decoder.tree(slots, Math.min(length - 2, 3) * 64, 6);
      last = slot;
      if (slot >= 4) {
        const bits = (slot >> 1) - 1;
        last = (2 | (slot & 1)) * 2 ** bits;
        if (slot < 14) last += decoder.reversed(special, last - slot, bits);
        else last += decoder.even(bits - 4) * 16 + decoder.reversed(align, 0, 4);
      }
      last++;
    }
    if (last > at || length > size - at) throw damaged;
    for (const stop = at + length; at < stop; at++) out[at] = out[at - last];
  }
  if (decoder.at > end || checksum(out) !== header.getUint32(end, true)) throw damaged;
  return out;
}
