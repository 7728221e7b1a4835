// Lesson 3: a small encoder–decoder learns to write strings backwards.

import { byId, drawn, t } from "./page.js";
import { training } from "./training.js";

await training(byId("train"), {
  task: "reverse",
  networks: [["transformer", t`transformer, 2 heads`], ["gru", t`recurrent, 1 map`]],
  scores: [["scaled", t`scaled dot product`], ["dot", t`dot product`], ["additive", t`additive`], ["bilinear", t`bilinear`], ["gaussian", t`Gaussian`], ["cosine", t`cosine`]],
  example: "abcdefgh",
  hint: t`string, letters a to j`,
  answer: (text) => [...text.trim()].reverse().join(""),
  test: 100,
});
drawn();
