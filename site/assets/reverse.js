// Lesson 3: a small encoder–decoder learns to write strings backwards.

import { byId } from "./page.js";
import { training } from "./training.js";

await training(byId("train"), {
  task: "reverse",
  networks: [["transformer", "transformer, 2 heads"], ["gru", "recurrent, 1 map"]],
  scores: [["scaled", "scaled dot product"], ["dot", "dot product"], ["additive", "additive"], ["bilinear", "bilinear"], ["gaussian", "Gaussian"], ["cosine", "cosine"]],
  example: "abcdefgh",
  hint: "string, letters a to j",
  answer: (text) => [...text.trim()].reverse().join(""),
  test: 100,
});
document.body.dataset.drawn = "";
