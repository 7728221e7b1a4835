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
	"string":    whether(is[string]),
	"number":    whether(func(v any) bool { return numeric(v) != nil }),
	"integer":   whether(is[int64]),
	"float":     whether(is[float64]),
	"mapping":   whether(is[*dict]),
	// An undefined value counts as callable; calling it fails.
	"callable":    whether(func(v any) bool { return is[function](v) || is[undefined](v) }),
	"iterable":    whether(func(v any) bool { return is[*list](v) || isSequence(v) }),
	"sequence":    whether(isSequence),
	"odd":         whether(func(v any) bool { return !divides("odd", v, int64(2)) }),
	"even":        whether(func(v any) bool { return divides("even", v, int64(2)) }),
	"divisibleby": {"other", func(_ *run, v any, a args) any { return divides("divisibleby", v, a.needed(0)) }},
	"lower":       ofValue(func(r *run, v any) bool { return isCase(r, "lower", v, lower, upper) }),
	"upper":       ofValue(func(r *run, v any) bool { return isCase(r, "upper", v, upper, lower) }),
	"in":          relation("in"),
	"eq":          relation("=="), "equalto": relation("=="), "ne": relation("!="),
	"lt": relation("<"), "lessthan": relation("<"), "le": relation("<="),
	"gt": relation(">"), "greaterthan": relation(">"), "ge": relation(">="),
}

func whether(holds func(v any) bool) builtin {
	return ofValue(func(_ *run, v any) bool { return holds(v) })
}

func relation(op string) builtin {
	return builtin{"other", func(r *run, v any, a args) any { return compares(r, op, v, a.needed(0)) }}
}

// is reports whether the type of a value is T.
func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isSequence(v any) bool {
	l, ok := v.(*list)
	return ok && l.kind <= rangeKind || is[string](v) || is[*dict](v) || is[undefined](v)
}

func divides(test string, v, by any) bool {
	n, ok := numeric(v).(int64)
	d, isInt := numeric(by).(int64)
	if !ok || !isInt || d == 0 {
		fail("test %s of %s and %s, want integers other than 0", quote.Text(test), typeName(v), typeName(by))
	}
	return n%d == 0
}

func isCase(r *run, test string, v any, same, other func(*run, string) string) bool {
	s, ok := v.(string)
	if !ok {
		fail("test %s of %s, want a string", quote.Text(test), typeName(v))
	}
	return s == same(r, s) && s != other(r, s)
}

// applyTest evaluates "value is name".
func applyTest(r *run, name string, v any, g given) bool {
	t, ok := tests[name]
	if !ok {
		fail("test %s is not supported", quote.Text(name))
	}
	return t.apply(r, "test "+name, v, g).(bool)
}
