// The glossary of the page.

import { byId, el } from "./dom.js";
import { t, tr } from "./words.js";

const words = [
  ["query", "a token that attends: a row of the map"],
  ["key", "a token that is attended to: a column of the map"],
  ["weight", "the share of a key's value in the result of a query, from 0 to 1; the weights of a query sum to 1"],
  ["head, layer", "a head is one set of weights; the heads of a layer work in parallel, and the layers one after the other"],
  ["encoder 3.5", "short for encoder, layer 3, head 5"],
  ["kv, key/value head", "heads under a bracket share their keys and values: grouped-query attention"],
  ["encoder", "layers in which the source, or the only text, attends to itself"],
  ["decoder", "layers in which the target, or the only text, attends to itself, up to each token: later keys are masked"],
  ["cross-attention", "layers in which the target attends to the source"],
  ["masked", "Hatched cells are masked by design: the query cannot attend to this key, which is not the same as a weight of 0"],
  ["token", "a piece of text that the model reads or writes as a unit; ▁ is a space, ∎ the special token that ends the text"],
  ["special tokens", "tokens that are not text, such as the end of a sentence; with rows rescaled, the remaining weights of each query sum to 1 again"],
  ["words", "merges the pieces of a word: the weights of its keys are added, those of its queries averaged"],
  ["colour scale", "the value of the last colour: 1, the largest weight of the head, or the largest on a logarithmic scale; two compared heads share one scale"],
  ["value-weighted", "weight × norm: the weight times the length of what the key's value adds to the layer's output (Kobayashi et al. 2020); a large weight on a value close to 0 adds nothing. The last colour is always that of the largest. Measures are computed from each row divided by its sum"],
  ["neurons", "the dimensions of a query q and a key k of a head, and their products q ∘ k, whose sum gives the score"],
  ["score", "scale · q·k, before soft-cap, bias and mask; softmax turns the scores of a query into its weights"],
  ["mean, all", "the mean of the weights over the heads of a layer; all is the mean of these over the layers of one kind"],
  ["rollout", "the share of each token of the text in each vector after the layers up to this one, if only attention and residual connections mixed them (Abnar and Zuidema 2020)"],
  ["divergence", "how differently two heads attend: the Jensen–Shannon divergence of their weights, averaged over the queries, in nats; 0 for equal heads, 0.69 (ln 2) for heads that attend to different keys"],
  ["difference", "weights of the first head minus weights of the second: orange is more than 0, blue is less"],
  ["total variation", "half the sum of absolute differences, averaged over the queries: 0 for equal heads, 1 for heads that attend to different keys"],
  ["training", "the weights of one text at recorded steps of the training; the slider chooses the step, and the loss is that of the training at this step"],
  ["measure", "a number for a head, averaged over the visible queries; – means that the measure does not apply or is not a number"],
];

// prepareGlossary fills the dialog with the terms and the measures.
export function prepareGlossary(columns) {
  const list = [...words, ...columns.map((c) => [c.label, c.help])];
  byId("glossary").replaceChildren(
    el("form", { method: "dialog" }, el("h2", { text: t`Glossary` }), el("button", { class: "turn", text: t`Close` })),
    el("dl", {}, ...list.flatMap(([word, means]) => [el("dt", { text: tr(word) }), el("dd", { text: tr(means) })])),
    el("p", { class: "quiet", text: t`Keys: arrows move, [ and ] open the previous and next head, Enter selects, + − 0 zoom, Escape undoes the last selection.` }));
}
