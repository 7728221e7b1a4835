package jinja

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// run is a template at work.
type run struct {
	out   strings.Builder
	now   time.Time
	steps int
	bytes int
	calls int
}

// Bounds of the work of a template.
const (
	mostSteps = 1_000_000
	mostBytes = 1 << 28 // of all texts and lists that it makes on the way
	mostCalls = 100     // of macros within macros
)

func (r *run) step() {
	if r.steps++; r.steps > mostSteps {
		panic(failure{errWork})
	}
}

// charge counts memory before it is taken.
func (r *run) charge(n int) {
	if r.bytes += n; r.bytes > mostBytes || n < 0 {
		panic(failure{errWork})
	}
}

// scope is where names have values. Statements set them in the innermost one.
type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) inner() *scope { return &scope{names: map[string]any{}, outer: s} }

// statement is a part of a template that is run, and expression one that has a value.
type (
	statement  interface{ exec(r *run, s *scope) jump }
	expression interface{ eval(r *run, s *scope) any }
)

// jump is "break" or "continue" on its way to its loop.
type jump string

func (j jump) exec(*run, *scope) jump { return j }

func (r *run) all(list []statement, s *scope) jump {
	for _, x := range list {
		r.step()
		if j := x.exec(r, s); j != "" {
			return j
		}
	}
	return ""
}

// sequence is a block without a meaning of its own.
type sequence []statement

func (q sequence) exec(r *run, s *scope) jump { return r.all(q, s.inner()) }

type output struct{ value expression }

func (o output) exec(r *run, s *scope) jump {
	text := r.str(o.value.eval(r, s))
	r.charge(len(text))
	r.out.WriteString(text)
	return ""
}

type branch struct {
	condition       expression
	then, otherwise []statement
}

func (b branch) exec(r *run, s *scope) jump {
	if truth(b.condition.eval(r, s)) {
		return r.all(b.then, s)
	}
	return r.all(b.otherwise, s)
}

type loop struct {
	names           []string
	over, filter    expression
	body, otherwise []statement
}

func (l loop) exec(r *run, s *scope) jump {
	var chosen []any
	for _, v := range iterate(r, l.over.eval(r, s)) {
		if l.filter != nil {
			r.step()
			inner := s.inner()
			bind(inner, l.names, v)
			if !truth(l.filter.eval(r, inner)) {
				continue
			}
		}
		chosen = append(chosen, v)
	}
	if len(chosen) == 0 {
		return r.all(l.otherwise, s.inner())
	}
	for i, v := range chosen {
		r.step()
		inner := s.inner()
		bind(inner, l.names, v)
		inner.names["loop"] = loopState{chosen, i}
		if r.all(l.body, inner) == "break" {
			break
		}
	}
	return ""
}

// loopState is the variable loop.
type loopState struct {
	items []any
	at    int
}

func (l loopState) get(name string) any {
	i, n := l.at, len(l.items)
	switch name {
	case "index":
		return int64(i + 1)
	case "index0":
		return int64(i)
	case "revindex":
		return int64(n - i)
	case "revindex0":
		return int64(n - i - 1)
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return int64(n)
	case "previtem":
		if i > 0 {
			return l.items[i-1]
		}
		return undefined{name}
	case "nextitem":
		if i < n-1 {
			return l.items[i+1]
		}
		return undefined{name}
	}
	fail("loop.%s is not known", name)
	return nil
}

// bind gives names to a value, or to its parts if there are several.
func bind(s *scope, names []string, v any) {
	if len(names) == 1 {
		s.names[names[0]] = v
		return
	}
	l, ok := v.(*list)
	if !ok || len(l.items) != len(names) {
		fail("%s is taken apart, want %d values", typeName(v), len(names))
	}
	for i, name := range names {
		s.names[name] = l.items[i]
	}
}

type assign struct {
	names     []string
	attribute string
	value     expression // or
	body      []statement
}

func (a assign) exec(r *run, s *scope) jump {
	var v any
	if a.value != nil {
		v = a.value.eval(r, s)
	} else {
		v = r.captured(a.body, s.inner())
	}
	if a.attribute == "" {
		bind(s, a.names, v)
		return ""
	}
	ns, _ := s.lookup(a.names[0])
	if n, ok := ns.(namespace); ok {
		n.set(a.attribute, v)
		return ""
	}
	fail("%s.%s is set, but %[1]s is %[3]s, want a namespace", a.names[0], a.attribute, typeName(ns))
	return ""
}

