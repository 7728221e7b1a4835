// Package chat puts conversations into the form of a model's chat template.
package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/jinja"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/tokenizer"
)

// Conversation is the turns of a user and a model.
type Conversation struct {
	path     string // of the template
	template *jinja.Template
	names    map[string]any // special tokens by the names that templates know
	special  []string       // all special tokens, longest first
	t        *tokenizer.Tokenizer
	turns    []turn
}

type turn struct{ role, content string }

// New returns a conversation without turns with the model of a directory, whose tokenizer has so
// many tokens.
//
// Errors: *input.Error where the directory has no chat template, or one that is not understood.
func New(dir string, t *tokenizer.Tokenizer, tokens int) (*Conversation, error) {
	path, src, err := Template(dir)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, input.Errorf(dir, "has no chat template, want chat_template.jinja, "+
			"or chat_template in tokenizer_config.json: it is no model for chats")
	}
	c := &Conversation{path: path, names: specialNames(dir), t: t}
	if c.template, err = jinja.Parse(src); err != nil {
		return nil, c.bad(err)
	}
	for id := range tokens {
		if token, ok := t.Token(id); ok && t.IsSpecial(id) {
			c.special = append(c.special, token)
		}
	}
	slices.SortStableFunc(c.special, func(a, b string) int { return len(b) - len(a) })
	return c, nil
}

func (c *Conversation) bad(err error) error { return input.Errorf(c.path, "chat template: %w", err) }

// Say adds a turn of a role: system, user or assistant.
func (c *Conversation) Say(role, content string) { c.turns = append(c.turns, turn{role, content}) }

// Encode returns the tokens of the conversation as the template writes it, up to the model's next
// turn. Special tokens in a turn are text.
func (c *Conversation) Encode() (*tokenizer.Encoding, error) {
	text, literal, err := c.prompt()
	if err != nil {
		return nil, err
	}
	return c.t.Encode(text, tokenizer.Options{NoSpecial: true, NoTruncation: true, NoPadding: true, Literal: literal})
}

// End returns the token that ends texts of the tokenizer, and so a turn of the model.
func (c *Conversation) End() (id int, ok bool) {
	name, _ := c.names["eos_token"].(string)
	return c.t.ID(name)
}

// prompt returns the whole conversation as the template writes it, and where special tokens are
// what somebody said.
func (c *Conversation) prompt() (text string, literal []tokenizer.Span, err error) {
	var messages []any
	for _, t := range c.turns {
		messages = append(messages, map[string]any{"role": t.role, "content": c.marked(t.content)})
	}
	variables := map[string]any{"messages": messages, "add_generation_prompt": true, "tools": nil, "documents": nil}
	maps.Copy(variables, c.names)
	rendered, err := c.template.Render(variables, time.Now())
	if err != nil {
		return "", nil, c.bad(err)
	}
	rendered = strings.ToValidUTF8(rendered, string(utf8.RuneError))
	text = strings.ReplaceAll(rendered, string(mark), "")
	last, at := 0, 0 // where the last character begins in the text, and the next one
	for _, r := range rendered {
		if r != mark {
			last, at = at, at+utf8.RuneLen(r)
			continue
		}
		literal = append(literal, tokenizer.Span{Start: last, End: max(at, last+c.specialAt(text[last:]))})
	}
	return text, literal, nil
}

// mark is a character that stands in no text. It is put into each special token that a turn
// has, behind the first character, so that those of the template can be told from it, while
// everything that a template does with the text comes to the same.
const mark = '\uFDD0'

// marked returns a text with marks.
func (c *Conversation) marked(text string) string {
	var b strings.Builder
	text = strings.ReplaceAll(text, string(mark), "")
	for i, r := range text {
		b.WriteRune(r)
		if c.specialAt(text[i:]) > 0 {
			b.WriteRune(mark)
		}
	}
	return b.String()
}

// specialAt returns how long the longest special token is with which a text begins.
func (c *Conversation) specialAt(text string) int {
	for _, s := range c.special {
		if strings.HasPrefix(text, s) {
			return len(s)
		}
	}
	return 0
}

// Template returns the chat template of a directory and the file that has it, or "".
func Template(dir string) (path, src string, err error) {
	path = filepath.Join(dir, "chat_template.jinja")
	data, err := os.ReadFile(path)
	if err == nil {
		return path, string(data), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	path = filepath.Join(dir, "tokenizer_config.json")
	if data, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	bad := func(format string, args ...any) (string, string, error) {
		return "", "", input.Errorf(path, format, args...)
	}
	if err := strictjson.Lenient(data, &config); err != nil {
		return bad("%v", err)
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

// specialNames returns the special tokens that tokenizer_config.json or
// special_tokens_map.json name, such as bos_token.
func specialNames(dir string) map[string]any {
	names := map[string]any{}
	for _, file := range []string{"special_tokens_map.json", "tokenizer_config.json"} {
		var config map[string]json.RawMessage
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || json.Unmarshal(data, &config) != nil {
			continue
		}
		for _, name := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
			var text string
			var object struct{ Content string }
			switch {
			case json.Unmarshal(config[name], &text) == nil && text != "":
				names[name] = text
			case json.Unmarshal(config[name], &object) == nil && object.Content != "":
				names[name] = object.Content
			}
		}
	}
	return names
}
