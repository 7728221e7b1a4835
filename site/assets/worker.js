// The worker of a lesson: it runs the compiled Go of site/lesson. The page sends {id, call, args}; the answers are
// {id, frame} any number of times, then {id, result, done: true} or {id, error, done: true}. The call "cancel" ends
// the call whose id is its argument. {ready: true} says that Go runs, {failed: text} that it cannot, {slow: text} that
// it runs without vectors, {loaded, size} how much of it is loaded, in bytes. {ping: true} is answered by {alive: true}. {files: [path, file]…} are those of a model.
'use strict';

const figures = self.name === 'lesson'; // the program without models uses no vectors

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
  else if (m?.files) self.attnFiles = new Map(m.files);
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
  if (self[name] === undefined) throw new Error(`${script} is missing or damaged`);
}

/**
 * The bytes of a file, which is decompressed while it arrives. The first byte says whether it is compressed: some servers
 * declare files in .gz as an encoding, and then the browser has decompressed it.
 */
async function load(name, progress = () => {}) {
  let response, problem = `${name}: the file is damaged or cut short`;
  try {
    response = await fetch(name);
  } catch {
    throw new Error(`${name} could not be downloaded`);
  }
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`.trim());
  const reader = response.body.getReader();
  // A size counts bytes as they are sent, which the page does not see if the browser decompresses them.
  const size = response.headers.get('content-encoding') ? 0 : Number(response.headers.get('content-length'));
  let loaded = 0;
  const read = async () => {
    const part = await reader.read().catch(() => { throw new Error(problem = `the download of ${name} was interrupted`); });
    if (!part.done) progress(loaded += part.value.length, size);
    return part;
  };
  const first = await read();
  let content = new ReadableStream({
    start: (c) => (first.done ? c.close() : c.enqueue(first.value)),
    pull: async (c) => {
      const { done, value } = await read();
      if (done) c.close();
      else c.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  if (first.value?.[0] === 0x1f) {
    if (typeof DecompressionStream !== 'function') throw new Error('this browser cannot decompress programs: it has no DecompressionStream');
    content = content.pipeThrough(new DecompressionStream('gzip'));
  }
  try {
    const bytes = new Uint8Array(await new Response(content).arrayBuffer());
    if (String.fromCharCode(...bytes.subarray(0, 4)) === '\0asm') return bytes;
  } catch (error) {
    if (error instanceof RangeError) throw error;
  }
  throw new Error(problem);
}

// Without vectors, the program runs portable Go.
const portable = { imports: { attn: new Proxy({}, { get: () => () => 0 }) }, attach: () => {} };

/** The vector kernels, or portable if there are none. */
async function vectors() {
  try {
    include('kernels.js', 'attnKernels');
    const bytes = await load('kernels.wasm.gz');
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
  const name = `${self.name}.wasm.gz`, loading = load(name, (loaded, size) => self.postMessage({ loaded, size })); // while the scripts load
  loading.catch(() => {}); // a script may fail first
  if (self.name === 'model') include('files.js', 'attnFiles');
  include('wasm_exec.js', 'Go');
  const go = new Go(), [program, kernels] = await Promise.all([loading, figures ? portable : vectors()]);
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
