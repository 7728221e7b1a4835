// Package chat generates text with language models: continuations of a prompt, and conversations by a model's
// chat template.
package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/app/jinja"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/tokenizer"
)

// Conversation is a list of turns between a user and a model.
type Conversation struct {
	path     string // of the template
	template *jinja.Template
	names    map[string]any // special tokens by their names in templates
	pairs    map[string]any // variables of the template for Pair
	t        *tokenizer.Tokenizer
	turns    []turn
}

type turn struct{ role, content string }

// New returns an empty conversation with the model of a directory, whose tokenizer is t.
//
// Errors: *input.Error if the directory has no chat template, one with unsupported syntax, or a file that is damaged.
func New(dir string, t *tokenizer.Tokenizer) (*Conversation, error) {
	path, src, err := Template(dir)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, input.Errorf(dir, "has no chat template, want chat_template.jinja, "+
			"or chat_template in tokenizer_config.json: it is not a chat model")
	}
	names, err := specialNames(dir)
	if err != nil {
		return nil, err
	}
	pairs, err := pairSettings(dir)
	if err != nil {
		return nil, err
	}
	c := &Conversation{path: path, names: names, pairs: pairs, t: t}
	if c.template, err = jinja.Parse(src); err != nil {
		return nil, c.bad(err)
	}
	return c, nil
}

func (c *Conversation) bad(err error) error { return input.Errorf(c.path, "chat template: %w", err) }

// Say adds a turn of a role: system, user or assistant.
func (c *Conversation) Say(role, content string) { c.turns = append(c.turns, turn{role, content}) }

// Encode renders and tokenizes the conversation, up to the start of the model's next turn. Special tokens are those of
// the template: the text of a turn is plain text, also where the template changes it or puts it beside its own text.
func (c *Conversation) Encode() (*tokenizer.Encoding, error) {
	text, literal, err := c.prompt(map[string]any{"add_generation_prompt": true})
	if err != nil {
		return nil, err
	}
	return c.t.Encode(text, tokenizer.Options{NoSpecial: true, NoTruncation: true, NoPadding: true, Literal: literal})
}

// Pair renders a query and a document as the turns of these roles, after the turns that were said, as the templates of
// cross-encoders want it.
//
// Source: the class CrossEncoder of sentence-transformers.
//
// Errors: *input.Error.
func (c *Conversation) Pair(texts ...string) (text string, literal []tokenizer.Span, err error) {
	if len(texts) != 2 {
		return "", nil, fmt.Errorf("%d texts, want a query and a document", len(texts))
	}
	pair := *c
	pair.turns = append(slices.Clip(c.turns), turn{"query", texts[0]}, turn{"document", texts[1]})
	return pair.prompt(c.pairs)
}

// pairSettings returns the variables of the template for Pair, of sentence_bert_config.json.
func pairSettings(dir string) (map[string]any, error) {
	var config struct {
		Processing struct {
			Template map[string]any `json:"chat_template"`
		} `json:"processing_kwargs"`
	}
	path := filepath.Join(dir, "sentence_bert_config.json")
	if err := readConfig(path, &config); err != nil {
		return nil, err
	}
	all := config.Processing.Template
	for name, value := range all {
		switch v := value.(type) {
		case bool:
		case string:
			all[name] = jinja.Trusted(v)
		default:
			return nil, input.Errorf(path, "chat_template has %s = %v, want texts, true and false", quote.Name(name), v)
		}
	}
	return all, nil
}

// End returns the eos_token of the tokenizer, which ends a turn of the model.
func (c *Conversation) End() (id int, ok bool) {
	name, _ := c.names["eos_token"].(jinja.Trusted)
	return c.t.ID(string(name))
}

// roles are the roles that Say documents. Templates write special tokens with them, such as <|user|>.
var roles = []string{"system", "user", "assistant"}

// prompt returns the rendered conversation, and the spans that come from turns. settings are variables of the template.
func (c *Conversation) prompt(settings map[string]any) (text string, literal []tokenizer.Span, err error) {
	var messages []any
	for _, t := range c.turns {
		var role any = t.role
		if slices.Contains(roles, t.role) {
			role = jinja.Trusted(t.role)
		}
		messages = append(messages, jinja.Map{{Key: "role", Value: role}, {Key: "content", Value: t.content}})
	}
	variables := map[string]any{"messages": messages, "tools": nil, "documents": nil}
	maps.Copy(variables, settings)
	maps.Copy(variables, c.names)
	text, user, err := c.template.Render(variables, time.Now())
	if err != nil {
		return "", nil, c.bad(err)
	}
	for _, s := range user {
		literal = append(literal, tokenizer.Span(s))
	}
	return text, literal, nil
}

// Template returns the chat template of a directory and the path of its file, or "".
func Template(dir string) (path, src string, err error) {
	path = filepath.Join(dir, "chat_template.jinja")
	data, err := atomicfile.ReadFile(path, atomicfile.Small)
	if err == nil {
		for i, line := range bytes.Split(data, []byte("\n")) {
			if !utf8.Valid(line) {
				return "", "", input.Errorf(path, "line %d is not UTF-8", i+1)
			}
		}
		return path, string(data), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	path = filepath.Join(dir, "tokenizer_config.json")
	if err := readConfig(path, &config); err != nil {
		return "", "", err
	}
	bad := func(format string, args ...any) (string, string, error) {
		return "", "", input.Errorf(path, format, args...)
	}
	if len(config.Template) == 0 || string(config.Template) == "null" {
		return "", "", nil
	}
	if json.Unmarshal(config.Template, &src) == nil {
		return path, src, nil
	}
	var named []struct{ Name, Template string }
	if json.Unmarshal(config.Template, &named) != nil {
		return bad("chat_template is %s, want a text or a list of templates with names", quote.JSON(config.Template))
	}
	var names []string
	for _, n := range named {
		if n.Name == "default" {
			return path, n.Template, nil
		}
		names = append(names, n.Name)
	}
	return bad("chat_template has the templates %s, want one with the name default", quote.Texts(names))
}

// readConfig reads a JSON file of a model. Without the file, config stays as it is.
func readConfig(path string, config any) error {
	data, err := atomicfile.ReadFile(path, atomicfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := strictjson.Lenient(data, config); err != nil {
		return input.Errorf(path, "%v", err)
	}
	return nil
}

// specialNames returns the special tokens of tokenizer_config.json and special_tokens_map.json by
// their names, such as bos_token.
func specialNames(dir string) (map[string]any, error) {
	names := map[string]any{}
	for _, file := range []string{"special_tokens_map.json", "tokenizer_config.json"} {
		var config map[string]json.RawMessage
		path := filepath.Join(dir, file)
		if err := readConfig(path, &config); err != nil {
			return nil, err
		}
		for _, name := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
			raw := config[name]
			if len(raw) == 0 || string(raw) == "null" {
				continue
			}
			var token struct{ Content string }
			if json.Unmarshal(raw, &token.Content) != nil && json.Unmarshal(raw, &token) != nil {
				return nil, input.Errorf(path, "%s is %s, want a text or an object with its content", name, quote.JSON(raw))
			}
			if token.Content != "" {
				names[name] = jinja.Trusted(token.Content)
			}
		}
	}
	return names, nil
}
