// Package prune scores how important each attention head is for a model (Importance) and
// removes the least important heads (Heads).
//
// A model takes part by three methods: Subject. Layers are known by the names in their
// configurations, and heads are counted from 0.
package prune
