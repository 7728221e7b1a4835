package jinja

import "github.com/attn-go/attn/internal/quote"

// tests are the tests of "value is name".
var tests = map[string]builtin{
	"defined":   whether(func(v any) bool { return !is[undefined](v) }),
	"undefined": whether(is[undefined]),
	"none":      whether(func(v any) bool { return v == nil }),
	"boolean":   whether(is[bool]),
	"true":      whether(func(v any) bool { return v == true }),
	"false":     whether(func(v any) bool { return v == false }),
	"string":    whether(is[text]),
	"number":    whether(func(v any) bool { return is[number](v) || is[bool](v) }),
	"integer":   whether(is[number]),
	"float":     whether(func(any) bool { return false }), // there are no values with a fraction
	"mapping":   whether(is[*dict]),
	"iterable":  whether(func(v any) bool { return is[*list](v) || isSequence(v) }),
	"sequence":  whether(isSequence),
	"eq":        {"other", isEqual},
	"equalto":   {"other", isEqual},
}

func whether(holds func(v any) bool) builtin {
	return ofValue(func(_ *run, v any) bool { return holds(v) })
}

func isEqual(r *run, v any, a args) any { return r.equal(v, a.needed(0)) }

// is reports whether the type of a value is T.
func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isSequence(v any) bool {
	l, ok := v.(*list)
	return ok && l.kind <= rangeKind || is[text](v) || is[*dict](v) || is[undefined](v)
}

// applyTest evaluates "value is name".
func applyTest(r *run, name string, v any, g given) bool {
	t, ok := tests[name]
	if !ok {
		fail("test %s is not supported", quote.Text(name))
	}
	return t.apply(r, "test "+name, v, g).(bool)
}
