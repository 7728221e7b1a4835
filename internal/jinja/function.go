package jinja

import (
	"strings"
)

// builtins are the functions that a template has.
var builtins = map[string]any{
	"raise_exception": function(func(r *run, a args) any {
		v, _ := a.take(0, "message")
		panic(failure{&Raised{r.str(v)}})
	}),
	"strftime_now": function(func(r *run, a args) any { return strftime(r, a.text(0, "format", "")) }),
	"range": function(func(r *run, a args) any {
		var n [3]int64 // an int of 32 bits could run over
		for i := range n {
			n[i] = int64(a.int(i, "of range", 0))
		}
		a.done("range", 3)
		from, to, step := int64(0), n[0], int64(1)
		if len(a.list) > 1 {
			from, to = n[0], n[1]
		}
		if len(a.list) > 2 {
			step = n[2]
		}
		if len(a.list) == 0 || step == 0 {
			fail("range wants an end, and a step other than 0")
		}
		made := &list{kind: rangeKind}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if len(made.items) == 100_000 { // as in Jinja's sandbox
				fail("a range has more than 100000 numbers")
			}
			made.items = append(made.items, i)
		}
		r.charge(len(made.items), 16)
		return made
	}),
	"namespace": function(func(r *run, a args) any { return namespace{makeDict(r, a)} }),
	"dict":      function(func(r *run, a args) any { return makeDict(r, a) }),
}

func makeDict(r *run, a args) *dict {
	made := newDict()
	if v, ok := a.take(0, ""); ok {
		d, ok := v.(*dict)
		if !ok || len(a.list) > 1 {
			fail("a dict is made of %s, which is not known", typeName(v))
		}
		for i, k := range d.keys {
			made.set(r, k, d.values[i])
		}
	}
	for _, name := range a.order {
		made.set(r, name, a.named[name])
	}
	r.charge(len(made.keys), 64)
	return made
}

// strftime writes the time of the run in the form of C, in English.
func strftime(r *run, format string) string {
	r.charge(len(format), 16)
	layouts := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
		'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout, ok := layouts[format[i]]
		switch {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			fail("strftime_now with %%%c is not known", format[i])
		default:
			b.WriteString(r.now.Format(layout))
		}
	}
	return b.String()
}
