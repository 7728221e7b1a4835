// The page of attn follow: it requests the state of the run once a second and shows it. Text
// enters through textContent, pictures as parsed SVG, whose scripts do not run.

const $ = (id) => document.getElementById(id);
const drawn = {}; // SVG texts by the ids of their elements
let strips = [], at = null; // strips with the values of a step, and the step on display

function status(text, kind) {
  $('status').textContent = text;
  $('status').className = kind;
}

function facts(list) {
  $('facts').replaceChildren(...list.map(({ name, value }) => {
    const box = document.createElement('div');
    for (const [tag, text] of [['dt', name], ['dd', value]]) {
      const e = document.createElement(tag);
      e.textContent = text;
      box.append(e);
    }
    return box;
  }));
}

// picture inserts a picture and reports whether it has changed.
function picture(id, svg) {
  if (svg === drawn[id]) return false;
  drawn[id] = svg;
  $(id).replaceChildren();
  if (!svg) return true;
  const root = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  $(id).append(document.importNode(root, true));
  return true;
}

// chart draws the curves. tell shows the titles of strips instead of the browser, which shows
// them late and hides them when the next picture arrives.
function chart(svg) {
  if (!picture('chart', svg)) return;
  strips = [...$('chart').querySelectorAll('.strips path')];
  for (const s of strips) {
    const title = s.querySelector('title');
    s.dataset.text = title.textContent;
    title.remove();
  }
  tell(at);
}

// tell shows the values of a step in all charts; null hides them.
function tell(x) {
  const found = x === null ? [] : strips.filter((s) => s.dataset.x === x);
  for (const s of strips) s.classList.toggle('on', found.includes(s));
  const box = $('told');
  box.hidden = !found.length;
  if (!found.length) return;
  at = x;
  const lines = found.flatMap((s) => s.dataset.text.replace(/^[^:]*: /, '').split(', '));
  box.replaceChildren(...[`step ${Number(x).toLocaleString('en')}`, ...lines].map((text) => {
    const line = document.createElement('div');
    line.textContent = text;
    return line;
  }));
  const strip = found[0].getBoundingClientRect(), middle = strip.x + strip.width / 2, wide = box.offsetWidth;
  box.style.left = `${scrollX + (middle + 14 + wide > document.documentElement.clientWidth ? Math.max(0, middle - 14 - wide) : middle + 14)}px`;
  box.style.top = `${scrollY + strip.y + 8}px`;
}

function hide() {
  at = null;
  tell(null);
}

function sample({ source, written, heads, title }) {
  $('sample').hidden = !source;
  $('source').textContent = source;
  $('written').textContent = written;
  $('title').textContent = heads ? title : '';
  picture('heads', heads);
}

// The recording of the run: its frames are requested when they are shown. A frame is known by step and loss, because
// another run may replace this one.
let film = { steps: [] }, shown = -1, playing = 0;
const frames = new Map();
const calm = matchMedia('(prefers-reduced-motion: reduce)');

// request returns the answer of the server, or throws an error with a sentence for the screen.
async function request(path) {
  let answer = null, told = null;
  try {
    answer = await fetch(path);
    told = await answer.json();
  } catch {
    if (!answer) throw new Error('attn follow has ended');
  }
  if (answer.ok && told) return told;
  throw new Error(told?.error ?? (answer.ok ? 'the answer of attn follow is damaged' : `the server answered with status ${answer.status}`));
}

const nameOf = (i) => `step ${film.steps[i].toLocaleString('en')}` + (film.losses[i] === null ? '' : `, loss ${film.losses[i].toFixed(4)}`);

function fetchFrame(i) {
  const key = `${film.text} ${film.steps[i]} ${film.losses[i]}`;
  if (!frames.has(key)) {
    frames.set(key, request(`api/frame?step=${film.steps[i]}`));
    frames.get(key).catch(() => frames.delete(key));
  }
  return frames.get(key);
}

// show draws a frame, unless another one is wanted when it arrives.
async function show(i) {
  shown = i;
  $('step').value = i;
  $('step').setAttribute('aria-valuetext', nameOf(i));
  $('now').textContent = nameOf(i);
  try {
    const { picture: svg, text } = await fetchFrame(i);
    if (shown !== i) return;
    picture('frame', svg);
    $('largest').textContent = text;
  } catch (error) {
    if (shown !== i) return;
    picture('frame', '');
    $('largest').textContent = error.message;
  }
}

function pause() {
  playing++;
  $('play').textContent = 'Play';
}

async function play() {
  const mine = ++playing;
  $('play').textContent = 'Pause';
  for (let i = shown < film.steps.length - 1 ? shown : 0; i < film.steps.length; i++) {
    await Promise.all([show(i), new Promise((done) => setTimeout(done, calm.matches ? 1000 : 100))]);
    if (mine !== playing) return;
  }
  pause();
}

// recorded takes a new version of the recording; a slider at its end stays there.
function recorded(next) {
  const list = next.steps ?? [], end = shown < 0 || shown === film.steps.length - 1, before = film.steps[shown];
  $('film').hidden = !list.length && !next.error;
  $('filmed').textContent = next.error ?? next.text;
  for (const id of ['play', 'step', 'now']) $(id).hidden = !list.length;
  const same = JSON.stringify(film) === JSON.stringify(next);
  film = { ...next, steps: list };
  if (same || !list.length) return;
  $('film-title').textContent = next.title;
  $('step').max = list.length - 1;
  const at = list.findIndex((step) => step >= before);
  show(end || at < 0 ? list.length - 1 : at);
}

async function ask() {
  const width = Math.min(1600, Math.max(300, Math.floor($('chart').clientWidth)));
  let pause = 1000;
  try {
    const { name, run } = await request(`api/training?width=${width}`);
    $('name').textContent = name;
    document.title = `${name}: ${run.status}`;
    status(run.status, run.over ? '' : run.status.startsWith('nothing') ? 'lost' : 'live');
    facts(run.facts);
    chart(run.chart);
    $('note').textContent = run.chart ? run.note : '';
    recorded(run.film ?? {});
    sample(run.sample ?? {});
    if (run.over) pause = 5000; // it may be resumed
  } catch (error) {
    status(error.message, 'lost');
    pause = 5000;
  }
  setTimeout(ask, document.hidden ? 5000 : pause);
}

$('chart').addEventListener('pointermove', (event) => {
  const x = event.target.dataset.x;
  if (x) tell(x);
  else hide();
});
$('chart').addEventListener('pointerleave', hide);
$('chart').addEventListener('blur', hide);
$('chart').addEventListener('keydown', (event) => {
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === 'Escape') hide();
  if (!move || !strips.length) return;
  event.preventDefault();
  const steps = [...new Set(strips.map((s) => s.dataset.x))].sort((a, b) => a - b);
  const from = steps.indexOf(at);
  $('told').setAttribute('role', 'status');
  tell(steps[from < 0 ? steps.length - 1 : Math.min(steps.length - 1, Math.max(0, from + move))]);
});
$('step').addEventListener('input', () => {
  pause();
  show(Number($('step').value));
});
$('play').addEventListener('click', () => ($('play').textContent === 'Play' ? play() : pause()));
addEventListener('resize', () => { drawn.chart = null; });
ask();