// captured returns what statements write.
func (r *run) captured(body []statement, s *scope) string {
	outer := r.out
	r.out = strings.Builder{}
	r.all(body, s)
	text := r.out.String()
	r.out = outer
	return text
}

type macro struct {
	name     string
	params   []string
	defaults []expression
	body     []statement
}

func (m *macro) exec(r *run, s *scope) jump {
	s.names[m.name] = function(func(r *run, a args) any {
		if r.calls++; r.calls > mostCalls {
			panic(failure{errWork})
		}
		defer func() { r.calls-- }()
		inner := s.inner()
		for i, name := range m.params {
			v, given := a.take(i, name)
			switch {
			case given:
			case m.defaults[i] != nil:
				v = m.defaults[i].eval(r, inner)
			default:
				v = undefined{name}
			}
			inner.names[name] = v
		}
		a.done(m.name, len(m.params))
		return r.captured(m.body, inner)
	})
	return ""
}

type constant struct{ value any }

func (c constant) eval(*run, *scope) any { return c.value }

type variable string

func (v variable) eval(_ *run, s *scope) any {
	if value, ok := s.lookup(string(v)); ok {
		return value
	}
	return undefined{string(v)}
}

type listOf struct {
	items []expression
	kind  listKind
}

func (l listOf) eval(r *run, s *scope) any {
	r.charge(16 * len(l.items))
	made := &list{kind: l.kind}
	for _, x := range l.items {
		made.items = append(made.items, x.eval(r, s))
	}
	return made
}

type dictOf struct{ keys, values []expression }

func (d dictOf) eval(r *run, s *scope) any {
	r.charge(64 * len(d.keys))
	made := newDict()
	for i, key := range d.keys {
		name, ok := key.eval(r, s).(string)
		if !ok {
			fail("a key of a dict is no string, which is not known")
		}
		made.set(name, d.values[i].eval(r, s))
	}
	return made
}

type conditional struct{ condition, then, otherwise expression }

func (c conditional) eval(r *run, s *scope) any {
	switch {
	case truth(c.condition.eval(r, s)):
		return c.then.eval(r, s)
	case c.otherwise != nil:
		return c.otherwise.eval(r, s)
	}
	return undefined{"the value of an if without else"}
}

type logical struct {
	op   string
	a, b expression
}

func (l logical) eval(r *run, s *scope) any {
	a := l.a.eval(r, s)
	if truth(a) == (l.op == "or") {
		return a
	}
	return l.b.eval(r, s)
}

type unary struct {
	op string
	x  expression
}

func (u unary) eval(r *run, s *scope) any {
	v := u.x.eval(r, s)
	if u.op == "not" {
		return !truth(v)
	}
	switch n := numeric(v).(type) {
	case int64:
		if u.op == "-" {
			return -n
		}
		return n
	case float64:
		if u.op == "-" {
			return -n
		}
		return n
	}
	fail("%s of %s", u.op, typeName(v))
	return nil
}

type comparison struct {
	first expression
	ops   []string
	rest  []expression
}

func (c comparison) eval(r *run, s *scope) any {
	a := c.first.eval(r, s)
	for i, op := range c.ops {
		b := c.rest[i].eval(r, s)
		if !compares(r, op, a, b) {
			return false
		}
		a = b
	}
	return true
}

func compares(r *run, op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return contains(r, b, a)
	case "not in":
		return !contains(r, b, a)
	}
	c := r.order(a, b)
	return op == "<" && c < 0 || op == "<=" && c <= 0 || op == ">" && c > 0 || op == ">=" && c >= 0
}

type binary struct {
	op   string
	a, b expression
}

func (b binary) eval(r *run, s *scope) any {
	x, y := b.a.eval(r, s), b.b.eval(r, s)
	if b.op == "~" {
		p, q := r.str(x), r.str(y)
		r.charge(len(p) + len(q))
		return p + q
	}
	if v, ok := sequences(r, b.op, x, y); ok {
		return v
	}
	m, n := numeric(x), numeric(y)
	if m == nil || n == nil {
		if op, ok := y.(undefined); ok {
			x = op
		}
		if u, ok := x.(undefined); ok {
			fail("%s is undefined", u.name)
		}
		fail("%s between %s and %s", b.op, typeName(x), typeName(y))
	}
	return arithmetic(b.op, m, n)
}

