package jinja

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builtins are the functions that a template has.
var builtins = map[string]any{
	"raise_exception": function(func(r *run, a args) any {
		v, _ := a.take(0, "message")
		panic(failure{&Raised{r.str(v)}})
	}),
	"strftime_now": function(func(r *run, a args) any { return strftime(r.now, a.text(0, "format", "")) }),
	"range": function(func(r *run, a args) any {
		var n [3]int
		for i := range n {
			n[i] = a.int(i, "", 0)
		}
		a.done("range", 3)
		from, to, step := 0, n[0], 1
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
			made.items = append(made.items, int64(i))
		}
		r.charge(16 * len(made.items))
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
		for _, k := range d.keys {
			made.set(k, d.values[k])
		}
	}
	for _, name := range a.order {
		made.set(name, a.named[name])
	}
	r.charge(64 * len(made.keys))
	return made
}

// strftime writes a time in the form of C, in English.
func strftime(t time.Time, format string) string {
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
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}

// filters are those of Jinja that are known here.
var filters map[string]func(r *run, v any, a args) any

func init() { // they refer to each other by name
	filters = map[string]func(r *run, v any, a args) any{
		"trim":       func(r *run, v any, a args) any { return strip(r.str(v), a, true, true) },
		"upper":      func(r *run, v any, a args) any { return strings.ToUpper(r.str(v)) },
		"lower":      func(r *run, v any, a args) any { return strings.ToLower(r.str(v)) },
		"capitalize": func(r *run, v any, a args) any { return capitalize(r.str(v)) },
		"title":      func(r *run, v any, a args) any { return title(r.str(v)) },
		"string":     func(r *run, v any, a args) any { return r.str(v) },
		"length":     func(r *run, v any, a args) any { return int64(length(v)) },
		"list":       func(r *run, v any, a args) any { return &list{items: slices.Clone(iterate(r, v))} },
		"first": func(r *run, v any, a args) any {
			for _, x := range iterate(r, v) {
				return x
			}
			return undefined{"the first element"}
		},
		"last": func(r *run, v any, a args) any {
			all := iterate(r, v)
			if len(all) == 0 {
				return undefined{"the last element"}
			}
			return all[len(all)-1]
		},
		"reverse": func(r *run, v any, a args) any {
			all := slices.Clone(iterate(r, v))
			slices.Reverse(all)
			if _, ok := v.(string); ok {
				return join(r, "", all)
			}
			return &list{items: all, kind: iteratorKind}
		},
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
		"join": func(r *run, v any, a args) any {
			if _, ok := a.take(1, "attribute"); ok {
				fail("join by an attribute is not known")
			}
			return join(r, a.text(0, "d", ""), iterate(r, v))
		},
		"replace": func(r *run, v any, a args) any {
			return replace(r, r.str(v), a.text(0, "old", ""), a.text(1, "new", ""), a.int(2, "count", -1))
		},
		"int": func(r *run, v any, a args) any {
			if s, ok := v.(string); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
					return n
				}
				x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
				if err != nil {
					return int64(a.int(0, "default", 0))
				}
				v = x
			}
			switch n := numeric(v).(type) {
			case int64:
				return n
			case float64:
				if math.Abs(n) <= exact {
					return int64(n)
				}
				fail("the integer of %v", n)
			}
			return int64(a.int(0, "default", 0))
		},
		"float": func(r *run, v any, a args) any {
			if s, ok := v.(string); ok {
				if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
					return x
				}
			}
			if n := numeric(v); n != nil {
				return toFloat(n)
			}
			return 0.0
		},
		"abs": func(r *run, v any, a args) any {
			if n := numeric(v); n != nil && toFloat(n) < 0 {
				return arithmetic("*", n, int64(-1))
			} else if n != nil {
				return n
			}
			fail("abs of %s", typeName(v))
			return nil
		},
		"sum": func(r *run, v any, a args) any {
			var total any = int64(0)
			for _, x := range iterate(r, v) {
				n := numeric(x)
				if n == nil {
					fail("sum of %s", typeName(x))
				}
				total = arithmetic("+", total, n)
			}
			return total
		},
		"max": func(r *run, v any, a args) any { return extreme(r, v, 1) },
		"min": func(r *run, v any, a args) any { return extreme(r, v, -1) },
		"sort": func(r *run, v any, a args) any {
			all := slices.Clone(iterate(r, v))
			reverse := a.flag(0, "reverse")
			if _, ok := a.take(1, "case_sensitive"); ok {
				fail("sort with case_sensitive is not known")
			}
			key := func(x any) any {
				if s, ok := x.(string); ok {
					return strings.ToLower(s)
				}
				return x
			}
			by := a.text(2, "attribute", "")
			slices.SortStableFunc(all, func(x, y any) int {
				r.step()
				if by != "" {
					x, y = path(x, by), path(y, by)
				}
				c := r.order(key(x), key(y))
				if reverse {
					return -c
				}
				return c
			})
			return &list{items: all}
		},
		"unique": func(r *run, v any, a args) any {
			made := &list{kind: iteratorKind}
			for _, x := range iterate(r, v) {
				if s, ok := x.(string); !ok || strings.ToLower(s) != s {
					fail("unique of %s that is not lower case is not known", typeName(x))
				}
				if !slices.Contains(made.items, x) {
					made.items = append(made.items, x)
				}
				r.step()
			}
			return made
		},
		"map": func(r *run, v any, a args) any {
			made := &list{kind: iteratorKind}
			by := a.text(-1, "attribute", "")
			for _, x := range iterate(r, v) {
				r.step()
				if by != "" {
					x = path(x, by)
				} else {
					if len(a.list) == 0 {
						fail("map without a filter or an attribute")
					}
					x = applyFilter(r, r.str(a.list[0]), x, args{list: a.list[1:], named: map[string]any{}, used: map[string]bool{}})
				}
				made.items = append(made.items, x)
			}
			return made
		},
		"select":     func(r *run, v any, a args) any { return pick(r, v, a, 0, true) },
		"reject":     func(r *run, v any, a args) any { return pick(r, v, a, 0, false) },
		"selectattr": func(r *run, v any, a args) any { return pick(r, v, a, 1, true) },
		"rejectattr": func(r *run, v any, a args) any { return pick(r, v, a, 1, false) },
		"items": func(r *run, v any, a args) any {
			if d, ok := v.(*dict); ok {
				return &list{items: entries(r, d, "items"), kind: iteratorKind}
			}
			fail("items of %s", typeName(v))
			return nil
		},
		"dictsort": func(r *run, v any, a args) any {
			d, ok := v.(*dict)
			if !ok || len(a.list)+len(a.named) > 0 {
				fail("dictsort of %s, or with arguments, is not known", typeName(v))
			}
			all := entries(r, d, "items")
			slices.SortStableFunc(all, func(x, y any) int {
				return strings.Compare(strings.ToLower(x.(*list).items[0].(string)), strings.ToLower(y.(*list).items[0].(string)))
			})
			return &list{items: all}
		},
		"indent": func(r *run, v any, a args) any {
			by := strings.Repeat(" ", min(max(a.int(0, "width", 4), 0), 1000))
			first, blank := a.flag(1, "first"), a.flag(2, "blank")
			lines := strings.Split(r.str(v), "\n")
			for i := range lines {
				if r.charge(len(by)); i == 0 && first || i > 0 && (blank || lines[i] != "") {
					lines[i] = by + lines[i]
				}
			}
			return strings.Join(lines, "\n")
		},
		"format": func(r *run, v any, a args) any { return percent(r, r.str(v), &list{items: a.list, kind: tupleKind}) },
		"safe":   func(r *run, v any, a args) any { return v },
		"tojson": func(r *run, v any, a args) any {
			if truth(a.named["ensure_ascii"]) || a.named["separators"] != nil || truth(a.named["sort_keys"]) {
				fail("tojson with ensure_ascii, separators or sort_keys is not known")
			}
			a.take(0, "ensure_ascii")
			a.take(2, "separators")
			a.take(3, "sort_keys")
			var b strings.Builder
			writeJSON(r, &b, v, a.int(1, "indent", -1), 0)
			return b.String()
		},
	}
	filters["count"], filters["d"] = filters["length"], filters["default"]
}

