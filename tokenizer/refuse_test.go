package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedFile returns a tokenizer.json with one field replaced.
func refusedFile(field, value string) string {
	parts := map[string]string{
		"version": `"1.0"`,
		"model":   `{"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}`,
	}
	parts[field] = value
	var list []string
	for _, name := range sorted(parts) {
		list = append(list, `"`+name+`": `+parts[name])
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"version", `"2.0"`, `version "2.0", want 1.0`},
		{"speed", `1`, `unknown field "speed"`},
		{"model", `null`, `has no model`},
		{"normalizer", `{"type": "Magic"}`, `normalizer "Magic" is not supported`},
		{"normalizer", `{"lowercase": true}`, `normalizer has no type`},
		{"normalizer", `{"type": "NFC", "version": 3}`, `normalizer NFC: unknown field "version"`},
		{"normalizer", `{"type": "BertNormalizer", "clean_text": true, "lowercase": true}`, `normalizer BertNormalizer: has no handle_chinese_chars`},
		{"normalizer", `{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Uppercase"}]}`, `normalizer "Uppercase" is not supported`},
		{"normalizer", `{"type": "Precompiled", "precompiled_charsmap": "AAE="}`, `normalizer Precompiled: precompiled_charsmap ends before its size`},
		{"normalizer", `{"type": "Precompiled", "precompiled_charsmap": "AAEAAAAAAAA="}`, `precompiled_charsmap has a trie of 256 bytes, want 4 to 4`},
		{"normalizer", `{"type": "Replace", "pattern": {"Regex": "a*"}, "content": ""}`, `normalizer Replace: pattern: expression "a*" cannot be run exactly: it matches the empty text`},
		{"normalizer", `{"type": "Replace", "pattern": {"Glob": "a*"}, "content": ""}`, `unknown field "Glob"`},
		{"pre_tokenizer", `{"type": "UnicodeScripts"}`, `pre-tokenizer "UnicodeScripts" is not supported`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "a(?=b)"}, "behavior": "Isolated", "invert": false}`, `pre-tokenizer Split: pattern: expression "a(?=b)" cannot be run exactly: it has (?=b`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "\\h+"}, "behavior": "Isolated", "invert": false}`, `it has \h`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "a++"}, "behavior": "Isolated", "invert": false}`, `it has a quantifier after a quantifier`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "^a|b$"}, "behavior": "Isolated", "invert": false}`, `it has ^`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "[[a]b]"}, "behavior": "Isolated", "invert": false}`, `it has brackets in brackets`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "(?i:straß)"}, "behavior": "Isolated", "invert": false}`, `it has (?i:st`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "a"}, "behavior": "isolated", "invert": false}`, `behavior "isolated", want Removed, Isolated,`},
		{"pre_tokenizer", `{"type": "Metaspace", "replacement": "ab"}`, `replacement is "ab", want one character`},
		{"pre_tokenizer", `{"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}`, `prepend_scheme "last", want always, first or never`},
		{"pre_tokenizer", `{"type": "ByteLevel", "add_prefix_space": 1, "trim_offsets": true}`, `pre-tokenizer ByteLevel: field "add_prefix_space" has a number where true or false is wanted`},
		{"post_processor", `{"type": "Nothing"}`, `post-processor "Nothing" is not supported`},
		{"post_processor", `{"type": "BertProcessing", "sep": ["a"], "cls": ["a", 0]}`, `has ["a"], want a token and its id`},
		{"post_processor", `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [], "special_tokens": {}}`, `template has "x", want it in special_tokens`},
		{"post_processor", `{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B", "type_id": 0}}], "pair": [], "special_tokens": {}}`, `template for one text has a second one`},
		{"post_processor", `{"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["a", 0], "cls": ["a", 0]}, {"type": "BertProcessing", "sep": ["a", 0], "cls": ["a", 0]}]}`, `has two processors that add special tokens, want one`},
		{"decoder", `{"type": "Morse"}`, `decoder "Morse" is not supported`},
		{"truncation", `{"max_length": 5, "strategy": "Random", "direction": "Right", "stride": 0}`, `truncation: strategy "Random", want LongestFirst`},
		{"truncation", `{"max_length": -5, "strategy": "LongestFirst", "direction": "Right", "stride": 0}`, `max_length -5`},
		{"padding", `{"strategy": {"Fixed": 99999999999}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": ""}`, `padding: want lengths from 0 to`},
		{"padding", `{"strategy": "Widest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": ""}`, `padding: strategy "Widest"`},
		{"added_tokens", `[{"id": 7, "content": "b", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`, `added token "b" has id 7, want 1, which follows from the vocabulary`},
		{"added_tokens", `[{"id": 1, "content": "", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`, `added token 1 is empty`},
		{"model", `{"type": "WordLevel", "vocab": {"a": 4294967295}, "unk_token": "a"}`, `token "a" has id 4294967295 in a vocabulary of 1 tokens`},
		{"model", `{"type": "WordLevel", "vocab": {"a": 0, "b": 0}, "unk_token": "a"}`, `tokens "a" and "b" both have id 0`},
		{"model", `{"type": "Transformer", "vocab": {}}`, `model "Transformer" is not supported`},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}`, `merge 0 joins "a" and "b", want both and the result in the vocabulary`},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}`, `merge 0 is "a b c", want two tokens`},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}`, `model BPE: dropout is 0.1, want 0`},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "temperature": 1}`, `model BPE: unknown field "temperature"`},
		{"model", `{"type": "Unigram", "vocab": [["a", -1]], "unk_id": 1}`, `unk_id is 1 in a vocabulary of 1 tokens`},
		{"model", `{"type": "Unigram", "vocab": [["a"]], "unk_id": 0}`, `field "vocab" has ["a"], want a token and its score`},
	} {
		_, err := Read(strings.NewReader(refusedFile(c.field, c.value)))
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.field, c.value, err, c.want)
		}
	}
}

