// Package jinja renders chat templates: the part of Jinja 2 that the templates of language
// models are written in, with the settings and functions of transformers' apply_chat_template.
//
// A template comes with a model and is not trusted. It reads what it is given and nothing
// else, and the work that it may do is bounded. What this package does not know is an error
// that names it, where the template comes to it, and never a guess.
package jinja

import (
	"fmt"
	"time"
)

// Template is a template that has been read. Any number of goroutines may use it.
type Template struct {
	body []statement
	most work
}

// longest is the size of a template in bytes.
const longest = 1 << 20

// Parse reads a template.
//
// Errors: text that is no template, and statements that this package does not know.
func Parse(src string) (t *Template, err error) {
	defer catch(&err)
	if len(src) > longest {
		return nil, fmt.Errorf("the template has %d bytes, want at most %d", len(src), longest)
	}
	p := &parser{tokens: lex(src)}
	return &Template{p.body(), usualWork}, nil
}

// Raised is what a template says about its input by raise_exception.
type Raised struct{ Message string }

// Error returns the message.
func (e *Raised) Error() string { return e.Message }

// Render returns the text of a template. The values of variables are nil, bool, int, float64,
// string, []any and map[string]any, and what consists of these; the keys of a map come in
// alphabetical order. now is the time of strftime_now.
//
// Errors: a *Raised; what this package does not know; operations that Jinja refuses; more
// work or text than a chat can need.
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