// argumentsOf are how many arguments filters have that take any number up to one.
var argumentsOf = map[string]int{
	"trim": 1, "default": 2, "d": 2, "join": 2, "replace": 3, "int": 2, "sort": 3, "map": 100, "select": 100, "reject": 100,
	"selectattr": 100, "rejectattr": 100, "indent": 3, "format": 100, "tojson": 4, "float": 0,
}

func applyFilter(r *run, name string, v any, a args) any {
	f := filters[name]
	if f == nil {
		fail("filter %q is not known", name)
	}
	if s, ok := v.(string); ok {
		r.charge(len(s))
	}
	result := f(r, v, a)
	a.done("filter "+name, argumentsOf[name])
	return result
}

// path is an attribute of an element, or one of that, with dots between them.
func path(v any, names string) any {
	for name := range strings.SplitSeq(names, ".") {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			v = getItem(v, n)
			continue
		}
		v = getItem(v, name)
	}
	return v
}

func extreme(r *run, v any, sign int) any {
	all := iterate(r, v)
	if len(all) == 0 {
		return undefined{"the largest or smallest of nothing"}
	}
	best := all[0]
	for _, x := range all[1:] {
		if _, ok := x.(string); ok {
			fail("max and min of strings are not known")
		}
		if r.order(x, best)*sign > 0 {
			best = x
		}
	}
	return best
}

