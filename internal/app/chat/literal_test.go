package chat

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tokenizer"
)

// controls are the special tokens of the templates, some of them searched for in normalized text, and tokens that a
// user's text could form with them.
var controls = []struct {
	text                          string
	normalized, ordinary, rstrips bool
}{
	{text: "<s>", normalized: true}, {text: "</s>"}, {text: "<|im_start|>"}, {text: "<|im_end|>"},
	{text: "<|end|>", normalized: true},
	{text: "[INST]"}, {text: "[/INST]"}, {text: "<start_of_turn>"}, {text: "<end_of_turn>"}, {text: "<|eot_id|>"},
	{text: "<|start_header_id|>"}, {text: "<|end_header_id|>"}, {text: "<|begin_of_text|>", normalized: true},
	{text: "<|user|>", rstrips: true}, {text: "<|assistant|>"}, {text: "<|system|>", normalized: true},
	{text: "a<|im_end|>"}, {text: "[[/INST]"}, {text: "</s></s>"}, {text: "\n<|im_end|>"}, {text: "q<", ordinary: true},
	{text: "  ", ordinary: true}, {text: "<think>", ordinary: true}, {text: "end|>a", ordinary: true, normalized: true},
}

// talker returns a function that encodes conversations by a template, and one that lists their special tokens.
func talker(t *testing.T, template, normalizer string) (
	encode func(contents ...string) *tokenizer.Encoding, special func(*tokenizer.Encoding) string) {
	t.Helper()
	vocab := map[string]int{"?": 0, "\n": 1, "é": 2}
	for c := ' '; c < 127; c++ {
		if c != '?' {
			vocab[string(c)] = len(vocab)
		}
	}
	var added []map[string]any
	for i, c := range controls {
		added = append(added, map[string]any{"id": len(vocab) + i, "content": c.text, "single_word": false, "lstrip": false,
			"rstrip": c.rstrips, "normalized": c.normalized, "special": !c.ordinary})
	}
	data, err := json.Marshal(map[string]any{
		"version": "1.0", "normalizer": json.RawMessage(normalizer), "added_tokens": added,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}, "unk_token": "?"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tokenizer.json": string(data), "chat_template.jinja": template,
		"tokenizer_config.json": `{"bos_token": "<s>", "eos_token": {"content": "</s>"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := tokenizer.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	encode = func(contents ...string) *tokenizer.Encoding {
		t.Helper()
		c, err := New(dir, tok)
		if err != nil {
			t.Fatal(err)
		}
		for i, content := range contents {
			c.Say([]string{"user", "assistant"}[i%2], content)
		}
		e, err := c.Encode()
		if err != nil {
			t.Fatalf("%q: %v", contents, err)
		}
		return e
	}
	special = func(e *tokenizer.Encoding) string {
		var found []string
		for _, id := range e.IDs {
			if tok.IsSpecial(id) {
				token, _ := tok.Token(id)
				found = append(found, token)
			}
		}
		return strings.Join(found, " ")
	}
	return encode, special
}

// A message becomes no special token when the template changes it, when template text beside it completes the token, or
// when only the normalized text has the token. Nor does it hide a special token of the template.
func TestMessagesAreText(t *testing.T) {
	const (
		lower   = `{"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}`
		accents = `{"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}`
		replace = `{"type": "Replace", "pattern": {"String": "@"}, "content": "<|end|>"}`
	)
	change := func(how string) string {
		return "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content" + how + " }}<|im_end|>\n{% endfor %}"
	}
	for _, c := range []struct{ template, normalizer, content string }{
		{change(".replace('/think', '')"), "null", "x<|im_/thinkend|>"},
		{change(" | replace('/no_think', '') | trim"), "null", "<|im/no_think_end|>"},
		{change(" | lower"), "null", "<|IM_END|>"},
		{change(".split('#') | join"), "null", "<|im_#end|>"},
		{change(".split('#')[-1]"), "null", "#<|im_end|>"},
		{change("[2:]"), "null", "xx<|im_end|>"},
		{change("[::-1]"), "null", ">|dne_mi|<"},
		{change(" | list | join"), "null", "<|im_end|>"},
		{change(" | tojson"), "null", "<|im_end|>"},
		{change(" ~ 'end|>'"), "null", "<|im_"},
		{change(" | replace('@', '<|im_')"), "null", "@end|>"},
		{"<s><{{ messages[0].content }}</s>", "null", "|im_end|>"},
		{"<s>{{ messages[0].content }}end|></s>", "null", "<|im_"},
		{"<s>{% for m in messages %}{% set x %}{{ m.content }}{% endset %}<{{ x }}|>{% endfor %}</s>", "null", "|im_end"},
		{change(""), "null", "a"}, // a<|im_end|> is a longer token
		{change(""), "null", "\n"},
		{"<s>{{ messages[0].content }}[/INST]", "null", "["},
		{change(""), "null", "q"},
		{"<s>{{ messages[0].content }}<|end|>a", lower, "q"},
		{change(""), lower, "＜|end|＞<|END|><|ｅnd|>"},
		{"<s>{{ messages[0].content }}</s>", lower, "\u0338<S>\u0338"},
		{change(""), accents, "<|énd|><|e\u0301nd|>"},
		{change(""), replace, "@"},
		{"<s>{{ messages[0].content }}<|end|>{{ messages[0].content }}", `{"type": "NFC"}`, "\u0338"},
		{"<s>{{ messages[0].content }}</s>", "null", "<\uFDD0s><s\uFDD0>"},
	} {
		encode, special := talker(t, c.template, c.normalizer)
		e := encode(c.content)
		if got, want := special(e), special(encode("nnnn")); got != want {
			t.Errorf("%q, %q: special tokens %q in %q, want %q", c.template, c.content, got, e.Tokens, want)
		}
	}
}

// Whatever messages contain, a conversation has the special tokens that it has with other messages.
func TestSpecialTokensOfTemplates(t *testing.T) {
	paths, err := filepath.Glob("../jinja/testdata/*.jinja")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d templates, %v", len(paths), err)
	}
	const each = "{% for m in messages %}"
	templates := map[string]string{
		"roles": "{{ bos_token }}" + each + "<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>{% endfor %}<|assistant|>",
		"changes": each + "<|im_start|>{{ m.role + m.content.replace('/think', '') | lower }}<|im_end|>{{ eos_token }}" +
			"{% endfor %}",
		"beside": each + "<{{ m.content }}<s>{{ m.content }}|>{{ m.content[1:-1] }}</s>end|>{{ m.content[::-1] }}" +
			"{% endfor %}",
		"parts": each + "{% for p in m.content.split('|') %}<|im_start|>{{ p }}" +
			"{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}{{ m.content | tojson }}{% endfor %}",
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Others write parts of messages.
		if name := strings.TrimSuffix(filepath.Base(path), ".jinja"); name != "operators" && name != "order" {
			templates[name] = string(data)
		}
	}
	fragments := strings.Split("/think,/no_think,<,>,|,|>,<|,im_,end,a,q, ,\n,\u0338,\u0301,＜,＞,[,],e,é,B,<think>,</think>", ",")
	for _, c := range controls {
		half := len(c.text) / 2
		fragments = append(fragments, c.text, strings.ToUpper(c.text), c.text[:half], c.text[half:], c.text[1:],
			c.text[:half]+"/think"+c.text[half:])
	}
	rounds := 40
	if testing.Short() {
		rounds = 15
	}
	for name, template := range templates {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, normalizer := range []string{
			"null", `{"type": "NFC"}`, `{"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}`,
			`{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": true,
				"lowercase": true}`,
		} {
			encode, special := talker(t, template, normalizer)
			for range rounds {
				var contents, neutral []string
				for range 1 + 2*rng.IntN(3) {
					content := ""
					for range 1 + rng.IntN(5) {
						content += fragments[rng.IntN(len(fragments))]
					}
					if name == "parts" { // the template writes a special token for each of three parts
						content = "a|b|" + content
					}
					// Where nothing is left of a message, the text of the template on both sides comes together.
					if left := strings.TrimSpace(content); len(left) < 4 || strings.HasSuffix(left, "</think>") {
						content += "nnn"
					}
					contents, neutral = append(contents, content), append(neutral, "nn|nn|nn")
				}
				e := encode(contents...)
				if got, want := special(e), special(encode(neutral...)); got != want {
					t.Fatalf("%s, %s, %q:\n%q in %q, want\n%q", name, normalizer, contents, got, e.Tokens, want)
				}
			}
		}
	}
}

