// Package models loads pretrained transformers from directories in the Hugging Face format
// (config.json, model.safetensors and tokenizer files) and runs them as layers of package attn,
// for inference, inspection, pruning and fine-tuning. The translators that attn
// train makes are families like the others: see NewTranslator.
//
//	m, err := models.Load("all-MiniLM-L6-v2", models.Options{})
//	x, err := m.Tokens("Attention is all you need")
//	hidden := m.Hidden(nil, x, models.Run{})    // [1 L D]
//
// The value of model_type in config.json selects a Family from a table. A family's constructor
// builds its layers with a Builder, which finds their tensors by name. To add a family, append it
// to Families.
//
// Loading is strict, because a model that is almost right gives plausible but wrong results. It
// is an error if a setting is neither read, nor known to have no effect on the result, nor in
// Options.Allowed, if a tensor
// is missing or left over, or if a shape does not match the settings. The sizes in config.json
// are checked against the headers of the weight files before any memory is allocated.
package models
