// Package train trains and evaluates translators, which models.NewTranslator makes. The command attn train uses it.
//
//	trainer, err := train.NewTrainer(model, pairs, train.Settings{Epochs: 10, Batch: 32, LR: 0.003, Clip: 1})
//	err = trainer.Run(ctx, func(p train.Progress) error { return nil })
//
// The subjects of its files:
//
//	pairs.go lines.go  files of pairs and of other lines; dates.go makes pairs of dates
//	recipe.go          the settings of a run, saved with it
//	trainer.go         the training loop; checkpoint.go saves and resumes it
//	session.go         a run in its directory: open, train, save, evaluate
//	metrics.go         metrics.jsonl; sample.go is the output of the last checkpoint
//	finetune.go        a few more steps for an existing model
//	evaluate.go        loss, perplexity, exact match and BLEU
//	judge.go           comparison of two systems on the same sources
//	examples.go        the pairs as ids, for other programs
package train
