// Package jinja renders chat templates. It supports the part of Jinja 2 that the templates of language models use in a
// text-only chat, with the settings and functions of transformers' apply_chat_template.
//
// A template comes with a model and is not trusted. It can read only its variables, and its work is limited. The rest
// of Jinja is an error: unsupported syntax when the template is parsed, an unsupported name or value when it is used.
// So is every operation that might give another text than Python does. A chat that is refused is noticed, but a prompt
// that differs from those of training by a space only makes the answers of a model worse.
//
//	lex.go                         text and tags to tokens, without the white space that tags remove
//	parse.go, parse_expression.go  tokens to Go functions: one for each statement and each expression
//	statement.go                   runs them, with the names of each scope
//	value.go, text.go              Python's values
//	filter.go, is.go, method.go    what templates call
//	work.go                        limits
//
// There is no tree between the tokens and the functions: a template is only ever run, so a tree would describe each
// construct a second time.
//
// Render also returns which bytes come from the user, because a tokenizer must not find special tokens in these. So a
// text has a mark for each of its bytes, and every operation moves the marks with the bytes: see text.
package jinja

import (
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is thread-safe.
type Template struct {
	body []statement
	most work
}

// invalid replaces bytes that are not UTF-8.
const invalid = "\uFFFD"

// longest is the maximum size of a template in bytes.
const longest = 1 << 20

// Parse parses a template.
//
// Errors: text that is not a template, and unsupported statements.
func Parse(src string) (t *Template, err error) {
	defer catch(&err)
	if len(src) > longest {
		return nil, fmt.Errorf("the template has %d bytes, want at most %d", len(src), longest)
	}
	p := &parser{tokens: lex(strings.ToValidUTF8(src, invalid))}
	return &Template{p.body(), usualWork}, nil
}

// Raised is an error that a template reports about its input by raise_exception.
type Raised struct{ Message string }

// Error returns the message.
func (e *Raised) Error() string { return e.Message }

// Trusted is a string that counts as text of the template, such as the name of a special token.
type Trusted string

// Map is a dict, in the order of its source.
type Map []Entry

// Entry is an element of a Map.
type Entry struct {
	Key   string
	Value any
}

// Span is a range of bytes of a text: text[Start:End].
type Span struct{ Start, End int }

// Render returns the text of a template, and which parts of it come from the user. The values of variables are nil,
// bool, int, int64, string, Trusted, []any and Map, nested as needed. now is the time for strftime_now.
//
// Numbers, strings that are not Trusted, and keys of a Map are the user's. So is what a template computes from them,
// but text that it writes in their place or between them is its own. A list or dict that is written as text is the
// user's if any part of it is.
//
// Errors: a *Raised; unsupported features; operations that Jinja rejects; more work or text than a chat can need.
func (t *Template) Render(variables map[string]any, now time.Time) (s string, user []Span, err error) {
	defer catch(&err)
	r := &run{now: now, left: t.most}
	r.out = &writer{r: r}
	top := &scope{names: map[string]any{}}
	for name, v := range builtins {
		top.names[name] = v
	}
	for name, v := range variables {
		top.names[name] = fromGo(r, v)
	}
	r.all(t.body, &scope{names: map[string]any{}, outer: top})
	out := r.out.text()
	return out.s, out.spans(), nil
}

// catch turns a failure into an error.
func catch(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.error
	default:
		panic(f)
	}
}

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
