package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// assemblyAMD64 returns the assembly for amd64, one file for each family.
func assemblyAMD64() map[string][]byte {
	for _, f := range families {
		for k, i := range f.coded("amd64") {
			// numbers of labels begin anew in each function, so that a change of one kernel leaves the text
			// of the others
			labels = 0
			TEXT(k.name+i.suffix, NOSPLIT, "func"+foreign.ReplaceAllString(k.asm, "*byte"))
			k.code[i]()
		}
	}
	compiled := compile()
	return assemblyFiles("amd64", func(f *family) string { return f.assemblyAMD64(compiled) })
}

// foreign matches pointers to types that are defined only in package simd.
var foreign = regexp.MustCompile(`\*(\w+(Args|Scalars))\b`)

// compile returns the code written so far. Avo keeps that code private until it prints all of it
// into one file, so compile intercepts it just before.
func compile() *ir.File {
	var file *ir.File
	compile := pass.Compile
	pass.Compile = pass.Concat(compile, pass.Func(func(f *ir.File) error {
		file = f
		return nil
	}))
	defer func() { pass.Compile = compile }()
	if err := flag.Set("out", os.DevNull); err != nil {
		panic(err)
	}
	Generate()
	return file
}

// assemblyAMD64 returns the file of a family, including the constants that it uses.
func (f *family) assemblyAMD64(compiled *ir.File) string {
	var constants []string // in the order of their use
	text := f.assembly("amd64", func(k *kernel, i *implementation, name string) string {
		fn := function(compiled, name)
		for _, symbol := range symbols(fn) {
			if !slices.Contains(constants, symbol) {
				constants = append(constants, symbol)
			}
		}
		// Avo's comment has avo's names of the parameters.
		own, text, _ := strings.Cut(printed(fn), "\n")
		if !strings.HasPrefix(own, "// func "+name+"(") {
			panic("avo begins a function with " + own)
		}
		return encodeMissing(text)
	})
	for _, symbol := range constants {
		text += "\n" + printed(global(compiled, symbol))
	}
	return text
}

// printed returns the text of a function or of a constant.
func printed(s ir.Section) string {
	text, err := printer.NewGoAsm(printer.Config{Name: "asm"}).Print(&ir.File{Sections: []ir.Section{s}})
	if err != nil {
		panic(err)
	}
	_, rest, ok := bytes.Cut(text, []byte("\n\n")) // after the header of a file
	if !ok {
		panic(fmt.Sprintf("avo begins a file with %.80q", text))
	}
	return string(rest)
}

func function(file *ir.File, name string) *ir.Function {
	for _, f := range file.Functions() {
		if f.Name == name {
			return f
		}
	}
	panic("no function " + name)
}

func global(file *ir.File, symbol string) *ir.Global {
	for _, s := range file.Sections {
		if g, ok := s.(*ir.Global); ok && g.Symbol.Name == symbol {
			return g
		}
	}
	panic("no constant " + symbol)
}

// symbols returns the names of the constants that a function uses.
func symbols(f *ir.Function) []string {
	var names []string
	for _, i := range f.Instructions() {
		for _, op := range i.Operands {
			if m, ok := op.(operand.Mem); ok && m.Symbol.Static {
				names = append(names, m.Symbol.Name)
			}
		}
	}
	return names
}
