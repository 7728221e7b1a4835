package jinja

import (
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/quote"
)

func constant(v any) expression { return func(*run, *scope) any { return v } }

// listing returns an expression for a list or a tuple.
func listing(items []expression, kind listKind) expression {
	return func(r *run, s *scope) any {
		r.charge(len(items), 16)
		made := &list{kind: kind}
		for _, x := range items {
			made.items = append(made.items, r.value(x, s))
		}
		return made
	}
}

// expression parses a value with an if after it, which binds less than any operator: a if b else c. Without else, the
// value is undefined where b is false, and is written as nothing.
func (p *parser) expression() expression {
	defer p.nest()()
	e := p.or()
	for p.skip("if") {
		then, condition := e, p.or()
		otherwise := constant(undefined{"the value of an if without else"})
		if p.skip("else") {
			otherwise = p.expression()
		}
		e = func(r *run, s *scope) any {
			if truth(r.value(condition, s)) {
				return r.value(then, s)
			}
			return r.value(otherwise, s)
		}
	}
	return e
}

func (p *parser) or() expression  { return p.logical("or", p.and) }
func (p *parser) and() expression { return p.logical("and", p.not) }

// logical parses operands with "or" or "and" between them. As in Python, the result is one of the operands and not a
// truth value, and the second one is not computed if the first decides: templates use it for defaults.
func (p *parser) logical(word string, operand func() expression) expression {
	e := operand()
	for p.skip(word) {
		a, b := e, operand()
		e = func(r *run, s *scope) any {
			v := r.value(a, s)
			if truth(v) == (word == "or") {
				return v
			}
			return r.value(b, s)
		}
	}
	return e
}

func (p *parser) not() expression {
	defer p.nest()()
	if !p.skip("not") {
		return p.compare()
	}
	x := p.not()
	return func(r *run, s *scope) any { return !truth(r.value(x, s)) }
}

// compare parses one comparison. A chain such as a < b < c is an error.
// Python evaluates it as a < b and b < c, which no template of a chat has needed.
func (p *parser) compare() expression {
	a := p.sum()
	op := p.peek().s
	switch {
	case p.peek().kind == operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op), p.is("in"):
		p.at++
	case p.is("not") && p.tokens[p.at+1].kind == identifier && p.tokens[p.at+1].s == "in":
		p.at += 2
		op = "not in"
	default:
		return a
	}
	b := p.sum()
	return func(r *run, s *scope) any {
		x := r.value(a, s)
		return compares(r, op, x, r.value(b, s))
	}
}

// infix parses binary operators with equal precedence.
func (p *parser) infix(operand func() expression, ops ...string) expression {
	e := operand()
	for p.peek().kind == operator && slices.Contains(ops, p.peek().s) {
		op, a := p.next().s, e
		b := operand()
		e = func(r *run, s *scope) any {
			x := r.value(a, s)
			return binary(r, op, x, r.value(b, s))
		}
	}
	return e
}

// The precedence of operators is that of Jinja, where ~, which joins texts, binds more than + and less than *. There is
// no / // or **: their results may have a fraction, or many digits. The lexer has them for the error only.
func (p *parser) sum() expression     { return p.infix(p.concat, "+", "-") }
func (p *parser) concat() expression  { return p.infix(p.product, "~") }
func (p *parser) product() expression { return p.infix(p.filtered, "*", "%") }

// unary parses minus signs, a value, and the attributes and indices after it.
// As in Jinja, the filter in -x|f gets −x.
func (p *parser) unary() expression {
	defer p.nest()()
	if p.skip("-") {
		x := p.unary()
		return p.postfix(func(r *run, s *scope) any { return negative(r.value(x, s)) })
	}
	return p.postfix(p.primary())
}

