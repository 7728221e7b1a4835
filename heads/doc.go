// Package heads inspects attention heads. It records attention weights while a model
// runs (Recorder), keeps them in files (Record) and computes measures of them
// (Layer.Measure). Package prune scores heads by what they do for a model.
//
// # Conventions
//
// Weights are those that an attn.WeightsFunc receives: after the softmax, before
// dropout, rows sum to 1. The rows of a matrix are the queries, its columns the keys
// that they attend to, and each axis has its own tokens: in cross attention they are
// different texts.
//
// Layers and heads are counted from 0.
package heads
