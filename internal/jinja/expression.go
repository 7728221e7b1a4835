package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

type constant struct{ value any }

func (c constant) eval(*run, *scope) any { return c.value }

type variable string

func (v variable) eval(_ *run, s *scope) any {
	if value, ok := s.lookup(string(v)); ok {
		return value
	}
	return undefined{string(v)}
}

type listOf struct {
	items []expression
	kind  listKind
}

func (l listOf) eval(r *run, s *scope) any {
	r.charge(len(l.items), 16)
	made := &list{kind: l.kind}
	for _, x := range l.items {
		made.items = append(made.items, r.value(x, s))
	}
	return made
}

type dictOf struct{ keys, values []expression }

func (d dictOf) eval(r *run, s *scope) any {
	r.charge(len(d.keys), 64)
	made := newDict()
	for i, key := range d.keys {
		k := r.value(key, s)
		made.set(r, k, r.value(d.values[i], s))
	}
	return made
}

type conditional struct{ condition, then, otherwise expression }

func (c conditional) eval(r *run, s *scope) any {
	switch {
	case truth(r.value(c.condition, s)):
		return r.value(c.then, s)
	case c.otherwise != nil:
		return r.value(c.otherwise, s)
	}
	return undefined{"the value of an if without else"}
}

type logical struct {
	op   string
	a, b expression
}

func (l logical) eval(r *run, s *scope) any {
	a := r.value(l.a, s)
	if truth(a) == (l.op == "or") {
		return a
	}
	return r.value(l.b, s)
}

type unary struct {
	op string
	x  expression
}

func (u unary) eval(r *run, s *scope) any {
	v := r.value(u.x, s)
	if u.op == "not" {
		return !truth(v)
	}
	switch n := numeric(v).(type) {
	case int64:
		if u.op == "-" {
			return integers("-", 0, n)
		}
		return n
	case float64:
		if u.op == "-" {
			return -n
		}
		return n
	}
	fail("%s of %s", u.op, typeName(v))
	return nil
}

type comparison struct {
	first expression
	ops   []string
	rest  []expression
}

func (c comparison) eval(r *run, s *scope) any {
	a := r.value(c.first, s)
	for i, op := range c.ops {
		b := r.value(c.rest[i], s)
		if !compares(r, op, a, b) {
			return false
		}
		a = b
	}
	return true
}

func compares(r *run, op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return contains(r, b, a)
	case "not in":
		return !contains(r, b, a)
	}
	c := r.order(a, b)
	return op == "<" && c < 0 || op == "<=" && c <= 0 || op == ">" && c > 0 || op == ">=" && c >= 0
}

type binary struct {
	op   string
	a, b expression
}

func (b binary) eval(r *run, s *scope) any {
	x, y := r.value(b.a, s), r.value(b.b, s)
	if b.op == "~" {
		p, q := r.str(x), r.str(y)
		r.charge(len(p)+len(q), 1)
		return p + q
	}
	if v, ok := sequences(r, b.op, x, y); ok {
		return v
	}
	m, n := numeric(x), numeric(y)
	if m == nil || n == nil {
		if op, ok := y.(undefined); ok {
			x = op
		}
		if u, ok := x.(undefined); ok {
			fail("%s is undefined", u.name)
		}
		fail("%s between %s and %s", b.op, typeName(x), typeName(y))
	}
	return arithmetic(b.op, m, n)
}

// sequences are operators of texts and lists.
func sequences(r *run, op string, x, y any) (any, bool) {
	switch a := x.(type) {
	case string:
		b, isText := y.(string)
		n, isInt := y.(int64)
		switch {
		case op == "+" && isText:
			r.charge(len(a)+len(b), 1)
			return a + b, true
		case op == "*" && isInt:
			return repeated(r, a, n), true
		case op == "%":
			return percent(r, a, y), true
		}
	case int64:
		if b, ok := y.(string); ok && op == "*" {
			return repeated(r, b, a), true
		}
	case *list:
		if b, ok := y.(*list); ok && op == "+" && a.kind == b.kind && a.kind <= tupleKind {
			r.charge(len(a.items)+len(b.items), 16)
			return &list{items: append(append([]any{}, a.items...), b.items...), kind: a.kind}, true
		}
	}
	return nil, false
}

func repeated(r *run, s string, n int64) string {
	if s == "" || n <= 0 {
		return ""
	}
	r.charge(len(s), int(min(n, 1<<30)))
	return strings.Repeat(s, int(n))
}

// percent is text % values of Python.
func percent(r *run, format string, v any) string {
	values := []any{v}
	if l, ok := v.(*list); ok && l.kind == tupleKind {
		values = l.items
	}
	r.charge(len(format), 8)
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i == len(format) {
			fail("format %s ends in %%", quote.Text(format))
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(values) == 0 {
			fail("format %s has too few values", quote.Text(format))
		}
		n, isInt := numeric(values[0]).(int64)
		switch {
		case format[i] == 's':
			text := r.str(values[0])
			r.charge(len(text), 1)
			b.WriteString(text)
		case format[i] == 'd' && isInt:
			fmt.Fprint(&b, n)
		default:
			_, size := utf8.DecodeRuneInString(format[i:])
			fail("format %%%s of %s is not known", format[i:i+size], typeName(values[0]))
		}
		values = values[1:]
	}
	if len(values) > 0 {
		fail("format %s has too many values", quote.Text(format))
	}
	return b.String()
}
