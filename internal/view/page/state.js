// The state of the screen. All of it stands in the address behind #, so that a link restores the screen.

const defaults = {
  s: "", t: "", // texts that were typed; without s, the record r
  r: "0",
  s2: "", t2: "", r2: "1", // the other text of a comparison
  a: "", b: "", // layer and head of the two sides, or a summary in its place; "" is what fits the record, "=" is the same head as the other side's
  side: "a", // the one that the grid chooses for
  cmp: "", // "head", "text", "model"
  p: "0", p2: "1", // the model, and the other of a comparison
  v: "map", // "lines", "text", "neurons"
  tok: "", // the chosen token: q5 is a query, k5 a key
  n: "40", // lines
  hs: "", // further heads of the layer whose lines are drawn: 3-5-11
  c: "own", // what the darkest shade means: "own" largest, "one", "log"
  x: "", // special tokens: "hide", "renorm"
  vw: "", // "1": value-weighted
  w: "", // "1": pieces of words are merged
  z: "", // zoom: rows from-to, columns from-to
  g: "", go: "", gz: "", // the overview: measure that colours heads, their order by it, their size
  o: "", // order of the table: column, and - if falling
  m: "", // "1": the table is open
  theme: "", // "light", "dark"
};

const choices = { cmp: ["", "head", "text", "model"], v: ["map", "lines", "text", "neurons"], c: ["own", "one", "log"], x: ["", "hide", "renorm"],
  w: ["", "1"], vw: ["", "1"], m: ["", "1"], go: ["", "down", "up"], gz: ["", "1", "2", "3"], side: ["a", "b"], theme: ["", "light", "dark"] };
const shapes = { a: /^(\d+\.(\d+|mean|all|rollout))?$/, b: /^(=|\d+\.(\d+|mean|all|rollout))?$/, hs: /^(\d+(-\d+)*)?$/, p: /^\d$/, p2: /^\d$/, tok: /^([qk]\d+)?$/, n: /^\d{1,3}$/, r: /^\d+$/, r2: /^\d+$/,
  g: /^[a-z]*\d*$/, z: /^(\d+-\d+,\d+-\d+)?$/, o: /^([a-z]+\d*-?)?$/ };

export const state = { ...defaults };
const listeners = [];

// readAddress takes the state from the address; what makes no sense there is left at its default.
function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const [key, value] of Object.entries(defaults)) {
    const v = given.get(key);
    const fits = v !== null && (!choices[key] || choices[key].includes(v)) && (!shapes[key] || shapes[key].test(v));
    state[key] = fits ? v : value;
  }
}

export function address() {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(defaults)) if (state[key] !== value) out.set(key, state[key]);
  return out.toString();
}

export function subscribe(listener) {
  listeners.push(listener);
}

// change sets parts of the state and tells everybody. What one would want to come back to with the browser's button
// gets an entry of its own in the history.
export function change(patch) {
  const changed = Object.keys(patch).filter((key) => state[key] !== patch[key]);
  if (changed.length === 0) return;
  Object.assign(state, patch);
  const big = changed.some((key) => ["a", "b", "s", "t", "s2", "t2", "r", "r2", "p", "p2", "cmp", "v"].includes(key));
  const hash = "#" + address();
  try {
    if (big) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch {
    // The page inside another, or from a disk, may have no history: the state is here all the same. To set the location
    // instead would load the other page into its own frame.
  }
  for (const listener of listeners) listener(changed);
}

// begin reads the first state, and every one that the browser's buttons or an edited address bring.
export function begin(first) {
  readAddress(location.hash.length > 1 ? location.hash : first);
  window.addEventListener("popstate", () => {
    if (location.hash === "#panels") return; // the link for keyboards
    readAddress(location.hash);
    for (const listener of listeners) listener(Object.keys(defaults));
  });
}

let valued = false; // whether the record has norms of values
let followed = null; // the place of side a's head in the record of side b
let first = { a: { layer: 0, head: 0 }, b: { layer: 0, head: 1 } }; // where nobody has chosen

// settle says which heads a record begins with: the last layer of cross attention if there is one, and its first heads.
export function settle(record) {
  valued = record.layers.some((l) => l.values);
  const cross = record.layers.findLastIndex((l) => l.kind === "cross"), layer = Math.max(0, cross), heads = record.layers[layer]?.heads ?? 1;
  first = { a: { layer, head: 0 }, b: heads > 1 ? { layer, head: 1 } : { layer: (layer + 1) % Math.max(1, record.layers.length), head: 0 } };
}

// follow says where side b finds the head of side a.
export function follow(place) {
  followed = place;
}

// place returns the layer and the head of a side.
export function place(side) {
  if (side === "b" && state.b === "=") return followed ?? { layer: -1, head: -1 };
  if (!state[side]) return first[side];
  const [layer, head] = state[side].split(".");
  return { layer: Number(layer), head: /^\d+$/.test(head) ? Number(head) : head };
}

// lens returns the part of an address that says how the weights are seen.
export function lens(s = state) {
  return (s.x ? "&special=" + s.x : "") + (s.w ? "&words=1" : "") + (s.vw && valued ? "&values=1" : "");
}
