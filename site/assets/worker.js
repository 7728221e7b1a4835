// The worker of a lesson: it runs the compiled Go of site/lesson. The page sends {id, call, args}; the answers are
// {id, frame} any number of times, then {id, result, done: true} or {id, error, done: true}. The call "cancel" ends
// the call whose id is its argument. {ready: true} says that Go runs, {failed: text} that it cannot.
'use strict';

const translator = self.name === 'translator'; // the program with models, which uses vectors

importScripts('wasm_exec.js', 'lzma.js');
if (translator) importScripts('kernels.js');

const waiting = []; // calls that arrived before Go was ready
let started = false;

self.attnAnswer = (text) => self.postMessage(JSON.parse(text));
self.attnReady = () => {
  started = true;
  self.postMessage({ ready: true });
  for (const m of waiting.splice(0)) self.attnCall(m.id, m.call, JSON.stringify(m.args ?? null));
};
self.onmessage = ({ data: m }) => {
  if (started) self.attnCall(m.id, m.call, JSON.stringify(m.args ?? null));
  else waiting.push(m);
};

/** The bytes of a compressed file. */
async function load(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return attnDecompress(new Uint8Array(await response.arrayBuffer()));
}

async function start() {
  const go = new Go();
  const loading = load(`${self.name}.wasm.lzma`);
  if (!translator) return run(go, await loading);
  const [program, vectors] = await Promise.all([loading, load('kernels.wasm.lzma')]);
  const kernels = await attnKernels(vectors);
  Object.assign(go.importObject, kernels.imports);
  return run(go, program, kernels);
}

/** Runs the program, which does not end. */
async function run(go, program, kernels) {
  const { instance } = await WebAssembly.instantiate(program, go.importObject);
  await kernels?.attach(instance.exports.mem);
  await go.run(instance);
  throw new Error('the program has ended');
}

start().catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
