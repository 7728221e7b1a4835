// Package exercise gives other packages of this module work of a fixed size for a
// translator, to measure its speed. It is not part of seq2seq's public API, which sets
// these functions when it is imported. m is a *seq2seq.Translator: importing that package
// here would be a cycle.
package exercise

var (
	// Translate returns a function that reads size sources of source tokens each and
	// writes target tokens of each translation, one a step, whatever is likely.
	Translate func(m any, size, source, target int) func()
	// Step returns a function that writes one more token of each of size translations,
	// after sources of source tokens and written tokens of each translation were read.
	Step func(m any, size, source, written int) func()
)
