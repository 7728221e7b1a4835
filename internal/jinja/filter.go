package jinja

import (
	"github.com/attn-go/attn/internal/quote"
)

// filters are those of Jinja that are known here.
var filters map[string]func(r *run, v any, a args) any

func init() { // they refer to each other by name
	filters = map[string]func(r *run, v any, a args) any{
		"trim":       func(r *run, v any, a args) any { return strip(r.str(v), a, true, true) },
		"upper":      func(r *run, v any, a args) any { return upper(r, r.str(v)) },
		"lower":      func(r *run, v any, a args) any { return lower(r, r.str(v)) },
		"capitalize": func(r *run, v any, a args) any { return capitalize(r, r.str(v)) },
		"title":      func(r *run, v any, a args) any { return title(r, r.str(v)) },
		"string":     func(r *run, v any, a args) any { return r.str(v) },
		"replace": func(r *run, v any, a args) any {
			return replace(r, r.str(v), a.needed(0, "old"), a.needed(1, "new"), a.int(2, "count", -1))
		},
		"indent": func(r *run, v any, a args) any {
			s, ok := v.(string)
			if !ok {
				fail("indent of %s, want a string", typeName(v))
			}
			return indent(r, s, a)
		},
		"format": func(r *run, v any, a args) any { return percent(r, r.str(v), &list{items: a.list, kind: tupleKind}) },
		"safe":   func(r *run, v any, a args) any { return v },
		"tojson": toJSON,

		"default": func(r *run, v any, a args) any {
			usual, ok := a.take(0, "default_value")
			if !ok {
				usual = ""
			}
			if _, un := v.(undefined); un || a.flag(1, "boolean") && !truth(v) {
				return usual
			}
			return v
		},

		"int":   toInteger,
		"float": toNumber,
		"abs":   absolute,
		"sum":   sum,
		"max":   func(r *run, v any, a args) any { return extreme(r, v, 1) },
		"min":   func(r *run, v any, a args) any { return extreme(r, v, -1) },

		"length":     func(r *run, v any, a args) any { return int64(length(r, v)) },
		"list":       func(r *run, v any, a args) any { return &list{items: copied(r, v)} },
		"first":      first,
		"last":       last,
		"reverse":    reverse,
		"join":       joined,
		"sort":       sorted,
		"unique":     unique,
		"map":        mapped,
		"select":     func(r *run, v any, a args) any { return pick(r, v, a, 0, true) },
		"reject":     func(r *run, v any, a args) any { return pick(r, v, a, 0, false) },
		"selectattr": func(r *run, v any, a args) any { return pick(r, v, a, 1, true) },
		"rejectattr": func(r *run, v any, a args) any { return pick(r, v, a, 1, false) },
		"items":      items,
		"dictsort":   sortedItems,
	}
	filters["count"], filters["d"] = filters["length"], filters["default"]
}

// argumentsOf are how many arguments without a name filters take that take any.
var argumentsOf = map[string]int{
	"trim": 1, "default": 2, "d": 2, "join": 2, "replace": 3, "int": 1, "sort": 3, "map": 100, "select": 100, "reject": 100,
	"selectattr": 100, "rejectattr": 100, "indent": 3, "format": 100, "tojson": 4, "float": 0,
}

func applyFilter(r *run, name string, v any, a args) any {
	f := filters[name]
	if f == nil {
		fail("filter %s is not known", quote.Text(name))
	}
	if s, ok := v.(string); ok {
		r.charge(len(s), 1)
	}
	result := f(r, v, a)
	a.done("filter "+name, argumentsOf[name])
	return result
}
