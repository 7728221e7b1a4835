// Package seq2seq is a translator: an encoder reads a text, a decoder attends
// to what was read and writes another text. The parts stand in files of their
// own:
//
//	config.go       what kind of network: its shape and its score
//	network.go      what an encoder–decoder can do, and the two that there are:
//	transformer.go  the transformer of Vaswani et al. 2017
//	recurrent.go    the recurrent translator of Bahdanau et al. 2015
//	translator.go   a network with its vocabularies, as a directory of files
//	train.go        the training loop; checkpoint.go makes it resumable
//	finetune.go     a few more steps for a model that is there
//	decode.go       greedy and beam search; record.go records attention weights
//	evaluate.go     loss, perplexity, exact match and BLEU
//	judge.go        two systems on the same sources; compare.go their predictions
//	prune.go        layers that have lost some of their heads
//	probe.go        a translator and pairs, for the measures of package heads
//	pairs.go vocab.go bleu.go dates.go   the text side
package seq2seq
