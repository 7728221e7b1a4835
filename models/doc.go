// Package models reads pretrained transformers from directories in the form of Hugging
// Face, config.json with model.safetensors and the files of a tokenizer, and runs them
// as layers of package attn: to look into, to prune, to fine-tune, to use. The translators
// that attn train makes are families of it, too, with a configuration of their own and
// vocabularies in place of a tokenizer: NewTranslator makes one.
//
//	m, err := models.Load("all-MiniLM-L6-v2", models.Options{})
//	x, err := m.Tokens("Attention is all you need")
//	hidden := m.Hidden(nil, x, models.Run{})    // [1 L D]
//
// The value of model_type in config.json picks a Family from a table. A family is a
// function in a file of its own that says, with a Builder, which layers there are, under
// which names the file has them, and how they follow one another; whoever has a family of
// their own appends it to Families.
//
// A directory is read strictly, because a model that is nearly right gives results that
// look right: a setting that no one reads and that is not known to leave the result as it
// is, a tensor without a place, a place without a tensor, a shape that does not follow
// from the settings are errors. Sizes in config.json are held against the headers of the
// files before any memory is asked for.
package models
