package jinja

import (
	"encoding/json"
	"strconv"
	"strings"
)

// toJSON is the filter tojson of transformers. Jinja's own escapes the characters of HTML and sorts the keys of dicts,
// and its arguments are others: schemas of tools would not be those that a model was trained with.
func toJSON(r *run, v any, a args) any {
	if a.flag(0) {
		fail("tojson with ensure_ascii is not supported")
	}
	var b strings.Builder
	writeJSON(r, &b, v, a.int(1, -1), 0)
	return written(r, b.String(), v)
}

// writeJSON is Python's json.dumps with ensure_ascii=False. A negative indent writes one line.
func writeJSON(r *run, b *strings.Builder, v any, indent, depth int) {
	r.step()
	if depth > deepest {
		fail("values are nested more than %d deep", deepest)
	}
	line := func(depth int) {
		if indent >= 0 {
			r.charge(indent, depth)
			b.WriteString("\n" + strings.Repeat(" ", indent*depth))
		}
	}
	comma := func(i int) {
		// Python has a space after a comma only where the line continues.
		if i > 0 && indent < 0 {
			b.WriteString(", ")
		} else if i > 0 {
			b.WriteString(",")
		}
		line(depth + 1)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case number:
		b.WriteString(strconv.FormatInt(v.n, 10))
	case text:
		writeJSONString(r, b, v.s)
	case *list:
		if v.kind > tupleKind {
			fail("tojson of %s is not supported", typeName(v))
		}
		b.WriteString("[")
		for i, x := range v.items {
			comma(i)
			writeJSON(r, b, x, indent, depth+1)
		}
		if len(v.items) > 0 {
			line(depth)
		}
		b.WriteString("]")
	case *dict:
		b.WriteString("{")
		for i, k := range v.keys {
			comma(i)
			writeJSONString(r, b, r.str(k).s)
			b.WriteString(": ")
			writeJSON(r, b, v.values[i], indent, depth+1)
		}
		if len(v.keys) > 0 {
			line(depth)
		}
		b.WriteString("}")
	default:
		fail("tojson of %s is not supported", typeName(v))
	}
}

func writeJSONString(r *run, b *strings.Builder, s string) {
	// Not json.Marshal: it escapes <, > and &, and U+2028, which Python writes as they are.
	r.charge(len(s), 6) // the maximum size with escapes
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < 0x20:
			if i := strings.IndexRune("\b\f\n\r\t", c); i >= 0 {
				b.WriteString(`\` + "bfnrt"[i:i+1])
				continue
			}
			text, _ := json.Marshal(string(c))
			b.Write(text[1 : len(text)-1])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}
