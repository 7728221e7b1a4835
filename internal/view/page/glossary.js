// What the words on the page mean.

import { byId, el } from "./dom.js";

const words = [
  ["query", "a token that attends: a row of the map"],
  ["key", "a token that is attended to: a column of the map"],
  ["weight", "how much of a key's value a query takes, from 0 to 1; the weights of a query sum to 1"],
  ["head, layer", "a head is one set of weights; the heads of a layer work side by side, and layers one after the other"],
  ["kv, key/value head", "heads under a bracket share their keys and values: grouped-query attention"],
  ["encoder", "layers in which the source, or the only text, attends to itself"],
  ["decoder", "layers in which the target, or the only text, attends to itself up to each token: later keys are masked"],
  ["cross attention", "layers in which the target attends to the source"],
  ["masked", "a query cannot attend to this key: the cell is hatched, and its weight is no result but a rule"],
  ["token", "a piece of text that the model reads or writes as one; · stands for a space before it, ␣ for a space alone"],
  ["special tokens", "marks that are not text, such as the end of a sentence; hidden, they are left out, and rescaled, the other weights of each query sum to 1 again"],
  ["words", "the pieces of a word become one: as a key it has the sum of their weights, as a query the mean"],
  ["colour scale", "what the last colour stands for: the largest weight of the head, 1, or the largest on a logarithmic scale; two heads that are compared share it"],
  ["value-weighted", "weight × norm: the weight times the length of what the key's value adds to the layer's result (Kobayashi et al. 2020); a large weight on a value close to 0 adds nothing. Measures are then of each query's shares, which sum to 1"],
  ["neurons", "the dimensions of a query q and a key k of a head, and their products q ∘ k, of whose sum the score is made"],
  ["score", "what a query and a key have before the weights: scale · q·k, to which soft-cap, bias and mask are yet to come"],
  ["mean, all", "the mean of the weights of a layer's heads; all is that of the layers of one kind, each counting the same"],
  ["rollout", "how much of each token of the text is in each vector behind the layers up to this one, if attention and the connections around it were all that mixes them (Abnar and Zuidema 2020)"],
  ["divergence", "how differently two heads attend: the Jensen–Shannon divergence of their weights, a mean over the queries, in nats; 0 for equal heads, 0.69 (ln 2) for heads that share nothing"],
  ["difference", "weights of the first head less those of the second: orange where the first has more, blue where the second has"],
  ["total variation", "half the sum of absolute differences, a mean over the queries: 0 for equal heads, 1 for heads that share nothing"],
  ["measure", "a number about a head, a mean over its queries, of what is shown; a dash is one that does not apply or is not a number"],
];

// prepareGlossary writes the words and the measures into the dialog.
export function prepareGlossary(columns) {
  const list = [...words, ...columns.map((c) => [c.label, c.help])];
  byId("glossary").replaceChildren(
    el("form", { method: "dialog" }, el("h2", { text: "Glossary" }), el("button", { class: "turn", text: "Close" })),
    el("dl", {}, ...list.flatMap(([word, means]) => [el("dt", { text: word }), el("dd", { text: means })])),
    el("p", { class: "quiet", text: "Keys: arrows move, [ and ] go to the head before and after, Enter chooses, + − 0 zoom, Escape takes back." }));
}
