// Package seq2seq is a translator: an encoder reads a text, a decoder attends
// to what was read and writes another text. The parts stand in files of their
// own:
//
//	config.go       what kind of network: its shape and its score
//	network.go      what an encoder–decoder can do, and the two that there are:
//	transformer.go  the transformer of Vaswani et al. 2017
//	recurrent.go    the recurrent translator of Bahdanau et al. 2015
//	translator.go   a network with its vocabularies, as a directory of files
//	decode.go       greedy and beam search; record.go records attention weights
//	loss.go         the loss of pairs; compare.go the predictions of two translators
//	prune.go        layers that have lost some of their heads
//	probe.go        a translator and pairs, for the measures of package heads
//	vocab.go bpe.go the text side
//
// Package train has what trains and measures it.
package seq2seq
