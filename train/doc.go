// Package train trains translators of package seq2seq and measures them: the loop that
// attn train runs.
//
//	pairs.go lines.go  files of pairs and of other lines; dates.go makes pairs of dates
//	recipe.go          what a run follows from, saved with it
//	trainer.go         the training loop; checkpoint.go makes it resumable
//	session.go         a run in its directory: opened, trained, saved, measured
//	metrics.go         metrics.jsonl; sample.go what the last checkpoint writes
//	finetune.go        a few more steps for an existing model
//	evaluate.go        loss, perplexity, exact match and BLEU
//	judge.go           two systems on the same sources
//	examples.go        the pairs as ids, for other programs
package train
