// Package a64 writes functions in the language of Go's assembler for arm64. General registers and
// branches, which that assembler supports, are written in its syntax. Its support for vectors is
// incomplete, so vector instructions are emitted as words, with the disassembly as a comment:
//
//	WORD $0x4e22d420 // fadd v0.4s, v1.4s, v2.4s
//
// Registers are taken from the free ones, and are freed at the end of the Scope in which they were
// taken.
package a64

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"slices"
	"strings"
)

// An X is a general register of 64 bits.
type X int

func (x X) String() string { return fmt.Sprintf("R%d", int(x)) }

// A V is a vector register of 128 bits.
type V int

// A Label is a place in a function.
type Label string

// A Mem is an address in memory: Disp bytes after Base or, if Index is not nil, after Base by the
// number of bytes in that register.
type Mem struct {
	Base  X
	Disp  int
	Index *X
}

// At returns the address disp bytes after base.
func At(base X, disp int) Mem { return Mem{Base: base, Disp: disp} }

// Indexed returns the address index bytes after base.
func Indexed(base, index X) Mem { return Mem{Base: base, Index: &index} }

// String returns the address in the syntax of Go's assembler.
func (m Mem) String() string {
	switch {
	case m.Index != nil:
		return fmt.Sprintf("(%v)(%v)", m.Base, *m.Index)
	case m.Disp == 0:
		return fmt.Sprintf("(%v)", m.Base)
	}
	return fmt.Sprintf("%d(%v)", m.Disp, m.Base)
}

// arm returns the address in the syntax of a disassembler.
func (m Mem) arm() string {
	switch {
	case m.Index != nil:
		return fmt.Sprintf("[x%d, x%d]", int(m.Base), int(*m.Index))
	case m.Disp == 0:
		return fmt.Sprintf("[x%d]", int(m.Base))
	}
	return fmt.Sprintf("[x%d, #%d]", int(m.Base), m.Disp)
}

// general lists the general registers that a function without calls may use. R18 is reserved for
// the system, R27 for Go's assembler, R28 for the goroutine, and Last is left to the callers.
var general = []X{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25}

// Last is the last general register, which X does not return.
const Last X = 26

const vectors = 32

// A Func is a function of assembly that is being written.
type Func struct {
	name    string
	params  []argument
	results []argument
	size    int // of parameters and results
	text    strings.Builder
	labels  int
	x       []X // free
	v       []V
}

// An argument is a parameter or a result, and its address.
type argument struct {
	name   string
	offset int
}

func (p argument) String() string { return fmt.Sprintf("%s+%d(FP)", p.name, p.offset) }

// New returns a function with the given name. Signature is its parameters and results in Go.
func New(name, signature string) *Func {
	f := &Func{name: name, x: slices.Clone(general)}
	for i := range vectors {
		f.v = append(f.v, V(i))
	}
	expr, err := parser.ParseExpr("func" + signature)
	if err != nil {
		panic(fmt.Sprintf("%s%s: %v", name, signature, err))
	}
	fn := expr.(*ast.FuncType)
	f.params = f.layout(fn.Params)
	if fn.Results != nil {
		f.size = align(f.size, 8)
		f.results = f.layout(fn.Results)
	}
	return f
}

// layout places the fields of a list after the existing arguments.
func (f *Func) layout(list *ast.FieldList) []argument {
	var places []argument
	for _, field := range list.List {
		size := 8
		switch types.ExprString(field.Type) {
		case "float32", "uint32":
			size = 4
		case "bool":
			size = 1
		}
		names := []string{"ret"}
		if len(field.Names) > 0 {
			names = nil
			for _, n := range field.Names {
				names = append(names, n.Name)
			}
		}
		for _, name := range names {
			f.size = align(f.size, size)
			places = append(places, argument{name, f.size})
			f.size += size
		}
	}
	return places
}

func align(n, to int) int { return (n + to - 1) / to * to }

// Param returns a parameter, as an operand of Do.
func (f *Func) Param(name string) any {
	for _, p := range f.params {
		if p.name == name {
			return p
		}
	}
	panic(f.name + " has no parameter " + name)
}

// Result returns a result, as an operand of Do.
func (f *Func) Result(i int) any { return f.results[i] }

// Text returns the text of the function for a file of assembly.
func (f *Func) Text() string {
	return fmt.Sprintf("TEXT ·%s(SB), NOSPLIT, $0-%d\n%s", f.name, f.size, f.text.String())
}

// Name returns the name of the function.
func (f *Func) Name() string { return f.name }

// X returns a free general register.
func (f *Func) X() X {
	if len(f.x) == 0 {
		panic(f.name + " takes too many general registers")
	}
	x := f.x[0]
	f.x = f.x[1:]
	return x
}

// V returns a free vector register.
func (f *Func) V() V {
	if len(f.v) == 0 {
		panic(f.name + " takes too many vector registers")
	}
	v := f.v[0]
	f.v = f.v[1:]
	return v
}

// Vs returns n free vector registers.
func (f *Func) Vs(n int) []V {
	v := make([]V, n)
	for i := range v {
		v[i] = f.V()
	}
	return v
}

// Scope calls body and then frees the registers that body took.
func (f *Func) Scope(body func()) {
	x, v := f.x, f.v
	body()
	f.x, f.v = x, v
}

// NewLabel returns a label whose name is unique in the function.
func (f *Func) NewLabel(name string) Label {
	f.labels++
	return Label(fmt.Sprint(name, f.labels))
}

// Bind places the label here.
func (f *Func) Bind(l Label) { fmt.Fprintf(&f.text, "\n%s:\n", l) }

// Do writes an instruction that Go's assembler supports. The operands are in the order of that
// assembler; numbers are immediate.
func (f *Func) Do(op string, operands ...any) {
	text := make([]string, len(operands))
	for i, o := range operands {
		switch o := o.(type) {
		case int:
			text[i] = fmt.Sprintf("$%d", o)
		case X, Mem, Label, argument, string:
			text[i] = fmt.Sprint(o)
		case V:
			text[i] = fmt.Sprintf("F%d", int(o))
		default:
			panic(fmt.Sprintf("%s: operand %v", op, o))
		}
	}
	f.line(strings.TrimSpace(op + " " + strings.Join(text, ", ")))
}

// Begin writes an instruction before all others.
func (f *Func) Begin(op string, operands ...any) {
	rest := f.text.String()
	f.text.Reset()
	f.Do(op, operands...)
	f.text.WriteString(rest)
}

// Return writes the end of the function.
func (f *Func) Return() { f.Do("RET") }

func (f *Func) line(text string) { f.text.WriteString("\t" + text + "\n") }

// word writes an instruction that Go's assembler does not support.
func (f *Func) word(bits int, format string, args ...any) {
	f.line(fmt.Sprintf("WORD $0x%08x // ", uint32(bits)) + fmt.Sprintf(format, args...))
}
