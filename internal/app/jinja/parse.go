package jinja

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// parser builds a tree from tokens.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int // number of open loops, within the same macro or block of set
}

func (p *parser) fail(format string, args ...any) {
	panic(failure{fmt.Errorf("line %d: "+format, append([]any{p.peek().line}, args...)...)})
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// is reports whether the next token is the operator or word s.
func (p *parser) is(s string) bool {
	t := p.peek()
	return (t.kind == operator || t.kind == identifier) && t.s == s
}

// skip consumes the next token if it is s.
func (p *parser) skip(s string) bool {
	if p.is(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(s string) {
	if !p.skip(s) {
		p.fail("%s, want %s", quote.Text(p.peek().s), quote.Text(s))
	}
}

func (p *parser) wantKind(k kind, what string) string {
	if p.peek().kind != k {
		p.fail("%s, want %s", quote.Text(p.peek().s), what)
	}
	return p.next().s
}

// nest limits the depth of the tree, because it is processed recursively.
func (p *parser) nest() func() {
	if p.depth++; p.depth > deepest {
		p.fail("nested more than %d deep", deepest)
	}
	return func() { p.depth-- }
}

// body returns the statements up to a block that begins with one of the given words, which is not consumed.
func (p *parser) body(until ...string) []statement {
	defer p.nest()()
	var list []statement
	for {
		t := p.peek()
		switch t.kind {
		case end:
			if until != nil {
				p.fail("the template ends, want %q", until)
			}
			return list
		case data:
			p.at++
			if t.s != "" {
				list = append(list, output(constant(text{s: t.s})))
			}
		case printBegin:
			p.at++
			list = append(list, output(p.expression()))
			p.wantKind(printEnd, "}}")
		case blockBegin:
			p.at++
			if word := p.peek(); word.kind == identifier && slices.Contains(until, word.s) {
				return list
			}
			list = append(list, p.block())
		}
	}
}

// apart is body without access to the surrounding loops: break and continue are rejected.
// A macro may be called where there is no loop, and its body is run like a function.
func (p *parser) apart(until string) []statement {
	loops := p.loops
	p.loops = 0
	body := p.body(until)
	p.loops = loops
	return body
}

// close consumes the end of a block.
func (p *parser) close() { p.wantKind(blockEnd, "%}") }

// ends consumes the word at which body stopped, and the end of its block.
func (p *parser) ends(word string) {
	p.want(word)
	p.close()
}

func (p *parser) block() statement {
	switch word := p.wantKind(identifier, "a statement"); word {
	case "if":
		return p.branch()
	case "for":
		return p.loop().exec
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "generation": // marks the text of the model, for training
		p.close()
		list := p.body("endgeneration")
		p.ends("endgeneration")
		return func(r *run, s *scope) jump { return r.all(list, r.inner(s)) }
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s outside of a loop", word)
		}
		p.close()
		return func(*run, *scope) jump { return jump(word) }
	default:
		p.at--
		p.fail("statement %s is not supported, want one of if, for, set, macro, generation, break and continue",
			quote.Text(word))
		return nil
	}
}

// branch parses an if statement with its elif branches.
// It has no scope: names that are set in it stay set after it, unlike in a loop.
func (p *parser) branch() statement {
	var conditions []expression
	var then [][]statement
	for more := true; more; more = p.skip("elif") {
		conditions = append(conditions, p.expression())
		p.close()
		then = append(then, p.body("elif", "else", "endif"))
	}
	var otherwise []statement
	if p.skip("else") {
		p.close()
		otherwise = p.body("endif")
	}
	p.ends("endif")
	return func(r *run, s *scope) jump {
		for i, c := range conditions {
			if truth(r.value(c, s)) {
				return r.all(then[i], s)
			}
		}
		return r.all(otherwise, s)
	}
}

func (p *parser) loop() loop {
	var s loop
	s.names = []string{p.wantKind(identifier, "a name")}
	for p.skip(",") {
		s.names = append(s.names, p.wantKind(identifier, "a name"))
	}
	p.want("in")
	// Not p.expression: an if after the sequence selects its elements, and is not the if of a value.
	s.over = p.or()
	if p.skip("if") {
		s.filter = p.expression()
	}
	if p.is("recursive") {
		p.fail("recursive loops are not supported")
	}
	p.close()
	p.loops++
	s.body = p.body("endfor")
	p.loops--
	p.ends("endfor")
	return s
}

func (p *parser) set() statement {
	name, attribute := p.wantKind(identifier, "a name"), ""
	if p.skip(".") {
		attribute = p.wantKind(identifier, "a name")
	}
	var value expression
	if p.skip("=") {
		value = p.expression()
		p.close()
	} else {
		if p.is("|") {
			p.fail("filters of a block of set are not supported")
		}
		p.close()
		body := p.apart("endset")
		p.ends("endset")
		value = func(r *run, s *scope) any { return r.captured(body, r.inner(s)) }
	}
	return func(r *run, s *scope) jump {
		v := r.value(value, s)
		if attribute == "" {
			s.names[name] = v
			return ""
		}
		// Only a namespace can be changed. It is how a loop hands a value to the text after it, because names that are set
		// in a loop end with the iteration.
		of, _ := s.lookup(name)
		n, ok := of.(namespace)
		if !ok {
			fail("%s.%s is set, but %[1]s is %[3]s, want a namespace", name, attribute, typeName(of))
		}
		n.set(r, text{s: attribute}, v)
		return ""
	}
}

func (p *parser) macro() statement {
	name := p.wantKind(identifier, "a name")
	var params []string
	var defaults []expression
	p.want("(")
	p.elements(")", func() {
		params = append(params, p.wantKind(identifier, "a name"))
		var value expression
		if p.skip("=") {
			value = p.expression()
		}
		defaults = append(defaults, value)
	})
	p.close()
	body := p.apart("endmacro")
	p.want("endmacro")
	if p.peek().kind == identifier {
		p.next()
	}
	p.close()
	return func(r *run, s *scope) jump {
		// The scope of the call is within the one in which the macro is defined, not within that of the caller. An argument
		// that is not given is undefined, and no error; a default is computed at each call, and may use the parameters
		// before it.
		s.names[name] = function(func(r *run, g given) any {
			inner := r.inner(s)
			a := bind(name, params, g)
			for i, param := range params {
				switch {
				case a.set[i]:
					inner.names[param] = a.values[i]
				case defaults[i] != nil:
					inner.names[param] = r.value(defaults[i], inner)
				default:
					inner.names[param] = undefined{param}
				}
			}
			return r.captured(body, inner)
		})
		return ""
	}
}
