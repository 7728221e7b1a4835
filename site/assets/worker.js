// The worker of a lesson: it runs the compiled Go of site/lesson. The page sends {id, call, args}; the answers are
// {id, frame} any number of times, then {id, result, done: true} or {id, error, done: true}. The call "cancel" ends
// the call whose id is its argument. {loaded, total} tells how many bytes have arrived, {ready: true} that Go runs.
'use strict';

importScripts('wasm_exec.js');

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

/** A stream that reports how many bytes have passed. */
function counted(total) {
  let loaded = 0;
  return new TransformStream({
    transform(chunk, out) {
      loaded += chunk.byteLength;
      self.postMessage({ loaded, total });
      out.enqueue(chunk);
    },
  });
}

/** The bytes of a file that was compressed by gzip. */
async function unzipped(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  const total = Number(response.headers.get('content-length')) || 0;
  const stream = response.body.pipeThrough(counted(total));
  // A server that announces the compression has had it undone by the browser.
  const sent = response.headers.get('content-encoding') === 'gzip';
  return new Response(sent ? stream : stream.pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

async function start() {
  const go = new Go();
  const { instance } = await WebAssembly.instantiate(await unzipped('lesson.wasm.gz'), go.importObject);
  await go.run(instance);
  throw new Error('the program has ended');
}

start().catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