// filtered parses a value and the filters, tests and calls after it.
func (p *parser) filtered() expression {
	e := p.unary()
	for {
		of := e
		switch {
		case p.skip("|"):
			name := p.wantKind(identifier, "the name of a filter")
			var args arguments
			if p.skip("(") {
				args = p.arguments()
			}
			e = func(r *run, s *scope) any { return applyFilter(r, name, r.value(of, s), args.eval(r, s)) }
		case p.skip("is"):
			e = p.test(e)
		case p.skip("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) test(of expression) expression {
	negated := p.skip("not")
	name := p.wantKind(identifier, "the name of a test")
	var args arguments
	switch t := p.peek(); {
	case p.skip("("):
		args = p.arguments()
	case t.kind == identifier && slices.Contains([]string{"else", "or", "and"}, t.s):
	case t.kind == identifier && slices.Contains([]string{"if", "in", "is", "not"}, t.s): // in Jinja, names of variables
		p.fail("%s follows the test %s, want parentheses around the test", t.s, name)
	// A test may have one argument without parentheses: x is divisibleby 3.
	case t.kind == identifier, t.kind == integer, t.kind == quotedText, p.is("["), p.is("{"):
		args.list = []expression{p.postfix(p.primary())}
	}
	return func(r *run, s *scope) any {
		v := r.value(of, s)
		return applyTest(r, name, v, args.eval(r, s)) != negated
	}
}

func (p *parser) call(of expression) expression {
	args := p.arguments()
	return func(r *run, s *scope) any {
		switch f := r.value(of, s).(type) {
		case function:
			return f(r, args.eval(r, s))
		case undefined:
			fail("%s is not defined, or not supported", f.name)
		default:
			fail("%s cannot be called", typeName(f))
		}
		return nil
	}
}

func (p *parser) primary() expression {
	switch t := p.next(); t.kind {
	case integer:
		n, err := strconv.ParseInt(t.s, 10, 32)
		if err != nil {
			p.fail("number %s is too large", t.s)
		}
		return constant(number{n: n})
	case quotedText:
		for p.peek().kind == quotedText { // Python joins strings that follow one another
			t.s += p.next().s
		}
		return constant(text{s: t.s})
	case identifier:
		return variable(t.s)
	case operator:
		switch t.s {
		case "(":
			return p.parenthesized()
		case "[":
			var items []expression
			p.elements("]", func() { items = append(items, p.expression()) })
			return listing(items, listKindList)
		case "{":
			return p.dict()
		}
	}
	p.at--
	p.fail("%s, want an expression", quote.Text(p.peek().s))
	return nil
}

// parenthesized parses an expression or a tuple, behind its opening parenthesis.
func (p *parser) parenthesized() expression {
	var items []expression
	isTuple := p.is(")")
	p.elements(")", func() {
		items = append(items, p.expression())
		isTuple = isTuple || p.is(",")
	})
	if isTuple {
		return listing(items, tupleKind)
	}
	return items[0]
}

func variable(name string) expression {
	switch name {
	case "true", "True":
		return constant(true)
	case "false", "False":
		return constant(false)
	case "none", "None":
		return constant(nil)
	}
	return func(_ *run, s *scope) any {
		if v, ok := s.lookup(name); ok {
			return v
		}
		return undefined{name}
	}
}

// elements parses elements with commas between them, up to the closing sign.
func (p *parser) elements(end string, element func()) {
	for !p.skip(end) {
		if element(); !p.is(end) {
			p.want(",")
		}
	}
}

func (p *parser) dict() expression {
	var keys, values []expression
	p.elements("}", func() {
		keys = append(keys, p.expression())
		p.want(":")
		values = append(values, p.expression())
	})
	return func(r *run, s *scope) any {
		r.charge(len(keys), 64)
		made := newDict()
		for i, key := range keys {
			k := r.value(key, s)
			made.set(r, k, r.value(values[i], s))
		}
		return made
	}
}

func (p *parser) postfix(e expression) expression {
	for {
		of := e
		switch {
		case p.skip("."):
			// As in Jinja, x.0 is x[0].
			if p.peek().kind == integer {
				e = itemOf(of, p.primary())
				continue
			}
			name := p.wantKind(identifier, "a name")
			e = func(r *run, s *scope) any { return getAttribute(r.value(of, s), name) }
		case p.skip("["):
			e = p.subscript(of)
			p.want("]")
		case p.skip("("):
			e = p.call(of)
		default:
			return e
		}
	}
}

func itemOf(of, at expression) expression {
	return func(r *run, s *scope) any {
		v := r.value(of, s)
		return getItem(r, v, r.value(at, s))
	}
}

// subscript parses an index or a slice after a value.
func (p *parser) subscript(of expression) expression {
	var parts [3]expression
	colons := 0
	for !p.is("]") {
		if p.skip(":") {
			if colons++; colons > 2 {
				p.fail("a slice has at most two colons")
			}
			continue
		}
		if parts[colons] != nil {
			p.fail("%s, want ]", quote.Text(p.peek().s))
		}
		parts[colons] = p.expression()
	}
	if colons == 0 {
		if parts[0] == nil {
			p.fail("an index is empty")
		}
		return itemOf(of, parts[0])
	}
	return func(r *run, s *scope) any {
		v := r.value(of, s)
		var at [3]any
		for i, part := range parts {
			if part != nil {
				at[i] = r.value(part, s)
			}
		}
		return slice(r, v, at)
	}
}

// arguments parses the arguments of a call. The opening parenthesis has been consumed.
func (p *parser) arguments() (a arguments) {
	p.elements(")", func() {
		if t := p.peek(); t.kind == identifier && p.tokens[p.at+1].kind == operator && p.tokens[p.at+1].s == "=" {
			p.at += 2
			a.names, a.named = append(a.names, t.s), append(a.named, p.expression())
		} else if p.is("*") || p.is("**") {
			p.fail("arguments with %s are not supported", t.s)
		} else if a.names != nil {
			p.fail("an argument without a name follows one with a name")
		} else {
			a.list = append(a.list, p.expression())
		}
	})
	return a
}
