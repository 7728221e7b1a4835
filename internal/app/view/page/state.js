// The state of the screen. The address contains all of it after #, so that a link restores the screen.

const defaults = {
  s: "", t: "", // typed texts; if s is empty, record r is shown
  r: "0",
  f: "", // the recorded step of the training to show, instead of text or record
  s2: "", t2: "", r2: "1", // the second text of a comparison
  a: "", b: "", // layer.head or layer.summary of the two sides; "" is the default of the record, "=" in b is the head of side a
  side: "a", // the side that a click in the overview changes
  cmp: "", // "head", "text", "model"
  p: "0", p2: "1", // the model, and the second model of a comparison
  v: "map", // "lines", "text", "neurons"
  tok: "", // the selected token: q5 is a query, k5 a key
  n: "40", // number of lines
  hs: "", // additional heads of the layer in the lines view: 3-5-11
  c: "own", // the weight of the last colour: "own" is the largest, "one" is 1, "log" the largest on a logarithmic scale
  x: "", // special tokens: "hide", "renorm"
  vw: "", // "1": value-weighted
  w: "", // "1": the pieces of a word are merged
  z: "", // zoom: rows from-to, columns from-to
  g: "", go: "", gz: "", // overview: measure that colours the heads, order by it, size of the thumbnails
  o: "", // column that sorts the table, followed by - if descending
  m: "", // "1": the table is open
  l: "", // "1": the predictions of each layer are open
  off: "", // heads that are switched off: 0.3,2.5
  mask: "", // tokens that are masked: 2.3 is token 3 of the text whose tokens are the keys of layer 2
  patch: "", // heads that have their weights of the second text
  theme: "", // "light", "dark"
};

const choices = { cmp: ["", "head", "text", "model"], v: ["map", "lines", "text", "neurons"], c: ["own", "one", "log"], x: ["", "hide", "renorm"],
  w: ["", "1"], vw: ["", "1"], m: ["", "1"], l: ["", "1"], go: ["", "down", "up"], gz: ["", "1", "2", "3"], side: ["a", "b"], theme: ["", "light", "dark"] };
const shapes = { off: /^(\d+\.\d+(,\d+\.\d+)*)?$/, mask: /^(\d+\.\d+(,\d+\.\d+)*)?$/, patch: /^(\d+\.\d+(,\d+\.\d+)*)?$/, a: /^(\d+\.(\d+|mean|all|rollout))?$/, b: /^(=|\d+\.(\d+|mean|all|rollout))?$/, hs: /^(\d+(-\d+)*)?$/, p: /^\d$/, p2: /^\d$/, tok: /^([qk]\d+)?$/, n: /^\d{1,3}$/, r: /^\d+$/, f: /^\d{0,15}$/, r2: /^\d+$/,
  g: /^[a-z]*\d*$/, z: /^(\d+-\d+,\d+-\d+)?$/, o: /^([a-z]+\d*-?)?$/ };

export const state = { ...defaults };
const listeners = [];

// readAddress reads the state from the address. Missing and invalid values get their default.
function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const [key, value] of Object.entries(defaults)) {
    const v = given.get(key);
    const fits = v !== null && (!choices[key] || choices[key].includes(v)) && (!shapes[key] || shapes[key].test(v));
    state[key] = fits ? v : value;
  }
}

export function address(without = []) {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(defaults)) if (state[key] !== value && !without.includes(key)) out.set(key, state[key]);
  return out.toString();
}

// tell sends the state to the page around this one, so that it can keep what is chosen in its own address. Any page may
// frame this one, so texts are left out.
export function tell() {
  window.parent.postMessage({ attn: address(["s", "t", "s2", "t2", "theme"]) }, "*");
}

export function subscribe(listener) {
  listeners.push(listener);
}

// change sets parts of the state and calls the listeners. A change of heads, texts, models or view gets a new entry in
// the browser's history, so that its back button undoes it.
export function change(patch) {
  const changed = Object.keys(patch).filter((key) => state[key] !== patch[key]);
  if (changed.length === 0) return;
  Object.assign(state, patch);
  const big = changed.some((key) => ["a", "b", "s", "t", "s2", "t2", "r", "r2", "p", "p2", "cmp", "v", "off", "patch", "mask"].includes(key));
  const hash = "#" + address();
  try {
    if (big) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch {
    // A page in a frame or from a file may have no history. Setting location.hash instead would load the outer page
    // into the frame.
  }
  for (const listener of listeners) listener(changed);
}

// begin reads the first state, and reads it again when the user navigates or edits the address.
export function begin(first) {
  readAddress(location.hash.length > 1 ? location.hash : first);
  window.addEventListener("popstate", () => {
    if (location.hash === "#panels") return; // the skip link
    readAddress(location.hash);
    for (const listener of listeners) listener(Object.keys(defaults));
  });
}

let valued = false; // whether the record has norms of values
let followed = null; // layer and head, in the record of side b, of the head of side a
let first = { a: { layer: 0, head: 0 }, b: { layer: 0, head: 1 } }; // the default heads

// setDefaults sets the default heads for a record: the first two of the last cross-attention layer, if there is one.
export function setDefaults(record) {
  valued = record.layers.some((l) => l.values);
  const cross = record.layers.findLastIndex((l) => l.kind === "cross"), layer = Math.max(0, cross), heads = record.layers[layer]?.heads ?? 1;
  first = { a: { layer, head: 0 }, b: heads > 1 ? { layer, head: 1 } : { layer: (layer + 1) % Math.max(1, record.layers.length), head: 0 } };
}

// follow sets the layer and head that side b shows if its state is "=".
export function follow(place) {
  followed = place;
}

// headOn returns the layer and the head of a side.
export function headOn(side) {
  if (side === "b" && state.b === "=") return followed ?? { layer: -1, head: -1 };
  if (!state[side]) return first[side];
  const [layer, head] = state[side].split(".");
  return { layer: Number(layer), head: /^\d+$/.test(head) ? Number(head) : head };
}

// lens returns the part of a request address that selects special tokens, words and value-weighting.
export function lens(s = state) {
  return (s.x ? "&special=" + s.x : "") + (s.w ? "&words=1" : "") + (s.vw && valued ? "&values=1" : "");
}
