package jinja

import "strings"

// builtins are the functions that a template can call.
var builtins = map[string]any{
	"raise_exception": function(func(r *run, g given) any {
		panic(failure{&Raised{r.str(bind("raise_exception", []string{"message"}, g).needed(0)).s}})
	}),
	"strftime_now": function(func(r *run, g given) any {
		return strftime(r, bind("strftime_now", []string{"format"}, g).text(0))
	}),
	"range":     function(rangeOf),
	"namespace": function(newNamespace),
}

// rangeOf is Python's range. The numbers are made at once, because values are lists; the limit bounds them.
func rangeOf(r *run, g given) any {
	var n [3]number
	for i, v := range bind("range", []string{"0", "1", "2"}, g).list { // range has no named parameters
		var ok bool
		if n[i], ok = v.(number); !ok {
			fail("range of %s, want integers", typeName(v))
		}
	}
	from, to, step := int64(0), n[0].n, int64(1)
	if len(g.list) > 1 {
		from, to = n[0].n, n[1].n
	}
	if len(g.list) > 2 {
		step = n[2].n
	}
	if len(g.list) == 0 || step == 0 {
		fail("range needs an end, and a step other than 0")
	}
	made := &list{kind: rangeKind}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(made.items) == 100_000 { // as in Jinja's sandbox
			fail("a range has more than 100000 numbers")
		}
		made.items = append(made.items, number{i, n[0].user || n[1].user || n[2].user})
	}
	r.charge(len(made.items), 16)
	return made
}

// newNamespace returns an object whose attributes can be set: the only value of a template that changes.
func newNamespace(r *run, g given) any {
	if len(g.list) > 0 {
		fail("a namespace of %s is not supported", typeName(g.list[0]))
	}
	made := newDict()
	for i, name := range g.names {
		made.set(r, text{s: name}, g.named[i])
	}
	r.charge(len(made.keys), 64)
	return namespace{made}
}

// timeLayouts maps the formats of C to the layouts of Go.
var timeLayouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05",
}

// strftime formats the time of the run, with a format of C and names in English.
// A date is a part of many system prompts, so a format that Go does not have must not be left out.
func strftime(r *run, as text) text {
	format := as.s
	r.charge(len(format), 16)
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout, ok := timeLayouts[format[i]]
		if !ok && format[i] != '%' {
			fail("strftime_now with %%%c is not supported", format[i])
		}
		if !ok {
			layout = "%"
		}
		b.WriteString(r.now.Format(layout))
	}
	return written(r, b.String(), as)
}