// A text without tokens in the vocabulary is an error if there is no unknown token.
func TestUnknown(t *testing.T) {
	for _, c := range []struct{ model, want string }{
		{`{"type": "Unigram", "vocab": [["a", -1]], "unk_id": null}`, `"x" is not in the vocabulary, and there is no unk_id`},
		{`{"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "u"}`, `"xa" is not in the vocabulary, and neither is unk_token "u"`},
		{`{"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "u", "continuing_subword_prefix": "", "max_input_chars_per_word": 9}`, `"xa" is not in the vocabulary`},
		{`{"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u"}`, `"x" is not in the vocabulary, and neither is unk_token "u"`},
	} {
		tok, err := Read(strings.NewReader(refusedFile("model", c.model)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tok.Encode("xa", Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.model, err, c.want)
		}
	}
}

// Files from before 2021 have models without a type.
func TestModelWithoutType(t *testing.T) {
	tok, err := Read(strings.NewReader(refusedFile("model", `{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}`)))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := tok.Encode("abba", Options{}); err != nil || strings.Join(e.Tokens, " ") != "ab b a" {
		t.Errorf("%v, %v", e, err)
	}
}

func TestLoad(t *testing.T) {
	gpt2 := map[string]string{
		"vocab.json":            `{"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "<|endoftext|>": 5}`,
		"merges.txt":            "#version: 0.2\na b\nĠ ab\n",
		"tokenizer_config.json": `{"tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>", "model_max_length": 1e30}`,
	}
	with := func(files map[string]string, name, content string) map[string]string {
		changed := map[string]string{name: content}
		for n, c := range files {
			if n != name {
				changed[n] = c
			}
		}
		return changed
	}
	roberta := with(gpt2, "tokenizer_config.json", `{"tokenizer_class": "RobertaTokenizer", "mask_token": {"content": "<mask>", "lstrip": true}}`)
	roberta["vocab.json"] = `{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "Ġ": 7, "Ġab": 8, "<mask>": 9}`
	bert := map[string]string{"vocab.txt": "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nab\r\n##a\r\n"}
	cased := with(bert, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nAb\n##a\n")
	for _, c := range []struct {
		name  string
		files map[string]string
		text  string
		want  string // tokens, or the error
	}{
		{"gpt2", gpt2, "ab ab<|endoftext|>", "ab Ġab <|endoftext|>"},
		{"roberta", roberta, "ab <mask>", "<s> ab  <mask> </s>"},
		{"bert", bert, "ÁBA x", "[CLS] ab ##a [UNK] [SEP]"},
		{"bert cased", with(cased, "tokenizer_config.json", `{"do_lower_case": false}`), "Aba", "[CLS] Ab ##a [SEP]"},
		{"bert unsaid", cased, "", `vocab.txt: has capital letters, as in "Ab", and tokenizer_config.json does not set do_lower_case`},
		{"bert twice", with(bert, "vocab.txt", "a\na\n"), "", `vocab.txt: line 2 repeats the token "a"`},
		{"bert special", with(bert, "vocab.txt", "a\nb\n"), "", `vocab.txt: lacks the special token "`},
		{"bert class", with(bert, "tokenizer_config.json", `{"tokenizer_class": "MPNetTokenizer"}`), "", `vocab.txt: belongs to a tokenizer of class "MPNetTokenizer", want tokenizer_config.json with tokenizer_class BertTokenizer or DistilBertTokenizer or ElectraTokenizer`},
		{"bert map", with(with(bert, "special_tokens_map.json", `{"sep_token": "[CLS]"}`), "tokenizer_config.json", `{"do_lower_case": true}`), "ab", "[CLS] ab [CLS]"},
		{"bert null", with(with(bert, "special_tokens_map.json", `{"sep_token": null, "other_token": null}`), "tokenizer_config.json", `{"do_lower_case": true, "sep_token": "[CLS]"}`), "ab", "[CLS] ab [CLS]"},
		{"bert both", with(with(bert, "special_tokens_map.json", `{"sep_token": "[CLS]"}`), "tokenizer_config.json", `{"sep_token": "[SEP]"}`), "", `special_tokens_map.json: has sep_token "[CLS]", but tokenizer_config.json "[SEP]"`},
		{"bert more", with(bert, "special_tokens_map.json", `{"additional_special_tokens": ["ab"]}`), "", `vocab.txt: has the added token "ab", want a tokenizer.json that describes it`},
		{"bert unknown", with(bert, "added_tokens.json", `{"new": 7}`), "", `vocab.txt: has the added token "new", want`},
		{"gpt2 more", with(gpt2, "special_tokens_map.json", `{"mask_token": "ab"}`), "", `vocab.json: has the added token "ab", want`},
		{"gpt2 stripped", with(gpt2, "tokenizer_config.json", `{"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"5": {"content": "<|endoftext|>", "lstrip": true, "special": true}}}`), "", `vocab.json: has the added token "<|endoftext|>"`},
		{"no merges", map[string]string{"vocab.json": "{}"}, "", "merges.txt: is missing, want it next to vocab.json, or a tokenizer.json"},
		{"bad merges", with(gpt2, "merges.txt", "a\n"), "", `merges.txt: merge 0 is "a", want two tokens`},
		{"bert bytes", with(bert, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\xff\n"), "", `vocab.txt: line 6, "a\xff", is not UTF-8`},
		{"gpt2 bytes", with(gpt2, "vocab.json", `{"a": 0, "b`+"\xe2\x82"+`": 1}`), "", `vocab.json: is not UTF-8 at line 1, column 12`},
		{"gpt2 merged bytes", with(gpt2, "merges.txt", "#version: 0.2\na b\n\xa0 ab\n"), "", `merges.txt: line 3 is not UTF-8`},
		{"half a pair", with(gpt2, "vocab.json", `{"a": 0, "\ud83d": 1}`), "", `vocab.json: has half of a surrogate pair at line 1, column 11`},
		{"half a pair in JSON", with(bert, "tokenizer.json", refusedFile("model", `{"type": "WordLevel", "vocab": {"a": 0, "\udc00": 1}, "unk_token": "a"}`)), "", `tokenizer.json: has half of a surrogate pair at line`},
		{"config bytes", with(gpt2, "tokenizer_config.json", "{\"unk_token\": \"\xff\"}"), "", `tokenizer_config.json: is not UTF-8 at line 1, column 16`},
		{"map bytes", with(gpt2, "special_tokens_map.json", "{\n\"\xff\": 0}"), "", `special_tokens_map.json: is not UTF-8 at line 2, column 2`},
		{"added bytes", with(gpt2, "added_tokens.json", "{\"\xff\": 6}"), "", `added_tokens.json: is not UTF-8 at line 1, column 3`},
		{"json bytes", with(bert, "tokenizer.json", refusedFile("model", "{\"type\": \"WordLevel\", \"vocab\": {\"a\xff\": 0}, \"unk_token\": \"a\"}")), "", `tokenizer.json: is not UTF-8 at line`},
		{"no class", with(gpt2, "tokenizer_config.json", "{}"), "", `vocab.json: belongs to a tokenizer of class "", want tokenizer_config.json with tokenizer_class GPT2Tokenizer or RobertaTokenizer`},
		{"broken config", with(gpt2, "tokenizer_config.json", "{"), "", "tokenizer_config.json: "},
		{"nothing", map[string]string{"config.json": "{}"}, "", "has no tokenizer.json, and no vocab.txt, vocab.json with merges.txt, spiece.model, tokenizer.model, sentencepiece.bpe.model, or source.spm"},
		{"json first", with(bert, "tokenizer.json", "{}"), "", `tokenizer.json: version "", want 1.0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			tok, err := Load(dir)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "tokenizer: "+dir) {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			e, err := tok.Encode(c.text, Options{})
			if err != nil || strings.Join(e.Tokens, " ") != c.want {
				t.Errorf("%v %v, want %s", e, err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nowhere")); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("a missing directory: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		next, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if os.IsNotExist(err) {
			return err
		}
		err = next.Unwrap()
	}
}