// pick is select, reject, selectattr and rejectattr: of what a test says of the elements, or
// of an attribute of each.
func pick(r *run, v any, a args, attributes int, want bool) any {
	if len(a.list) < attributes {
		fail("selectattr and rejectattr want an attribute")
	}
	made := &list{kind: iteratorKind}
	for _, x := range iterate(r, v) {
		r.step()
		value := x
		if attributes > 0 {
			value = path(x, r.str(a.list[0]))
		}
		holds := truth(value)
		if rest := a.list[attributes:]; len(rest) > 0 {
			holds = applyTest(r, r.str(rest[0]), value, args{list: rest[1:], named: map[string]any{}, used: map[string]bool{}})
		}
		if holds == want {
			made.items = append(made.items, x)
		}
	}
	return made
}

// title begins each word with a capital letter, as Jinja cuts words.
func title(s string) string {
	var b strings.Builder
	begins := true
	for _, r := range s {
		if begins {
			b.WriteString(strings.ToUpper(string(r)))
		} else {
			b.WriteString(strings.ToLower(string(r)))
		}
		begins = isSpace(r) || strings.ContainsRune("-({[<", r)
	}
	return b.String()
}

// writeJSON is json.dumps of Python with ensure_ascii=False; indent below 0 is one line.
func writeJSON(r *run, b *strings.Builder, v any, indent, depth int) {
	r.step()
	if depth > deepest {
		fail("values are nested more than %d deep", deepest)
	}
	line := func(depth int) {
		if indent >= 0 {
			b.WriteString("\n" + strings.Repeat(" ", min(indent, 100)*depth))
		}
	}
	comma := func(i int) {
		if i > 0 && indent < 0 {
			b.WriteString(", ")
		} else if i > 0 {
			b.WriteString(",")
		}
		line(depth + 1)
	}
	before := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			fail("tojson of %v", v)
		}
		b.WriteString(reprFloat(v))
	case string:
		writeJSONString(b, v)
	case *list:
		if v.kind > tupleKind {
			fail("tojson of %s", typeName(v))
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
			writeJSONString(b, k)
			b.WriteString(": ")
			writeJSON(r, b, v.values[k], indent, depth+1)
		}
		if len(v.keys) > 0 {
			line(depth)
		}
		b.WriteString("}")
	default:
		fail("tojson of %s", typeName(v))
	}
	r.charge(b.Len() - before)
}

func writeJSONString(b *strings.Builder, s string) {
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

// applyTest is "value is name".
func applyTest(r *run, name string, v any, a args) bool {
	other := func() any {
		x, ok := a.take(0, "other")
		if !ok {
			fail("test %q wants something to compare with", name)
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
	case "odd", "even", "divisibleby":
		n, ok := numeric(v).(int64)
		by := int64(2)
		if name == "divisibleby" {
			most = 1
			by, _ = numeric(other()).(int64)
		}
		if !ok || by == 0 {
			fail("test %q of %s", name, typeName(v))
		}
		holds = (n%by == 0) != (name == "odd")
	case "lower", "upper":
		s, ok := v.(string)
		if !ok {
			fail("test %q of %s", name, typeName(v))
		}
		holds = s != strings.ToUpper(s) && s == strings.ToLower(s)
		if name == "upper" {
			holds = s != strings.ToLower(s) && s == strings.ToUpper(s)
		}
	case "in":
		most = 1
		holds = contains(r, other(), v)
	default:
		op, ok := map[string]string{
			"eq": "==", "equalto": "==", "ne": "!=", "lt": "<", "lessthan": "<", "le": "<=", "gt": ">", "greaterthan": ">", "ge": ">=",
		}[name]
		if !ok {
			fail("test %q is not known", name)
		}
		most = 1
		holds = compares(r, op, v, other())
	}
	a.done("test "+name, most)
	return holds
}
