// The page of attn follow: it asks once a second how the run stands, and shows what it is
// told. Text enters through textContent, the picture as a parsed SVG without scripts.

const $ = (id) => document.getElementById(id);
let drawn = '';

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

function chart(svg) {
  if (svg === drawn) return;
  drawn = svg;
  $('chart').replaceChildren();
  if (!svg) return;
  const picture = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  $('chart').append(document.importNode(picture, true));
}

async function ask() {
  const width = Math.min(1600, Math.max(300, Math.floor($('chart').clientWidth)));
  let pause = 1000;
  try {
    const answer = await fetch(`api/training?width=${width}`);
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    const { name, run } = told;
    $('name').textContent = name;
    document.title = `${name}: ${run.status}`;
    status(run.status, run.over ? '' : run.status.startsWith('nothing') ? 'lost' : 'live');
    facts(run.facts);
    chart(run.chart);
    if (run.over) pause = 5000; // it may be resumed
  } catch (error) {
    status(error instanceof TypeError ? 'attn follow has ended' : error.message, 'lost');
    pause = 5000;
  }
  setTimeout(ask, document.hidden ? 5000 : pause);
}

addEventListener('resize', () => { drawn = ''; });
ask();
