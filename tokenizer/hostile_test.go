package tokenizer

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
)

// An error about any content of a tokenizer.json, or about a text that it cannot encode, is one line
// without control characters for a terminal.
func TestHostileText(t *testing.T) {
	for name, file := range map[string]string{
		"bpe": `{"version": "1.0", "truncation": {"max_length": 5, "strategy": "LongestFirst", "direction": "Right", "stride": 0},
			"padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
			"added_tokens": [{"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
			"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}]},
			"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
				{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
			"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
				"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
				"special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
			"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
			"model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
				"byte_fallback": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}`,
		"unigram": `{"version": "1.0", "normalizer": {"type": "Prepend", "prepend": "_"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
			"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
			"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [["<unk>", 0], ["a", -1.5], ["▁", -2]]}}`,
		"wordpiece": `{"version": "1.0", "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
			"pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", "sep": ["a", 1], "cls": ["a", 1]},
			"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
			"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}}`,
	} {
		if _, err := Read(strings.NewReader(file)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files, refused := 0, 0
		for _, text := range []string{hostile.Text, hostile.Long} {
			for changed := range hostile.Files([]byte(file), text) {
				files++
				read, err := Read(bytes.NewReader(changed))
				if err == nil {
					_, err = read.Encode(text, Options{})
				} else {
					refused++
				}
				if err == nil {
					continue
				}
				if bad := hostile.Check(err.Error()); bad != nil {
					t.Errorf("%s: %v", name, bad)
				}
			}
		}
		if refused < files/2 {
			t.Errorf("%s: %d of %d files are refused", name, refused, files)
		}
	}
}

// A small file cannot take much time or memory.
func TestHostileSize(t *testing.T) {
	replace := `{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}`
	sequence := func(part, end string, n int) string {
		return `{"type": "Sequence", "normalizers": [` + strings.Repeat(part, n) + end + `]}`
	}
	var before, after runtime.MemStats
	for name, c := range map[string]struct{ field, value, want string }{
		"nested":  {"normalizer", strings.Repeat(`{"type": "Sequence", "normalizers": [`, 4000) + strings.Repeat(`]}`, 4000), "is nested 8 levels deep, want less"},
		"classes": {"normalizer", `{"type": "Replace", "pattern": {"Regex": "` + strings.Repeat(`\\P{L}`, 10_000) + `"}, "content": ""}`, "too many classes"},
		"doubled": {"normalizer", sequence(replace+",", replace, 60), "the text becomes too long"},
		"long":    {"normalizer", `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("x", 100_000) + `"}`, "the text becomes too long"},
		"prefix":  {"normalizer", `{"type": "Prepend", "prepend": "` + strings.Repeat("x", 1_000_000) + `"}`, "the text becomes too long"},
		"bytes": {"pre_tokenizer", strings.ReplaceAll(sequence(`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},`,
			`{"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": false}`, 60), "normalizers", "pretokenizers"), "the text becomes too long"},
		"pieces": {"added_tokens", `[{"id": 1, "content": "é", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}], ` +
			`"normalizer": {"type": "Prepend", "prepend": "` + strings.Repeat("x", 60_000) + `"}`, "the text becomes too long"},
		"written": {"decoder", strings.ReplaceAll(sequence(replace+",", replace, 60), "normalizers", "decoders"), "times as long, want at most 64"},
	} {
		runtime.ReadMemStats(&before)
		tok, err := Read(strings.NewReader(refusedFile(c.field, c.value)))
		if err == nil {
			_, err = tok.Encode(strings.Repeat("aé ", 1000), Options{})
		}
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 100 {
			t.Errorf("%s: %d MB were allocated", name, made)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want … %s", name, err, c.want)
		}
	}
}

// The same for all other files of a directory.
func TestHostileTextInDirectory(t *testing.T) {
	for _, text := range []string{hostile.Text, hostile.Long} {
		for name, file := range map[string]string{
			"tokenizer_config.json": `{"tokenizer_class": "BertTokenizer", "do_lower_case": true, "unk_token": "[UNK]", "cls_token": {"content": "[CLS]"},
				"additional_special_tokens": [], "added_tokens_decoder": {"0": {"content": "[PAD]", "special": true}}, "sp_model_kwargs": {}}`,
			"special_tokens_map.json": `{"unk_token": "[UNK]", "mask_token": {"content": "[MASK]"}, "additional_special_tokens": ["[UNK]"]}`,
			"added_tokens.json":       `{"[PAD]": 0}`,
		} {
			for changed := range hostile.Files([]byte(file), text) {
				dir := t.TempDir()
				for name, data := range map[string]string{
					"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n" + strings.ReplaceAll(text, "\n", "") + "\n", name: string(changed),
				} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := Load(dir); err != nil {
					if bad := hostile.Check(err.Error()); bad != nil {
						t.Errorf("%s: %v", name, bad)
					}
				}
			}
		}
	}
}

// Words fails like Encode for a text that a file's replacements make too long, and replaces bytes that are not UTF-8.
func TestWordsOfBadText(t *testing.T) {
	file := `{"version": "1.0", "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": "` + strings.Repeat("y", 1000) + `"},
		"pre_tokenizer": {"type": "Whitespace"},
		"model": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"u": 0}}}`
	tokens, err := Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if words, err := tokens.Words("a \xff b"); err != nil || strings.Join(words, "|") != "a|\uFFFD|b" {
		t.Errorf("%q, %v", words, err)
	}
	long := strings.Repeat("x ", 1<<12)
	if _, err := tokens.Encode(long, Options{}); err == nil {
		t.Fatal("Encode accepts the text: the test shows nothing")
	}
	if words, err := tokens.Words(long); err == nil || !strings.Contains(err.Error(), "becomes too long") {
		t.Errorf("%d words, %v", len(words), err)
	}
}
