// The exercise at the end of a lesson: numbers are compared with the right answer, and with those of typical mistakes.

import { ask, byId, t } from "./page.js";

const swap = ([a, b]) => [b, a];
const steps = (sizes) => ask("shapes.steps", { batch: 1, heads: 2, queries: 3, keys: 3, width: 8, lengths: [], ones: false, seed: 1, ...sizes });
const arrayOf = (r, step, name) => r.arrays.find((a) => a.step === step && a.name === name);

/** The answers of each lesson: [what to say, numbers]. The first one is right. */
const answers = {
  async regression() {
    const x = [0, 1, 3], y = [2, 4, 10], at = 20; // the place x = 1
    const estimate = async (w, keys = x, values = y) => {
      const r = await ask("regression.estimate", { x: keys, y: values, w });
      return { out: r.out[at], weights: r.weights.slice(at * 3, at * 3 + 3) };
    };
    const right = await estimate(1), own = right.weights[1]; // the score of the key x = 1 is 0, whose exponential is 1
    const mixed = (weights) => weights.reduce((sum, w, j) => sum + w * y[j], 0) / weights.reduce((sum, w) => sum + w, 0);
    return [
      [t`Right: the nearest observation has the weight ${own.toFixed(2)}, and the others pull the mean towards them.`, [right.out]],
      [t`The factor ½ of the score is missing.`, [(await estimate(Math.SQRT2)).out]],
      [t`Keys and values are exchanged: the query is compared with places, and what is averaged are values.`, [(await estimate(1, y, x)).out]],
      [t`The weights are not divided by their sum: a softmax makes them sum to 1.`, [right.out / own]],
      [t`The distance is not squared.`, [mixed(x.map((v) => Math.exp(-Math.abs(v - 1) / 2)))]],
      [t`The sign of the score is wrong: the farthest observation has the most weight.`, [mixed(right.weights.map((w) => 1 / w))]],
      [t`All observations have the same weight. It should fall with their distance from the query.`, [(await estimate(0)).out]],
      [t`This is the value of the nearest observation alone. The others have weight, too.`, [y[1]]],
    ];
  },
  async scores() {
    const keys = [[1, 0], [1, 1], [2, 1]], query = [1, 1];
    const weights = async (name, valid, k = keys, q = query) => (await ask("scores.compare", { query: q, keys: k, valid, seed: 1 })).find((s) => s.name === name).weights;
    const all = await weights("scaled", 3), right = await weights("scaled", 2);
    return [
      [t`Right: the masked key has no part in the softmax, so the other two weights sum to 1.`, right],
      [t`The scale is forgotten: divide the scores by √E, here √2.`, await weights("dot product", 2)],
      [t`The mask is applied after the softmax: the weights no longer sum to 1. A masked score has to be −∞ inside the softmax.`, [all[0], all[1], 0]],
      [t`Nothing is masked: the third key is padding.`, all],
      [t`The masked score is 0 instead of −∞: the exponential of 0 is 1, so padding has a weight.`, await weights("scaled", 3, [keys[0], keys[1], [0, 0]])],
      [t`The scores are divided by E, not by √E.`, await weights("scaled", 2, keys, query.map((v) => v / Math.SQRT2))],
      [t`The scores are multiplied by √E instead of divided by it.`, await weights("dot product", 2, keys, query.map((v) => v * Math.SQRT2))],
      [t`Queries and keys are exchanged: the softmax runs over the queries, of which there is one. It has to run over the keys.`, [1, 1, 0]],
      [t`The wrong key is masked: a valid length of 2 hides what is after the first two keys.`, [0, right[0], right[1]]],
    ];
  },
  async reverse() {
    const shape = async (queries, keys) => arrayOf(await steps({ batch: 4, queries, keys, width: 32 }), "softmax", "weights").shape;
    const right = await shape(6, 9), out = arrayOf(await steps({ batch: 4, queries: 6, keys: 9, width: 32 }), "mix", "heads").shape;
    return [
      [t`Right: a row for each token to write, a column for each token read, in each head of each sequence.`, right],
      [t`Keys and queries are exchanged: the decoder asks, so its tokens are the rows.`, await shape(9, 6)],
      [t`This is self-attention of the decoder. In cross-attention the keys are the tokens that were read.`, await shape(6, 6)],
      [t`This is self-attention of the encoder. In cross-attention the queries are the tokens to write.`, await shape(9, 9)],
      [t`Sequences and heads are exchanged: [B H Lq Lk].`, [...swap(right.slice(0, 2)), ...right.slice(2)]],
      [t`The heads are not moved before the positions: [B H Lq Lk].`, [right[0], right[2], right[1], right[3]]],
      [t`This is the shape of the output of the heads. The weights have a number for each query and key.`, out],
    ];
  },
  async shapes() {
    const r = await steps({}), flat = arrayOf(r, "project", "q").data, heads = arrayOf(r, "order", "q").data; // [1 3 8], [1 2 3 4]
    const at = (head, position) => heads.slice((head * 3 + position) * 4, (head * 3 + position + 1) * 4).map((v) => flat.indexOf(v));
    const four = [0, 1, 2, 3];
    return [
      [t`Right: head 1 has the second half of each vector.`, at(1, 1)],
      [t`This is a reshape to [H L E] without a transpose: the “head” mixes positions. Split D first, then move the axes.`, four.map((e) => (1 * 3 + 1) * 4 + e)],
      [t`The heads are split along the wrong axis: D is read as E × H instead of H × E, so a head has every second element.`, four.map((e) => 8 + e * 2 + 1)],
      [t`The array is read as [D L] instead of [L D].`, four.map((e) => (4 + e) * 3 + 1)],
      [t`This is head 0 at position 1.`, at(0, 1)],
      [t`This is head 1 at position 0.`, at(1, 0)],
      [t`Heads and positions are counted from 0: this is the first head at the first position.`, at(0, 0)],
      [t`This is position 2. Positions are counted from 0.`, at(1, 2)],
    ];
  },
  dates() {
    const loss = 0.3, without = [0.52, 0.21, 0.33, 0.9];
    const first = (score) => [0, 1, 2, 3].sort((a, b) => score(without[a] - loss) - score(without[b] - loss)).slice(0, 2);
    const right = first((d) => d);
    return [
      [t`Right: without head 1 the loss even falls, so its importance is negative, and head 2 hardly matters.`, right],
      [t`The sign is wrong: these are the most important heads. Importance is the loss without the head minus the loss with all.`, first((d) => -d)],
      [t`The importance is not an absolute value: a head without which the loss falls is the first to go.`, first(Math.abs)],
      [t`The order is wrong: the least important head goes first.`, swap(right)],
      [t`These are the heads to keep.`, [0, 3]],
      [t`Heads are counted from 0.`, right.map((h) => h + 1)],
    ];
  },
  async masks() {
    const counts = async (mask, change = 0) => {
      const { hidden } = await ask("masks.build", { length: 6, causal: true, window: [2, 0], valid: null, documents: [2, 6], prefix: null, alibi: null, t5: false, random: false, seed: 1, ...mask });
      return Array.from({ length: 6 }, (_, i) => hidden.slice(i * 6, i * 6 + 6).filter((h) => !h).length + change);
    };
    const right = await counts({});
    return [
      [t`Right: a key is visible if the causal mask, the window and the documents all allow it.`, right],
      [t`The documents are forgotten: a query does not see keys of another document.`, await counts({ documents: null })],
      [t`The window is forgotten: a query sees at most 2 keys before its own.`, await counts({ window: null })],
      [t`The mask is not causal: a query does not see keys after its own.`, await counts({ causal: false, window: [2, 2] })],
      [t`The causal mask includes the query's own key: j ≤ i, not j < i.`, await counts({}, -1)],
      [t`The window is too small: 2 keys before its own, and its own.`, await counts({ window: [1, 0] })],
      [t`The causal mask is the wrong way round: queries and keys are exchanged.`, await counts({ causal: false, window: [0, 2] })],
    ];
  },
  minilm() {
    return [ // of the first sentence; a test computes these heads from its weights
      [t`Right: layer 1, head 8 gives the next token 0.57 of the weight, on average.`, [1, 8]],
      [t`This head attends to the previous token: the line is below the diagonal. Queries and keys are exchanged.`, [0, 2]],
      [t`Close: this head gives the next token 0.28 of the weight. Another one gives it twice as much.`, [2, 8]],
      [t`This is a sink: it attends to the first token, whatever the query is.`, [4, 5]],
      [t`This is the head of separators.`, [3, 11]],
      [t`Layer and head are exchanged: the layer comes first.`, [8, 1]],
      [t`Layers and heads are counted from 0.`, [2, 9]],
    ];
  },
  async linear() {
    const keys = [[1, 0], [0.6, 0.8]];
    const rule = async (change) => {
      const r = await ask("linear.rule", { queries: keys, keys, values: [4, 2], decay: [0, -Math.LN2], beta: [1, 0.5], ...change });
      return [...r.state, r.out[1]];
    };
    const right = await rule({}), whole = await rule({ decay: [0, 0] }), shrunk = await rule({ beta: [1, 0] }), first = await rule({ decay: [0, 0], beta: [1, 0] });
    return [
      [t`Right: the key reads 1.2 from the state that has shrunk, and half of the difference to 2 is added. Its query reads 1.6 afterwards.`, right],
      [t`What the key already reads from the state is not subtracted: the value is added, not put in its place.`, await rule({ values: [4, 1], beta: null })],
      [t`The state shrinks after the token is written. It has to shrink before.`, whole.map((x) => x / 2)],
      [t`The decay is forgotten.`, whole],
      [t`The key reads the state before it has shrunk.`, shrunk.map((x, i) => x + whole[i] - first[i])],
      [t`β multiplies the key. It is a share of the difference between the value and what the key reads.`, await rule({ keys: [keys[0], [0.3, 0.4]], beta: [1, 1] })],
      [t`β is forgotten: half of the difference is added.`, await rule({ beta: [1, 1] })],
      [t`The query reads before the token is written: a token reads its own value, too.`, [right[0], right[1], shrunk[2]]],
      [t`The output is divided by √E. Here it has no scale.`, [right[0], right[1], right[2] / Math.SQRT2]],
      [t`This is the state after the first token.`, first],
    ];
  },
  induction() {
    return [ // a test patches the heads of the trained model
      [t`Right: at position 3 the previous-token head writes that d came before, and the induction head copies the answer at the second d.`, [3, 8]],
      [t`These are the two places of d. What differs is written one position later: at the first d, the previous-token head returns the token before it, the same in A and B.`, [2, 8]],
      [t`The induction head attends to position 3. It copies the answer to the token in question, the second d.`, [3, 3]],
      [t`The two heads are exchanged: the first number is for the previous-token head.`, [8, 3]],
      ...[7, 8, 9].map((at) => [t`Around the second d, A and B have the same tokens. What differs is what the previous-token head writes after the first one.`, [at, 8]]),
      [t`The answer is at position 9, but it is predicted at the token before, the one in question.`, [3, 9]],
      [t`Positions are counted from 0.`, [4, 9]],
    ];
  },
};

