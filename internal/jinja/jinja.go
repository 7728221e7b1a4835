// Package jinja renders chat templates. It supports the part of Jinja 2 that the templates of language models use in a
// text-only chat, with the settings and functions of transformers' apply_chat_template.
//
// A template comes with a model and is not trusted. It can read only its variables, and its work is limited. The rest
// of Jinja is an error: unsupported syntax when the template is parsed, an unsupported name or value when it is used.
package jinja

import (
	"fmt"
	"time"
)

// Template is a parsed template. It is thread-safe.
type Template struct {
	body []statement
	most work
}

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
	p := &parser{tokens: lex(src)}
	return &Template{p.body(), usualWork}, nil
}

// Raised is an error that a template reports about its input by raise_exception.
type Raised struct{ Message string }

// Error returns the message.
func (e *Raised) Error() string { return e.Message }

// Render returns the text of a template. The values of variables are nil, bool, int, int64, string, []any and
// map[string]any, nested as needed; the keys of a map are in alphabetical order. now is the time for strftime_now.
//
// Errors: a *Raised; unsupported features; operations that Jinja rejects; more work or text than a chat can need.
func (t *Template) Render(variables map[string]any, now time.Time) (s string, err error) {
	defer catch(&err)
	r := &run{now: now, left: t.most}
	top := &scope{names: map[string]any{}}
	for name, v := range builtins {
		top.names[name] = v
	}
	for name, v := range variables {
		top.names[name] = fromGo(r, v)
	}
	r.all(t.body, &scope{names: map[string]any{}, outer: top})
	return r.out.String(), nil
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
