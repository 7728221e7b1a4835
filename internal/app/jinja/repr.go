package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str: the text that a template writes for a value.
// Undefined is written as nothing, which is why a misspelled name in a template shows no error.
func (r *run) str(v any) text {
	switch v := v.(type) {
	case text:
		return v
	case undefined:
		return text{}
	}
	return written(r, r.repr(v, 0), v)
}

// repr is Python's repr.
func (r *run) repr(v any, depth int) string {
	r.step()
	if depth > deepest {
		fail("values are nested more than %d deep", deepest)
	}
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case number:
		return strconv.FormatInt(v.n, 10)
	case text:
		r.charge(len(v.s), 4) // the maximum size with escapes
		return reprString(v.s)
	case *list:
		var parts []string
		for _, x := range v.items {
			parts = append(parts, r.repr(x, depth+1))
		}
		text := strings.Join(parts, ", ")
		r.charge(len(text), 1)
		switch {
		case v.kind == listKindList:
			return "[" + text + "]"
		case v.kind == tupleKind && len(parts) == 1:
			return "(" + text + ",)"
		case v.kind == tupleKind:
			return "(" + text + ")"
		}
	case *dict:
		var parts []string
		for i, k := range v.keys {
			parts = append(parts, r.repr(k, depth+1)+": "+r.repr(v.values[i], depth+1))
		}
		text := strings.Join(parts, ", ")
		r.charge(len(text), 1)
		return "{" + text + "}"
	}
	fail("%s cannot be written as text", typeName(v))
	return ""
}

// reprString is Python's repr of a string: in single quotes, unless it has these and no double quotes.
func reprString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
