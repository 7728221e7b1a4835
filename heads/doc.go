// Package heads inspects attention heads. It records attention weights while a model runs (Recorder), saves
// them in files (Record) and computes measures of them (Layer.Measure). Package prune scores how important
// heads are.
//
// # Conventions
//
// The weights are those that an attn.Observer receives: after the softmax and before dropout, so rows
// sum to 1, or to less with sinks. The rows of a matrix are the queries, its columns are the keys. Each axis has its own list of
// tokens, because in cross-attention queries and keys come from different texts.
//
// Layers and heads are numbered from 0.
package heads
