package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

// settingsFiles are the files of tiny tokenizers without a tokenizer.json, but for tokenizer_config.json.
func settingsFiles(class string) map[string][]byte {
	if class == "BertTokenizer" {
		return map[string][]byte{"vocab.txt": []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nit\ns\n'\n.\n")}
	}
	return map[string][]byte{
		"vocab.json": []byte(`{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "Ġ": 6, "Ġb": 7, "<mask>": 8,
			"<|endoftext|>": 9, "<": 10, "s": 11, ">": 12}`),
		"merges.txt": []byte("Ġ b\n"),
	}
}

// Every setting of tokenizer_config.json that changes tokens or texts in transformers 5.23 does so here, or is refused.
func TestSettings(t *testing.T) {
	const end = "<|endoftext|>"
	gpt2, roberta, bert := "GPT2Tokenizer", "RobertaTokenizer", "BertTokenizer"
	flagged := func(use, token, flag string) string {
		return fmt.Sprintf(`%q: {"__type": "AddedToken", "content": %q, %q: true}`, use, token, flag)
	}
	for _, c := range []struct {
		class, settings, text string
		want                  string // tokens of the text, tokens of the text and "b", and the decoded text; or an error
	}{
		{gpt2, ``, "a b", "a Ġb|a Ġb b|a b"},
		{gpt2, `"add_bos_token": false, "add_eos_token": false`, "a b", "a Ġb|a Ġb b|a b"},
		{gpt2, `"add_bos_token": true`, "a b", end + " a Ġb|" + end + " a Ġb " + end + " b|a b"},
		{gpt2, `"add_eos_token": true`, "a b", "a Ġb " + end + "|a Ġb " + end + " b " + end + "|a b"},
		{gpt2, `"add_bos_token": true, "add_eos_token": true, "bos_token": "<s>", "eos_token": "</s>"`, "a",
			"<s> a </s>|<s> a </s> <s> b </s>|a"},
		{gpt2, `"add_bos_token": true, "bos_token": null`, "a", "a|a b|a"},
		{gpt2, `"add_bos_token": true, "bos_token": "<start>"`, "", `lacks the special token "<start>"`},
		{gpt2, `"bos_token": "<s>"`, "a<s>", "a <s>|a <s> b|a"},
		{gpt2, `"pad_token": "<s>"`, "a<s>", "a <s>|a <s> b|a"},
		{gpt2, ``, "a<s>", "a < s >|a < s > b|a<s>"},
		{gpt2, flagged("bos_token", "<s>", "lstrip"), "a <s> b", "a  <s> Ġb|a  <s> Ġb b|a b"},
		{gpt2, flagged("bos_token", "<s>", "rstrip"), "a <s> b", "a Ġ <s>  b|a Ġ <s>  b b|a b"},
		{gpt2, flagged("bos_token", "<s>", "single_word"), "a<s>", "a < s >|a < s > b|a<s>"},
		{gpt2, flagged("bos_token", end, "lstrip"), "", `uses the special token "<|endoftext|>" several times`},
		{gpt2, `"add_prefix_space": true`, "b", "Ġb|Ġb Ġb| b"},
		{gpt2, `"extra_special_tokens": {"image_token": "<s>"}`, "", `has the added token "<s>"`},
		{gpt2, `"extra_special_tokens": ["<s>"]`, "", `has the added token "<s>"`},
		{gpt2, `"extra_special_tokens": 7`, "", "extra_special_tokens of tokenizer_config.json: "},
		{gpt2, `"split_special_tokens": true`, "", "split_special_tokens is true, want false"},

		{roberta, `"add_bos_token": false, "add_eos_token": false`, "a <mask> b",
			"<s> a  <mask> Ġb </s>|<s> a  <mask> Ġb </s> </s> b </s>|a b"},
		{roberta, flagged("mask_token", "<mask>", "rstrip"), "a <mask> b",
			"<s> a Ġ <mask>  b </s>|<s> a Ġ <mask>  b </s> </s> b </s>|a b"},
		{roberta, flagged("cls_token", "<s>", "lstrip"), "a <s>", "<s> a  <s> </s>|<s> a  <s> </s> </s> b </s>|a"},
		{roberta, `"split_special_tokens": true`, "", "split_special_tokens is true, want false"},
		{roberta, `"cls_token": null`, "", "cls_token of tokenizer_config.json is null, want a text"},

		{bert, `"add_bos_token": true, "add_eos_token": true`, "a", "[CLS] a [SEP]|[CLS] a [SEP] [UNK] [SEP]|a"},
		{bert, ``, "it ' s a .", "[CLS] it ' s a . [SEP]|[CLS] it ' s a . [SEP] [UNK] [SEP]|it ' s a."},
		{bert, `"clean_up_tokenization_spaces": true`, "it ' s a .",
			"[CLS] it ' s a . [SEP]|[CLS] it ' s a . [SEP] [UNK] [SEP]|it's a."},
		{bert, flagged("mask_token", "[MASK]", "single_word"), "[MASK]a",
			"[CLS] [UNK] [UNK] [UNK] a [SEP]|[CLS] [UNK] [UNK] [UNK] a [SEP] [UNK] [SEP]|a"},
		{bert, flagged("mask_token", "[MASK]", "normalized"), "a[mask]",
			"[CLS] a [mask] [SEP]|[CLS] a [mask] [SEP] [UNK] [SEP]|a [mask]"},
		{bert, `"split_special_tokens": true`, "", "split_special_tokens is true, want false"},
	} {
		files := settingsFiles(c.class)
		config := `{"tokenizer_class": "` + c.class + `", "do_lower_case": true, ` + c.settings
		files["tokenizer_config.json"] = []byte(strings.TrimSuffix(config, ", ") + "}")
		tok, err := Load(writeFiles(t, files))
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %s: error %v, want %s", c.class, c.settings, err, c.want)
			}
			continue
		}
		one, err := tok.Encode(c.text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := tok.EncodePair(c.text, "b", Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(one.Tokens, " ") + "|" + strings.Join(two.Tokens, " ") + "|" + tok.Decode(one.IDs)
		if got != c.want {
			t.Errorf("%s with %s: %q becomes %s, want %s", c.class, c.settings, c.text, got, c.want)
		}
	}
}

// Offsets of RoBERTa leave out the space before a word unless trim_offsets is false.
func TestTrimOffsets(t *testing.T) {
	for settings, want := range map[string]string{
		``: "[{0 0} {0 1} {2 3} {0 0}]", `, "trim_offsets": true`: "[{0 0} {0 1} {2 3} {0 0}]",
		`, "trim_offsets": false`: "[{0 0} {0 1} {1 3} {0 0}]",
	} {
		files := settingsFiles("RobertaTokenizer")
		files["tokenizer_config.json"] = []byte(`{"tokenizer_class": "RobertaTokenizer"` + settings + "}")
		tok, err := Load(writeFiles(t, files))
		if err != nil {
			t.Fatal(err)
		}
		e, err := tok.Encode("a b", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(e.Offsets); got != want {
			t.Errorf("%s: offsets %s, want %s", settings, got, want)
		}
	}
}