// sequences are operators of texts and lists.
func sequences(r *run, op string, x, y any) (any, bool) {
	switch a := x.(type) {
	case string:
		b, isText := y.(string)
		n, isInt := y.(int64)
		switch {
		case op == "+" && isText:
			r.charge(len(a) + len(b))
			return a + b, true
		case op == "*" && isInt:
			return repeated(r, a, n), true
		case op == "%":
			return percent(r, a, y), true
		}
	case int64:
		if b, ok := y.(string); ok && op == "*" {
			return repeated(r, b, a), true
		}
	case *list:
		if b, ok := y.(*list); ok && op == "+" && a.kind == b.kind && a.kind <= tupleKind {
			r.charge(16 * (len(a.items) + len(b.items)))
			return &list{items: append(append([]any{}, a.items...), b.items...), kind: a.kind}, true
		}
	}
	return nil, false
}

func repeated(r *run, s string, n int64) string {
	n = max(n, 0)
	if len(s) > 0 && n > mostBytes {
		panic(failure{errWork})
	}
	r.charge(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

// exact is up to where numbers are computed exactly by way of float64.
const exact = 1 << 53

func arithmetic(op string, x, y any) any {
	m, isM := x.(int64)
	n, isN := y.(int64)
	a, b := toFloat(x), toFloat(y)
	if (op == "/" || op == "//" || op == "%") && b == 0 {
		fail("division by zero")
	}
	var v float64
	switch op {
	case "+":
		v = a + b
	case "-":
		v = a - b
	case "*":
		v = a * b
	case "/":
		return a / b
	case "//":
		if v = math.Floor(a / b); isM && isN {
			q := m / n
			if m%n != 0 && (m < 0) != (n < 0) {
				q--
			}
			return q
		}
	case "%":
		if isM && isN {
			return ((m % n) + n) % n
		}
		v = a - b*math.Floor(a/b)
	case "**":
		if v = math.Pow(a, b); isN && n < 0 {
			return v
		}
	}
	if !isM || !isN {
		return v
	}
	if math.Abs(v) > exact {
		fail("%v %s %v is too large", x, op, y)
	}
	return int64(v)
}

type attribute struct {
	of   expression
	name string
}

func (a attribute) eval(r *run, s *scope) any { return getAttribute(a.of.eval(r, s), a.name) }

type item struct{ of, at expression }

func (i item) eval(r *run, s *scope) any {
	of := i.of.eval(r, s)
	if cut, ok := i.at.(slice); ok {
		return cut.of(r, s, of)
	}
	return getItem(of, i.at.eval(r, s))
}

// slice is the part of a sequence [from:to:step].
type slice struct{ parts [3]expression }

func (slice) eval(*run, *scope) any { return nil }

func (c slice) of(r *run, s *scope, v any) any {
	var elements []any
	var runes []rune
	n := 0
	switch x := v.(type) {
	case string:
		runes = []rune(x)
		n = len(runes)
	case *list:
		if x.kind > tupleKind {
			fail("a slice of %s", typeName(v))
		}
		elements = x.items
		n = len(elements)
	case undefined:
		fail("%s is undefined", x.name)
	default:
		fail("a slice of %s", typeName(v))
	}
	var at [3]int
	var set [3]bool
	for i, p := range c.parts {
		if p == nil {
			continue
		}
		index := p.eval(r, s)
		if index == nil {
			continue
		}
		k, ok := numeric(index).(int64)
		if !ok {
			fail("a slice by %s, want integers", typeName(index))
		}
		at[i], set[i] = int(max(-mostBytes, min(mostBytes, k))), true
	}
	step := 1
	if set[2] {
		if step = at[2]; step == 0 {
			fail("the step of a slice is 0")
		}
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(i, usual int) int {
		if !set[i] {
			return usual
		}
		k := at[i]
		if k < 0 {
			k += n
		}
		return max(low, min(high, k))
	}
	from, to := bound(0, low), bound(1, high)
	if step < 0 {
		from, to = bound(0, high), bound(1, low)
	}
	var text strings.Builder
	made := &list{}
	if l, ok := v.(*list); ok {
		made.kind = l.kind
	}
	r.charge(16 * n)
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if elements != nil {
			made.items = append(made.items, elements[i])
		} else if runes != nil {
			text.WriteRune(runes[i])
		}
	}
	if _, ok := v.(string); ok {
		return text.String()
	}
	return made
}

// arguments are those of a call.
type arguments struct {
	positional []expression
	names      []string
	named      []expression
}

func (a arguments) eval(r *run, s *scope) args {
	v := args{named: map[string]any{}, used: map[string]bool{}}
	for _, x := range a.positional {
		v.list = append(v.list, x.eval(r, s))
	}
	for i, x := range a.named {
		v.named[a.names[i]] = x.eval(r, s)
		v.order = append(v.order, a.names[i])
	}
	return v
}

type call struct {
	of   expression
	args arguments
}

func (c call) eval(r *run, s *scope) any {
	r.step()
	f := c.of.eval(r, s)
	switch f := f.(type) {
	case function:
		return f(r, c.args.eval(r, s))
	case undefined:
		fail("%s is not known, or not defined", f.name)
	}
	fail("%s is called", typeName(f))
	return nil
}

type filter struct {
	value expression
	name  string
	args  arguments
}

func (f filter) eval(r *run, s *scope) any {
	r.step()
	return applyFilter(r, f.name, f.value.eval(r, s), f.args.eval(r, s))
}

type test struct {
	value   expression
	name    string
	args    arguments
	negated bool
}

func (t test) eval(r *run, s *scope) any {
	r.step()
	return applyTest(r, t.name, t.value.eval(r, s), t.args.eval(r, s)) != t.negated
}

// args are the values of arguments.
type args struct {
	list  []any
	named map[string]any
	order []string // of named
	used  map[string]bool
}

// take returns the argument at a place or with a name.
func (a args) take(i int, name string) (any, bool) {
	if i >= 0 && i < len(a.list) {
		return a.list[i], true
	}
	v, ok := a.named[name]
	a.used[name] = true
	return v, ok
}

// done fails if there are arguments that nobody has taken.
func (a args) done(name string, most int) {
	if len(a.list) > most {
		fail("%s has %d arguments, want at most %d", name, len(a.list), most)
	}
	for _, given := range a.order {
		if !a.used[given] {
			fail("%s has an argument %s, which is not known", name, given)
		}
	}
}

// text returns an argument that is a string, or the usual one.
func (a args) text(i int, name, usual string) string {
	v, ok := a.take(i, name)
	if !ok {
		return usual
	}
	s, ok := v.(string)
	if !ok {
		fail("argument %s is %s, want a string", name, typeName(v))
	}
	return s
}

// int returns an argument that is an integer, or the usual one.
func (a args) int(i int, name string, usual int) int {
	v, ok := a.take(i, name)
	if !ok || v == nil {
		return usual
	}
	n, ok := v.(int64)
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		fail("argument %s is %s, want an integer", name, typeName(v))
	}
	return int(n)
}

// flag returns an argument that is a truth value, or false.
func (a args) flag(i int, name string) bool {
	v, _ := a.take(i, name)
	return v != nil && truth(v)
}

// percent is text % values of Python.
func percent(r *run, format string, v any) string {
	values := []any{v}
	if l, ok := v.(*list); ok && l.kind == tupleKind {
		values = l.items
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i == len(format) {
			fail("format %q ends in %%", format)
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(values) == 0 {
			fail("format %q has too few values", format)
		}
		n, isInt := numeric(values[0]).(int64)
		switch {
		case format[i] == 's':
			b.WriteString(r.str(values[0]))
		case format[i] == 'd' && isInt:
			fmt.Fprint(&b, n)
		default:
			_, size := utf8.DecodeRuneInString(format[i:])
			fail("format %%%s of %s is not known", format[i:i+size], typeName(values[0]))
		}
		values = values[1:]
		r.charge(b.Len())
	}
	if len(values) > 0 {
		fail("format %q has too many values", format)
	}
	return b.String()
}
