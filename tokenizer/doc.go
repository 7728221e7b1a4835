// Package tokenizer converts text to the token ids of a model's vocabulary, and back. It reads the model's
// tokenizer.json, the format of Hugging Face's library tokenizers, and gives exactly the same tokens as
// that library. Older files are supported too: see Load.
//
//	t, err := tokenizer.Load("bert-base-uncased")
//	e, err := t.Encode("Attention is all you need", tokenizer.Options{})
//	out := model.Forward(nil, e.IDs)
//
// A text passes through five stages:
//
//	normalizer       rewrites the text: Unicode forms, case, accents    normalizer.go
//	pre-tokenizer    splits the text into words                         pretokenizer.go
//	model            splits words into tokens                           wordpiece.go, bpe.go, unigram.go
//	post-processor   adds special tokens                                postprocessor.go
//	decoder          converts tokens back to text                       decoder.go
//
// Added tokens, such as [MASK], are cut out before these stages. Every stage tracks which bytes of the
// original text each piece came from, so that tokens can be shown in the original text.
//
// Loading fails if a file uses a feature that this package does not support, and the error names the
// feature: a tokenizer that is only nearly right makes a model silently worse. Supported features:
//
//	normalizers      BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Nmt,
//	                 Precompiled, Replace, Prepend, ByteLevel, Sequence
//	pre-tokenizers   BertPreTokenizer, ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace,
//	                 WhitespaceSplit, CharDelimiterSplit, Sequence
//	models           WordPiece, BPE, Unigram, WordLevel
//	post-processors  TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence
//	decoders         WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace,
//	                 CTC, Sequence
//
// Models of SentencePiece (spiece.model, tokenizer.model, source.spm), unigram and BPE, are read directly, and give the
// same tokens as version 0.2.3 of the library sentencepiece: sentencepiece*.go. Of two splits with the same score, the
// libraries can select different ones, because sentencepiece adds scores in float32 and tokenizers in float64: the
// format of the file decides. Load documents which files of a directory are read.
//
// Regular expressions can be those of GPT-2, Llama 3, Qwen and Trained, and all that have the same meaning
// in package regexp. Look-ahead is only supported as \s+(?!\S)|\s+ at the end.
//
// TrainBPE and TrainWords train vocabularies, and Trained converts a vocabulary to a tokenizer.json.
//
// The run time is linear in the length of the text (BPE: n·log n for a word of n characters).
package tokenizer
