// Package heads inspects and prunes attention heads. It records attention weights while
// a model runs (Recorder), keeps them in files (Record), computes measures of them
// (Layer.Measure), scores how important each head is for a model (Importance), and
// removes the least important ones (Prune).
//
// # Conventions
//
// Weights are those that an attn.WeightsFunc is told: after the softmax, before
// dropout, rows sum to 1. The rows of a matrix are the queries, its columns the keys
// that they attend to, and each axis has its own tokens: in cross attention they are
// different texts.
//
// Layers and heads are counted from 0.
package heads
