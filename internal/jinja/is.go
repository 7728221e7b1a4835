package jinja

import (
	"github.com/attn-go/attn/internal/quote"
)

// applyTest is "value is name".
func applyTest(r *run, name string, v any, a args) bool {
	other := func() any {
		x, ok := a.take(0, "other")
		if !ok {
			fail("test %s wants something to compare with", quote.Text(name))
		}
		return x
	}
	_, isUndefined := v.(undefined)
	_, isBool := v.(bool)
	most := 0
	var holds bool
	switch name {
	case "defined":
		holds = !isUndefined
	case "undefined":
		holds = isUndefined
	case "none":
		holds = v == nil
	case "boolean":
		holds = isBool
	case "true", "false":
		holds = isBool && v.(bool) == (name == "true")
	case "string":
		_, holds = v.(string)
	case "number":
		holds = numeric(v) != nil
	case "integer":
		_, holds = v.(int64)
	case "float":
		_, holds = v.(float64)
	case "mapping":
		_, holds = v.(*dict)
	case "sequence":
		switch x := v.(type) {
		case string, *dict, undefined:
			holds = true
		case *list:
			holds = x.kind <= rangeKind
		}
	case "iterable":
		switch v.(type) {
		case string, *dict, *list, undefined:
			holds = true
		}
	case "callable":
		_, holds = v.(function)
		holds = holds || isUndefined // which fails when it is called
	case "odd", "even", "divisibleby":
		n, ok := numeric(v).(int64)
		var by any = int64(2)
		if name == "divisibleby" {
			most = 1
			by = other()
		}
		d, isInt := numeric(by).(int64)
		if !ok || !isInt || d == 0 {
			fail("test %s of %s and %s, want integers other than 0", quote.Text(name), typeName(v), typeName(by))
		}
		holds = (n%d == 0) != (name == "odd")
	case "lower", "upper":
		s, ok := v.(string)
		if !ok {
			fail("test %s of %s", quote.Text(name), typeName(v))
		}
		lower, upper := lower(r, s), upper(r, s)
		holds = s == lower && s != upper
		if name == "upper" {
			holds = s == upper && s != lower
		}
	case "in":
		most = 1
		holds = contains(r, other(), v)
	default:
		op, ok := map[string]string{
			"eq": "==", "equalto": "==", "ne": "!=", "lt": "<", "lessthan": "<", "le": "<=", "gt": ">", "greaterthan": ">", "ge": ">=",
		}[name]
		if !ok {
			fail("test %s is not known", quote.Text(name))
		}
		most = 1
		holds = compares(r, op, v, other())
	}
	a.done("test "+name, most)
	return holds
}
