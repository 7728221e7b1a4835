package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

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

// signed evaluates -v or +v.
func signed(sign string, v any) any {
	n := numeric(v)
	if n == nil {
		fail("%s is not defined for %s", sign, typeName(v))
	}
	if x, ok := n.(float64); ok && sign == "-" {
		return -x // also of 0
	} else if sign == "-" {
		return integers("-", 0, n.(int64))
	}
	return n
}

// binary evaluates x op y.
func binary(r *run, op string, x, y any) any {
	if op == "~" {
		p, q := r.str(x), r.str(y)
		r.charge(len(p)+len(q), 1)
		return p + q
	}
	if v, ok := sequences(r, op, x, y); ok {
		return v
	}
	m, n := numeric(x), numeric(y)
	if m == nil || n == nil {
		for _, v := range []any{y, x} {
			if u, ok := v.(undefined); ok {
				fail("%s is undefined", u.name)
			}
		}
		fail("%s is not defined for %s and %s", op, typeName(x), typeName(y))
	}
	return arithmetic(op, m, n)
}

// sequences evaluates operators on texts and lists.
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

// percent evaluates format % v, as Python does.
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
			fail("format %%%s of %s is not supported", format[i:i+size], typeName(values[0]))
		}
		values = values[1:]
	}
	if len(values) > 0 {
		fail("format %s has too many values", quote.Text(format))
	}
	return b.String()
}
