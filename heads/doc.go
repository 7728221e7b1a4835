// Package heads looks at what the heads of attention layers look at: it records
// weights while a model runs, keeps them in files, and measures them. And it tells
// which heads a model needs (Importance), and takes away the others (Prune).
//
// # Conventions
//
// Weights are those that an attn.Observer is told: after the softmax, before
// dropout, rows sum to 1. The rows of a matrix are the tokens that look
// (queries), its columns those that are looked at (keys), and each axis has its
// own tokens: in cross attention they are different texts.
//
// Layers and heads are counted from 0.
package heads
