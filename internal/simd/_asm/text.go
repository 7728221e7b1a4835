package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"slices"
	"strings"
)

// A signature is the part of a function declaration after the name.
type signature struct {
	params []param
	result string
}

type param struct{ name, typ string }

// parse parses a signature.
func parse(text string) signature {
	expr, err := parser.ParseExpr("func" + text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	fn := expr.(*ast.FuncType)
	var s signature
	for _, field := range fn.Params.List {
		for _, name := range field.Names {
			s.params = append(s.params, param{name.Name, types.ExprString(field.Type)})
		}
	}
	if fn.Results != nil {
		s.result = strings.TrimSpace(text[strings.Index(text, ")")+1:])
	}
	return s
}

// call returns the statement that calls the named function at the end of a function with this
// signature.
func (s signature) call(name string, args []string) string {
	call := name + "(" + strings.Join(args, ", ") + ")"
	if s.result != "" {
		return "return " + call
	}
	return call
}

// assembly returns the parameters and results of a kernel for an operation of this signature:
// pointers for its slices, and after the last of them n, the number of their elements.
func (s signature) assembly() string {
	var params []param
	last := s.slices()[len(s.slices())-1]
	for _, p := range s.params {
		params = append(params, param{p.name, strings.Replace(p.typ, "[]", "*", 1)})
		if p.name == last {
			params = append(params, param{"n", "int"})
		}
	}
	var text []string
	for i, p := range params {
		if i == len(params)-1 || params[i+1].typ != p.typ {
			p.name += " " + p.typ
		}
		text = append(text, p.name)
	}
	return strings.TrimSpace("(" + strings.Join(text, ", ") + ") " + s.result)
}

func (s signature) names() []string {
	var names []string
	for _, p := range s.params {
		names = append(names, p.name)
	}
	return names
}

func (s signature) slices() []string {
	var names []string
	for _, p := range s.params {
		if strings.HasPrefix(p.typ, "[]") {
			names = append(names, p.name)
		}
	}
	return names
}

// arguments returns the arguments that an operation with signature op passes to the kernel, for n
// elements.
func (k *kernel) arguments(op signature, n string) []string {
	var args []string
	for _, p := range parse(k.asm).params {
		at := slices.IndexFunc(op.params, func(o param) bool { return o.name == p.name })
		value, given := k.with[p.name]
		switch {
		case given:
			args = append(args, value)
		case at >= 0 && strings.HasPrefix(op.params[at].typ, "[]"):
			args = append(args, "&"+p.name+"[0]")
		case at >= 0:
			args = append(args, p.name)
		case p.name == "n":
			args = append(args, n)
		default:
			panic(fmt.Sprintf("%s: no value for parameter %s", k.name, p.name))
		}
	}
	return args
}

// comment returns text as a comment: paragraphs, which are wrapped, and lines that begin with a
// tab, which are unchanged.
func comment(text string) string {
	const width = 80
	var out, line strings.Builder
	flush := func() {
		if line.Len() > 0 {
			out.WriteString("//" + line.String() + "\n")
			line.Reset()
		}
	}
	for _, l := range strings.Split(text, "\n") {
		if l == "" || strings.HasPrefix(l, "\t") {
			flush()
			out.WriteString("//" + l + "\n")
			continue
		}
		for _, word := range strings.Fields(l) {
			if len("//")+len([]rune(line.String()))+1+len([]rune(word)) > width {
				flush()
			}
			line.WriteString(" " + word)
		}
	}
	flush()
	return out.String()
}
