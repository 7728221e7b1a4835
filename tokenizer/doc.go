// Package tokenizer turns text into the numbers of a model's vocabulary, and back, as
// the model's tokenizer.json says: the format of the library tokenizers by Hugging
// Face, token for token. Older files are read too: see Load.
//
//	t, err := tokenizer.Load("bert-base-uncased")
//	e, err := t.Encode("Attention is all you need", tokenizer.Options{})
//	out := model.Forward(nil, e.IDs)
//
// A text goes through five stages, and each of them is in a file of its own:
//
//	normalizer       rewrites the text: Unicode forms, case, accents    normalizer.go
//	pre-tokenizer    cuts it into words                                 pretokenizer.go
//	model            cuts words into tokens                             wordpiece.go, bpe.go, unigram.go
//	post-processor   puts special tokens around                         postprocessor.go
//	decoder          makes text of tokens again                         decoder.go
//
// Added tokens, such as [MASK], are cut out before all that. Through every stage a
// piece of text knows which bytes of the original it stands for, so that tokens can be
// shown in the text as it was given.
//
// A file that asks for something else than what is here is refused, by name, when it
// is loaded: a tokenizer that is nearly right makes a model that is quietly worse.
// What a file can ask for:
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
// Models of SentencePiece (spiece.model, tokenizer.model, source.spm) are read as they are,
// unigram and BPE, and are exact with the library sentencepiece: sentencepiece*.go. Load
// tells which files of a directory are read.
//
// Regular expressions are those of GPT-2, Llama 3, Qwen and Trained, and all that mean the same
// in package regexp; a look-ahead is known only in \s+(?!\S)|\s+ at the end.
//
// TrainBPE and TrainWords learn vocabularies, of which Trained makes a tokenizer.json.
//
// Time grows as the length of the text does (BPE: n·log n for a word of n characters).
package tokenizer
