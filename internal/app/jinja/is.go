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
}

func whether(holds func(v any) bool) builtin {
	return ofValue(func(_ *run, v any) bool { return holds(v) })
}

// Each comparison is a test under the names that Jinja gives it, for select and selectattr: selectattr("role", "==",
// "user").
func init() {
	for op, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, "<=": {"le"}, ">": {"gt", "greaterthan"},
		">=": {"ge"}, "in": nil,
	} {
		for _, name := range append(names, op) {
			tests[name] = comparison(op)
		}
	}
}

// comparison returns the test that compares a value with its argument.
func comparison(op string) builtin {
	return builtin{"*", func(r *run, v any, a args) any {
		if a.only(""); len(a.list) != 1 {
			fail("%s has %d arguments, want 1", a.what, len(a.list))
		}
		return compares(r, op, v, a.list[0])
	}}
}

// is reports whether the type of a value is T.
func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// isSequence reports whether Jinja finds a length and an index. Undefined has both: that x is a sequence does not say
// that it is defined.
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
