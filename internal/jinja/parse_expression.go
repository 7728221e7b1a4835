package jinja

import (
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/quote"
)

// tuple is an expression, or several with commas between them.
func (p *parser) tuple() expression {
	first := p.expression()
	if !p.is(",") {
		return first
	}
	items := listOf{items: []expression{first}, kind: tupleKind}
	for p.skip(",") {
		if k := p.peek().kind; k == blockEnd || k == printEnd || p.is(")") {
			break
		}
		items.items = append(items.items, p.expression())
	}
	return items
}

func (p *parser) expression() expression {
	defer p.nest()()
	e := p.or()
	for p.skip("if") {
		c := conditional{condition: p.or(), then: e}
		if p.skip("else") {
			c.otherwise = p.expression()
		}
		e = c
	}
	return e
}

func (p *parser) or() expression {
	e := p.and()
	for p.skip("or") {
		e = logical{"or", e, p.and()}
	}
	return e
}

func (p *parser) and() expression {
	e := p.not()
	for p.skip("and") {
		e = logical{"and", e, p.not()}
	}
	return e
}

func (p *parser) not() expression {
	defer p.nest()()
	if p.skip("not") {
		return unary{"not", p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expression {
	first := p.sum()
	c := comparison{first: first}
	for {
		op := p.peek().s
		switch {
		case p.peek().kind == operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op), p.is("in"):
			p.at++
		case p.is("not") && p.tokens[p.at+1].kind == identifier && p.tokens[p.at+1].s == "in":
			p.at += 2
			op = "not in"
		default:
			if c.ops == nil {
				return first
			}
			return c
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
}

// infix are operators of one rank.
func (p *parser) infix(operand func() expression, ops ...string) expression {
	e := operand()
	for p.peek().kind == operator && slices.Contains(ops, p.peek().s) {
		op := p.next().s
		e = binary{op, e, operand()}
	}
	return e
}

func (p *parser) sum() expression    { return p.infix(p.concat, "+", "-") }
func (p *parser) concat() expression { return p.infix(p.product, "~") }
func (p *parser) product() expression {
	return p.infix(func() expression { return p.unary(true) }, "*", "/", "//", "%")
}

func (p *parser) unary(filters bool) expression {
	defer p.nest()()
	var e expression
	switch {
	case p.skip("-"):
		e = unary{"-", p.unary(false)}
	case p.skip("+"):
		e = unary{"+", p.unary(false)}
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	for filters {
		switch {
		case p.skip("|"):
			f := filter{value: e, name: p.wantKind(identifier, "the name of a filter")}
			if p.skip("(") {
				f.args = p.arguments()
			}
			e = f
		case p.skip("is"):
			e = p.test(e)
		case p.skip("("):
			e = call{e, p.arguments()}
		default:
			return e
		}
	}
	return e
}

func (p *parser) test(e expression) expression {
	t := test{value: e, negated: p.skip("not")}
	t.name = p.wantKind(identifier, "the name of a test")
	switch next := p.peek(); {
	case p.skip("("):
		t.args = p.arguments()
	case next.kind == integer, next.kind == float, next.kind == text, p.is("["), p.is("{"),
		next.kind == identifier && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not"}, next.s):
		t.args.positional = []expression{p.postfix(p.primary())}
	}
	return t
}

func (p *parser) primary() expression {
	switch t := p.next(); t.kind {
	case integer:
		n, err := strconv.ParseInt(t.s, 10, 64)
		if err != nil {
			p.fail("number %s is too large", t.s)
		}
		return constant{n}
	case float:
		x, err := strconv.ParseFloat(t.s, 64)
		if err != nil {
			p.fail("number %s is too large", t.s)
		}
		return constant{x}
	case text:
		for p.peek().kind == text {
			t.s += p.next().s
		}
		return constant{t.s}
	case identifier:
		switch t.s {
		case "true", "True":
			return constant{true}
		case "false", "False":
			return constant{false}
		case "none", "None":
			return constant{nil}
		}
		return variable(t.s)
	case operator:
		switch t.s {
		case "(":
			if p.skip(")") {
				return listOf{kind: tupleKind}
			}
			e := p.tuple()
			p.want(")")
			return e
		case "[":
			l := listOf{}
			for !p.skip("]") {
				if l.items = append(l.items, p.expression()); !p.is("]") {
					p.want(",")
				}
			}
			return l
		case "{":
			d := dictOf{}
			for !p.skip("}") {
				d.keys = append(d.keys, p.expression())
				p.want(":")
				if d.values = append(d.values, p.expression()); !p.is("}") {
					p.want(",")
				}
			}
			return d
		}
	}
	p.at--
	p.fail("%s, want an expression", quote.Text(p.peek().s))
	return nil
}

func (p *parser) postfix(e expression) expression {
	for {
		switch {
		case p.skip("."):
			if p.peek().kind == integer {
				e = item{e, p.primary()}
				continue
			}
			e = attribute{e, p.wantKind(identifier, "a name")}
		case p.skip("["):
			e = item{e, p.subscript()}
			p.want("]")
		case p.skip("("):
			e = call{e, p.arguments()}
		default:
			return e
		}
	}
}

// subscript is an index or a slice.
func (p *parser) subscript() expression {
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
	if colons > 0 {
		return slice{parts}
	}
	if parts[0] == nil {
		p.fail("an index is empty")
	}
	return parts[0]
}

// arguments are those of a call, whose opening parenthesis has been read.
func (p *parser) arguments() arguments {
	var a arguments
	for !p.skip(")") {
		if t := p.peek(); t.kind == identifier && p.tokens[p.at+1].kind == operator && p.tokens[p.at+1].s == "=" {
			p.at += 2
			a.names, a.named = append(a.names, t.s), append(a.named, p.expression())
		} else if p.is("*") || p.is("**") {
			p.fail("arguments with %s are not known", t.s)
		} else if a.names != nil {
			p.fail("an argument without a name stands behind one with a name")
		} else {
			a.positional = append(a.positional, p.expression())
		}
		if !p.is(")") {
			p.want(",")
		}
	}
	return a
}
