// Package seq2seq has the text side of translators: pairs of texts, and the vocabularies that
// cut a text into numbers. Package models has the networks, package train what trains and
// measures them.
package seq2seq
