// Package prune prunes attention heads: it scores how important each head is for a model (Importance)
// and removes the least important heads (Heads).
//
// A model is passed to this package as a Subject, an interface with three methods. Layers are identified by
// the names in their configurations, and heads are numbered from 0.
package prune
