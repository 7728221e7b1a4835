// The colours of weights, as package viz has them, for the page of attn view and for the site. Lightness alone gives
// the order, so the colours work with any colour vision and in grey.

// decode reads colours in base64, three bytes each: 256 from 0 to 1, and, if signed, 512 from −1 to 1 with 0 twice. It
// returns functions of a theme, "light" or "dark", and a place.
export function decode(given) {
  const read = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Array.from({ length: bytes.length / 3 }, (_, i) => [...bytes.subarray(3 * i, 3 * i + 3)]);
  };
  const ramps = {}, signed = {}, clamp = (x) => Math.max(0, Math.min(1, x));
  for (const theme of ["light", "dark"]) {
    ramps[theme] = read(given[theme]);
    const both = read(given[theme + "Signed"]);
    signed[theme] = [both.slice(0, 256).reverse(), both.slice(256)];
  }
  return {
    weight: (theme, t) => ramps[theme][Math.round(255 * clamp(t))],
    difference: (theme, t) => signed[theme][t < 0 ? 0 : 1][Math.round(255 * clamp(Math.abs(t)))],
  };
}

export const broken = { light: [214, 60, 110], dark: [255, 92, 138] }; // for values that are not finite: a hue outside the colour map
export const mask = { light: [[240, 241, 244], [178, 183, 194]], dark: [[32, 35, 44], [88, 95, 110]] }; // background and stripes

export const css = (colour) => `rgb(${colour.join(",")})`;

// inkOn returns a colour for text that can be read on a colour.
export function inkOn(colour) {
  const [r, g, b] = colour.map((x) => (x / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.26 ? "#10131a" : "#ffffff";
}
