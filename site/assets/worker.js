// The worker of a lesson: it runs the compiled Go of site/lesson. The page sends {id, call, args}; the answers are
// {id, frame} any number of times, then {id, result, done: true} or {id, error, done: true}. The call "cancel" ends
// the call whose id is its argument. {ready: true} says that Go runs, {failed: text} that it cannot, {slow: text} that
// it runs without vectors. {ping: true} is answered by {alive: true}.
'use strict';

const translator = self.name === 'translator'; // the program with models, which uses vectors

const waiting = []; // calls that arrived before Go was ready
let started = false;

/** Calls Go. What is no call is refused here: Go cannot read it. */
function call(m) {
  const answer = (error) => self.postMessage({ id: m?.id ?? null, error, done: true });
  if (!Number.isSafeInteger(m?.id) || typeof m.call !== 'string') return answer('a call needs a whole number as id, and a name');
  let args;
  try {
    args = JSON.stringify(m.args ?? null);
  } catch {
    return answer('the arguments of a call must be JSON');
  }
  self.attnCall(m.id, m.call, args);
}

self.attnAnswer = (text) => self.postMessage(JSON.parse(text));
self.attnReady = () => {
  started = true;
  self.postMessage({ ready: true });
  waiting.splice(0).forEach(call);
};
self.onmessage = ({ data: m }) => {
  if (m?.ping) self.postMessage({ alive: true });
  else if (started) call(m);
  else waiting.push(m);
};

/** Runs a script, which defines a function. */
function include(script, name) {
  try {
    importScripts(script);
  } catch {
    // It is missing, or is no script.
  }
  if (typeof self[name] !== 'function') throw new Error(`${script} is missing or damaged`);
}

/** The bytes of a compressed file. */
async function load(name) {
  let response, bytes;
  try {
    response = await fetch(name);
    bytes = response.ok && new Uint8Array(await response.arrayBuffer());
  } catch {
    throw new Error(response ? `the download of ${name} was interrupted` : `${name} could not be downloaded`);
  }
  if (!bytes) throw new Error(`${name}: ${response.status} ${response.statusText}`.trim());
  try {
    return attnDecompress(bytes);
  } catch (error) {
    throw error instanceof RangeError ? error : new Error(`${name}: ${error.message}`);
  }
}

// Without vectors, the program runs portable Go.
const portable = { imports: { attn: new Proxy({}, { get: () => () => 0 }) }, attach: () => {} };

/** The vector kernels, or portable if there are none. */
async function vectors() {
  try {
    include('kernels.js', 'attnKernels');
    const bytes = await load('kernels.wasm.lzma');
    if (!WebAssembly.validate(bytes)) throw new Error('this browser has no vectors for WebAssembly');
    return await attnKernels(bytes);
  } catch (error) {
    self.postMessage({ slow: error.message });
    return portable;
  }
}

/** Runs the program, which does not end. */
async function start() {
  if (typeof WebAssembly !== 'object') throw new Error('this browser has no WebAssembly');
  include('wasm_exec.js', 'Go');
  include('lzma.js', 'attnDecompress');
  const go = new Go(), name = `${self.name}.wasm.lzma`;
  const [program, kernels] = await Promise.all([load(name), translator ? vectors() : portable]);
  Object.assign(go.importObject, kernels.imports);
  let instance;
  try {
    ({ instance } = await WebAssembly.instantiate(program, go.importObject));
  } catch (error) {
    throw error instanceof RangeError ? error : new Error(`${name} does not fit this browser, or the other files of the site`);
  }
  await kernels.attach(instance.exports.mem);
  await go.run(instance);
  throw new Error('it has ended; the memory of this tab may be full');
}

start().catch((error) => self.postMessage({ failed: error instanceof RangeError ? 'there is not enough memory' : String(error.message ?? error) }));
