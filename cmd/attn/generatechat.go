package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/jinja"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// chat is a conversation with a model, in the form of its chat template.
type chat struct {
	path     string // of the template
	template *jinja.Template
	names    map[string]any // special tokens by the names that templates know
	special  []string       // all special tokens, longest first
	t        *tokenizer.Tokenizer
	messages []any
}

// openChat reads the chat template of a directory.
func openChat(dir string, m *models.Model, t *tokenizer.Tokenizer) (*chat, error) {
	path, src, err := chatTemplate(dir)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, input.Errorf(dir, "has no chat template, want chat_template.jinja, or chat_template in tokenizer_config.json: it is no model for chats")
	}
	c := &chat{path: path, names: specialNames(dir), t: t}
	if c.template, err = jinja.Parse(src); err != nil {
		return nil, c.bad(err)
	}
	for id := range max(t.Size(), m.Sizes().Vocabulary) {
		if token, ok := t.Token(id); ok && t.IsSpecial(id) {
			c.special = append(c.special, token)
		}
	}
	slices.SortStableFunc(c.special, func(a, b string) int { return len(b) - len(a) })
	return c, nil
}

func (c *chat) bad(err error) error {
	return input.Errorf(c.path, "chat template: %w", err)
}

// chatTemplate returns the chat template of a directory and the file that has it, or "".
func chatTemplate(dir string) (path, src string, err error) {
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

// say adds a turn.
func (c *chat) say(role, content string) {
	c.messages = append(c.messages, map[string]any{"role": role, "content": content})
}

// mark is a character that stands in no text. It is put into each special token that a turn
// has, behind the first character, so that those of the template can be told from it, while
// everything that a template does with the text comes to the same.
const mark = '\uFDD0'

// marked returns a text with marks.
func (c *chat) marked(text string) string {
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
func (c *chat) specialAt(text string) int {
	for _, s := range c.special {
		if strings.HasPrefix(text, s) {
			return len(s)
		}
	}
	return 0
}

// prompt returns the whole conversation as the template writes it, and where special tokens
// are what somebody said.
func (c *chat) prompt() (text string, literal []tokenizer.Span, err error) {
	var messages []any
	for _, m := range c.messages {
		m := m.(map[string]any)
		messages = append(messages, map[string]any{"role": m["role"], "content": c.marked(m["content"].(string))})
	}
	variables := map[string]any{"messages": messages, "add_generation_prompt": true, "tools": nil, "documents": nil}
	for name, token := range c.names {
		variables[name] = token
	}
	rendered, err := c.template.Render(variables, time.Now())
	if err != nil {
		return "", nil, c.bad(err)
	}
	var b strings.Builder
	var begins []int
	last := 0
	for _, r := range rendered {
		if r == mark {
			begins = append(begins, last)
			continue
		}
		last = b.Len()
		b.WriteRune(r)
	}
	text = b.String()
	for _, at := range begins {
		_, n := utf8.DecodeRuneInString(text[at:])
		literal = append(literal, tokenizer.Span{Start: at, End: at + max(n, c.specialAt(text[at:]))})
	}
	return text, literal, nil
}

// encoded returns the tokens of the conversation.
func (c *chat) encoded() (*tokenizer.Encoding, error) {
	text, literal, err := c.prompt()
	if err != nil {
		return nil, err
	}
	return c.t.Encode(text, tokenizer.Options{NoSpecial: true, NoTruncation: true, NoPadding: true, Literal: literal})
}

// ends returns the tokens at which an answer ends: those of the model, and the one that ends
// texts of the tokenizer.
func (c *chat) ends(m *models.Model) ([]int, error) {
	ends, err := m.EndTokens()
	if err != nil {
		return nil, err
	}
	if name, ok := c.names["eos_token"].(string); ok {
		if id, ok := c.t.ID(name); ok && !slices.Contains(ends, id) {
			ends = append(slices.Clone(ends), id)
		}
	}
	return ends, nil
}

// converse answers the prompt, or each line of standard input.
func (cmd *generateCommand) converse(ctx context.Context, c console, m *models.Model, t *tokenizer.Tokenizer) error {
	talk, err := openChat(cmd.Model, m, t)
	if err != nil {
		return err
	}
	ends, err := talk.ends(m)
	if err != nil {
		return err
	}
	if cmd.System != nil {
		talk.say("system", *cmd.System)
	}
	var session *models.Session // an encoder-decoder has none: it reads its source at once
	if m.Sizes().Decoder == nil {
		if session, err = m.NewSession(attn.CacheConfig{}); err != nil {
			return err
		}
	}
	turn := func(name string, line int, said string) error {
		talk.say("user", said)
		e, err := talk.encoded()
		if err == nil {
			err = cmd.fits(m, e)
		}
		if err != nil {
			if errors.As(err, new(*input.Error)) {
				return err
			}
			return &input.Error{Name: name, Line: line, Err: err}
		}
		answer, err := cmd.write(ctx, c, m, session, t, e, ends)
		talk.say("assistant", answer)
		return err
	}
	if cmd.Prompt != nil {
		return turn("argument", 0, *cmd.Prompt)
	}
	c.invite("each line is answered; " + endOfInput() + " ends it")
	lines := bufio.NewScanner(c.in)
	lines.Buffer(nil, longestPrompt)
	line := 1
	for ; lines.Scan(); line++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := turn("standard input", line, strings.TrimSuffix(lines.Text(), "\r")); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &input.Error{Name: "standard input", Line: line, Err: fmt.Errorf("line longer than %d bytes", longestPrompt)}
	} else if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}
