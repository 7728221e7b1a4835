// Requests to the server. An exported page reads the answers from its own data instead.

import { lens } from "./state.js";

const held = document.getElementById("frozen");
// frozen is the data of an exported page: answers by address, in base64.
export const frozen = held && data(held.textContent);

function data(text) {
  try {
    const parsed = JSON.parse(text);
    if (parsed.answers) return parsed;
  } catch {
    // the file is cut short, or was changed
  }
  return { address: "", damaged: true };
}

const damaged = () => new Refused(0, frozen ? "The data of this exported page are damaged: export it again." : "The server's answer is damaged.");

const answers = new Map(); // promises of bytes or records by address, least recently used first
const most = 96 << 20; // bytes in answers
let bytes = 0;

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, options) {
  if (frozen) {
    if (frozen.damaged) throw damaged();
    const text = frozen.answers[path];
    if (text === undefined) throw new Refused(0, "This exported page does not contain these data.");
    return intact(() => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused(0, "The server does not answer; attn view may have ended.");
  }
  if (!response.ok) {
    const message = await response.json().then((body) => body.error).catch(() => "");
    throw new Refused(response.status, message || "The server answered with status " + response.status + ".");
  }
  try {
    return new Uint8Array(await response.arrayBuffer());
  } catch {
    throw new Refused(0, "The server's answer is cut short; attn view may have ended.");
  }
}

// kept returns the cached answer under a name, or calls make for it: the page draws the same data many times.
function kept(name, make) {
  let answer = answers.get(name);
  answers.delete(name);
  if (!answer) {
    answer = make();
    answer.then((body) => trim(answer, body), () => answers.delete(name));
  }
  answers.set(name, answer);
  return answer;
}

// get returns the bytes at an address. If the server has dropped the records of typed texts from its cache, get
// requests them again first.
export async function get(path, ...records) {
  const make = () => request(path), typed = records.filter((record) => record?.asked);
  try {
    return await kept(path, make);
  } catch (problem) {
    if (problem.status !== 410 || !typed.length) throw problem;
    await Promise.all(typed.map(revive));
    return kept(path, make);
  }
}

const revived = new Map(); // pending requests by the id of a record

function revive(record) {
  if (!revived.has(record.id)) revived.set(record.id, ask(...record.asked).finally(() => revived.delete(record.id)));
  return revived.get(record.id);
}

// trim counts the bytes of an answer and drops the least recently used answers.
function trim(answer, body) {
  answer.size = body.length;
  bytes += body.length;
  for (const [path, old] of answers) {
    if (bytes <= most || old === answer) break;
    bytes -= old.size ?? 0;
    answers.delete(path);
  }
}

// intact returns what read makes of an answer. What is not an answer of attn view, such as the page of a proxy, is refused.
function intact(read) {
  try {
    return read();
  } catch {
    throw damaged();
  }
}

const parse = (bytes) => intact(() => JSON.parse(new TextDecoder().decode(bytes)));

export const startPath = "api/start";
export const start = async () => parse(await get(startPath));

// recordPath returns the key of the answer for two texts; only exported pages use it as an address.
export const recordPath = (source, target, model) => "record:" + JSON.stringify([source, target, model]);

// fetchRecord requests the record of a model for two texts.
export function fetchRecord(source, target, model) {
  const path = recordPath(source, target, model);
  if (frozen) return get(path).then(parse);
  return kept(path, async () => {
    const body = await ask(source, target, model);
    return Object.assign(parse(body), { asked: [source, target, model], length: body.length });
  });
}

const ask = (source, target, model) => request("api/record", { method: "POST", headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ model, source, target }) });

export const thumbsPath = (record, layer, through = lens(), summaries = false) => `api/thumbs?record=${record.id}&layer=${layer}${summaries ? "&summaries=1" : ""}${through}`;
export const headPath = (record, layer, head, through = lens()) => `api/head?record=${record.id}&layer=${layer}&head=${head}${through}`;
export const measuresPath = (record, layer, through = lens(), summary = "") => `api/measures?record=${record.id}&layer=${layer}${summary && "&head=" + summary}${through}`;

// thumbs returns thumbnails of the heads of a layer, or of its summaries.
export async function thumbs(record, layer, summaries = false) {
  const bytes = await get(thumbsPath(record, layer, lens(), summaries), record);
  const list = [];
  for (let at = 0; at < bytes.length;) {
    const m = matrix(bytes, at);
    list.push(m);
    at = m.end;
  }
  return list;
}

export async function head(record, layer, head, part = "") {
  return matrix(await get(headPath(record, layer, head) + part, record), 0);
}

export const exactPath = (record, layer, head, through) => headPath(record, layer, head, through) + "&exact=1";

// exact returns the exact weights of a head, or null if the head is larger than the server sends at once.
export async function exact(record, layer, head, m, through) {
  if (m.rows * m.cols > 1 << 16 || m.blockQ * m.blockK > 1) return null;
  return matrix(await get(exactPath(record, layer, head, through), record), 0).values;
}

