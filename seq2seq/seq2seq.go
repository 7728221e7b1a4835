// Package seq2seq has the text side of translators: pairs of texts, and the vocabularies that convert text
// to numbers. Package models has the networks, and package train trains and evaluates them.
package seq2seq