const form = byId("exercise"), verdict = byId("verdict"), inputs = [...form.querySelectorAll("input")];
inputs.forEach((input, i) => input.setAttribute("aria-label", t`number ${i + 1} of ${inputs.length}`));

/** Reads a number as people write it, with a comma or a fraction. */
function read(text) {
  const [above, below = "1", ...more] = text.normalize("NFKC").trim().replace("−", "-").replace(",", ".").split("/");
  return above.trim() === "" || below.trim() === "" || more.length ? NaN : Number(above) / Number(below);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const got = inputs.map((input) => read(input.value));
  verdict.dataset.right = "";
  if (!got.every(Number.isFinite)) {
    verdict.textContent = t`Enter a number in each field, such as 0.25 or 1/4.`;
    inputs[got.findIndex((x) => !Number.isFinite(x))].focus();
    return;
  }
  const list = await answers[document.body.dataset.lesson]();
  const near = (want, i) => Math.abs(got[i] - want) < 0.0051 + 1e-6 * Math.abs(want);
  const found = list.findIndex(([, numbers]) => numbers.every(near));
  const right = list[0][1].filter(near).length;
  verdict.dataset.right = found === 0 ? "yes" : "no";
  verdict.textContent = found >= 0 ? list[found][0] : inputs.length > 1 ? t`Not right, and none of the usual mistakes: ${right} of ${inputs.length} numbers are right.` : t`Not right, and none of the usual mistakes.`;
});