export const rowPath = (record, layer, head, i, through) => headPath(record, layer, head, through) + `&rows=${i}-${i + 1}&exact=1`;

// row returns the exact weights of one row.
export async function row(record, layer, head, i, through) {
  return matrix(await get(rowPath(record, layer, head, i, through), record), 0).values;
}

// filmAnswers returns the answers for all recorded steps of the training in base64, by address, or null if they take more
// than the given number of bytes.
export const filmAnswers = async (bytes, through) => parse(await request(`api/film?bytes=${bytes}${through}`));

export const checkPath = (record, layer) => `api/check?record=${record.id}&layer=${layer}`;

// check returns the errors in the weights of a layer, as text.
export const check = async (record, layer) => parse(await get(checkPath(record, layer), record));

export async function measures(record, layer) {
  return parse(await get(measuresPath(record, layer), record));
}

// factsPath returns the address of the measures of the layer of a head, or of a summary.
export const factsPath = (record, { layer, head }) => measuresPath(record, layer, lens(), typeof head === "number" ? "" : head);

// facts returns the measures of a head or a summary. It requests the measures of a single head, which takes the server
// much less time than a whole layer, unless the measures of the layer are cached.
export async function facts(record, place) {
  const path = factsPath(record, place);
  if (typeof place.head === "number" && (frozen || answers.has(path))) return parse(await get(path, record))[place.head];
  return parse(await get(measuresPath(record, place.layer, lens(), String(place.head)), record))[0];
}

// fetchOutput returns what the model makes of a record's text with changes { off, patch, mask }: lists of heads and
// tokens. Heads of patch have the weights of a second record.
export const fetchOutput = async (record, second, changes) => parse(await get(`api/output?record=${record.id}` +
  Object.entries(changes).map(([what, list]) => `&${what}=${list}`).join("") + (changes.patch ? "&other=" + second.id : ""), record, second));

// prune writes the model of a record without the heads of off, and returns what is to be said of it.
export const prune = async (record, off) => parse(await request(`api/prune?record=${record.id}&off=${off}`, { method: "POST", headers: { "Content-Type": "application/json" } }));

// fetchPredictions returns the tokens of a record's text, and what each layer predicts there.
export const fetchPredictions = async (record) => parse(await get(`api/predictions?record=${record.id}`, record));

// effects returns how the output changes without each head of a layer.
export const effects = async (record, layer) => parse(await get(`api/effects?record=${record.id}&layer=${layer}`, record));

export const neuronsPath = (record, layer, head) => `api/neurons?record=${record.id}&layer=${layer}&head=${head}`;

export const examplesPath = (record, layer, head) => `api/examples?record=${record.id}&layer=${layer}&head=${head}`;

// examples returns the examples of a head.
export const examples = async (record, layer, head) => parse(await get(examplesPath(record, layer, head), record));

// neurons returns the queries and keys of a head.
export async function neurons(record, layer, head) {
  const bytes = await get(neuronsPath(record, layer, head), record);
  const q = matrix(bytes, 0), k = matrix(bytes, q.end);
  return { q: q.values, k: k.values, size: q.cols };
}

// divergencePath returns the address of the divergence of all heads of a layer, or of one, from a head { layer, head }
// of the same record or another.
export const divergencePath = (record, layer, from, head, other = record, through = lens()) => `api/divergence?record=${record.id}&layer=${layer}` +
  (head === undefined ? "" : "&head=" + head) + `&from=${from.layer}.${from.head}` + (other === record ? "" : "&of=" + other.id) + through;

// divergence returns a list of divergences; null for heads with other tokens.
export async function divergence(record, layer, from, head, other) {
  return parse(await get(divergencePath(record, layer, from, head, other), record));
}

// matrix decodes a matrix as the server's appendWire encodes it.
const matrix = (bytes, at) => intact(() => {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at);
  const word = (i) => view.getUint32(4 * i, true);
  const m = { rows: word(1), cols: word(2), blockQ: word(3), blockK: word(4), lo: view.getFloat32(20, true), hi: view.getFloat32(24, true), signed: word(7) > 255 };
  const n = m.rows * m.cols;
  if ((word(7) & 255) === 4) {
    m.values = new Float32Array(n);
    for (let i = 0; i < n; i++) m.values[i] = view.getFloat32(32 + 4 * i, true);
    m.end = at + 32 + 4 * n;
  } else {
    m.codes = bytes.subarray(at + 32, at + 32 + n);
    m.end = at + 32 + Math.ceil(n / 4) * 4;
  }
  if (word(0) !== 0x316d6861 || m.end > bytes.length) throw new Error("not a matrix");
  return m;
});

// weight returns the weight of a cell, NaN if it is not finite.
export function weight(m, i, j) {
  const code = m.codes[i * m.cols + j];
  return code === 255 ? NaN : m.lo + (code / 254) * (m.hi - m.lo);
}