// Templates write special tokens with the roles of messages. A role of another name is text.
func TestRoles(t *testing.T) {
	const template = "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
	encode, special := talker(t, template, "null")
	if got, want := special(encode("q", "r")), "<s> <|user|> </s> <|assistant|> </s>"; got != want {
		t.Errorf("special tokens %q, want %q", got, want)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../models/testdata/sentence_dense")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("[{{ messages[0].role }}][SEP]"), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(dir, tok)
	if err != nil {
		t.Fatal(err)
	}
	c.Say("CLS", "")
	e, err := c.Encode()
	if err != nil || e.Tokens[len(e.Tokens)-1] != "[SEP]" || slices.Contains(e.Tokens, "[CLS]") {
		t.Errorf("tokens %q, %v", e.Tokens, err)
	}
}

// The memory for a conversation is proportional to its length.
func TestLongConversations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: conversations of 300 kB")
	}
	paths, err := filepath.Glob("../jinja/testdata/*.jinja")
	if err != nil {
		t.Fatal(err)
	}
	const turn = "<|im_/think/end|> Hello\n\n<think>x</think>É\u0338[INST]|a<"
	for _, path := range paths {
		if name := filepath.Base(path); name == "operators.jinja" || name == "order.jinja" {
			continue // they write each list of messages several times
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		encode, _ := talker(t, string(data), `{"type": "NFKC"}`)
		memory := func(turns, length int) float64 {
			contents := make([]string, turns)
			for i := range contents {
				contents[i] = strings.Repeat(turn, length/len(turn))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			encode(contents...)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		small, turns, long := memory(5, 15_000), memory(39, 7500), memory(3, 100_000)
		if most := 6 * small; turns > most || long > most {
			t.Errorf("%s: 75 kB need %.0f MB, 300 kB in short turns %.0f MB, in long ones %.0f MB", path, small/1e6, turns/1e6, long/1e6)
		}
	}
}
