// Package wasm writes WebAssembly modules of functions that use vectors.
//
// A function is written by calls that append its instructions. Its values are locals: every
// operation sets a new local, and the engine that compiles the module assigns registers. Control
// flow is structured, as in the binary format: blocks and loops are functions that write a body.
package wasm

import (
	"hash/crc32"
	"slices"
)

// Type is the type of a value.
type Type byte

// The types, as they are encoded.
const (
	V128 Type = 0x7b + iota
	F64
	F32
	I64
	I32
)

const (
	voidBlock = 0x40
	funcType  = 0x60
	funcRef   = 0x70
)

// Identifiers of sections.
const (
	customSection = iota
	typeSection
	importSection
	functionSection
	tableSection
	_
	_
	exportSection
	_
	elementSection
	codeSection
)

// Names in the modules that Kernels and calls write.
const (
	importFrom   = "attn"
	memoryName   = "memory"
	tableName    = "kernels"
	callsSection = "calls" // the name of the custom section with the module of calls
)

// A Module is functions. Some of them are kernels, which other modules call.
type Module struct {
	funcs   []*Func
	kernels []*Func
}

// Func adds a function.
func (m *Module) Func(name string, params, results []Type) *Func {
	f := &Func{name: name, params: params, results: results, index: len(m.funcs), module: m}
	m.funcs = append(m.funcs, f)
	return f
}

// Kernel adds a function that other modules call.
func (m *Module) Kernel(name string, params, results []Type) *Func {
	f := m.Func(name, params, results)
	m.kernels = append(m.kernels, f)
	return f
}

// Bytes returns the module. It imports the memory it works on, and a table into which it puts its
// kernels.
//
// A program that imports the kernels and whose memory they use has to be instantiated before them.
// So it imports them from another module, which exports the table and, for each kernel, a function
// that calls it through the table. That module is in a custom section. Its function available
// returns sum, which identifies the kernels and is not 0.
func (m *Module) Bytes() (module []byte, sum int32) {
	var types, code [][]byte
	var functions, elements [][]byte
	for _, f := range m.funcs {
		t := f.signature()
		at := slices.IndexFunc(types, func(o []byte) bool { return slices.Equal(o, t) })
		if at < 0 {
			at = len(types)
			types = append(types, t)
		}
		functions = append(functions, unsigned(at))
		code = append(code, f.entry())
	}
	for _, k := range m.kernels {
		elements = append(elements, unsigned(k.index))
	}
	imports := [][]byte{
		join(name(importFrom), name(memoryName), []byte{0x02, 0x00, 0x01}),
		join(name(importFrom), name(tableName), tableOf(len(m.kernels), 0x01)),
	}
	active := join([]byte{0x00, opI32Const, 0x00, opEnd}, vector(elements)) // from place 0 of the table
	module = join(header,
		section(typeSection, vector(types)),
		section(importSection, vector(imports)),
		section(functionSection, vector(functions)),
		section(elementSection, vector([][]byte{active})),
		section(codeSection, vector(code)),
		section(customSection, join(name("name"), m.names())),
	)
	sum = int32(crc32.ChecksumIEEE(module) | 1)
	return join(module, section(customSection, join(name(callsSection), m.calls(sum)))), sum
}

// names returns the names of the functions, for profiles and stack traces.
func (m *Module) names() []byte {
	const functionNames = 1
	var all [][]byte
	for _, f := range m.funcs {
		all = append(all, join(unsigned(f.index), name(f.name)))
	}
	return section(functionNames, vector(all))
}

// calls returns the module of functions that call the kernels.
func (m *Module) calls(sum int32) []byte {
	available := &Func{name: "available", results: []Type{I32}}
	available.pushInt(int(sum))
	all := []*Func{available}
	for i, k := range m.kernels {
		f := &Func{name: k.name, params: k.params, results: k.results}
		for p := range k.params {
			f.get(p)
		}
		f.pushInt(i)
		f.emit(opCallIndirect, append(unsigned(i+1), 0x00)...) // with its type
		all = append(all, f)
	}
	exports := [][]byte{join(name(tableName), []byte{0x01, 0x00})}
	var types, functions, code [][]byte
	for i, f := range all {
		types, functions = append(types, f.signature()), append(functions, unsigned(i))
		exports = append(exports, join(name(f.name), []byte{0x00}, unsigned(i)))
		code = append(code, f.entry())
	}
	return join(header,
		section(typeSection, vector(types)),
		section(functionSection, vector(functions)),
		section(tableSection, vector([][]byte{tableOf(len(m.kernels))})),
		section(exportSection, vector(exports)),
		section(codeSection, vector(code)),
	)
}

// header is the magic number and the version.
var header = []byte("\x00asm\x01\x00\x00\x00")

// tableOf returns the type of a table of n functions, after a prefix.
func tableOf(n int, prefix ...byte) []byte { return join(prefix, []byte{funcRef, 0x00}, unsigned(n)) }

// section returns a section with its identifier and length.
func section(id byte, content []byte) []byte {
	return join([]byte{id}, unsigned(len(content)), content)
}

// vector returns items after their number.
func vector(items [][]byte) []byte { return join(unsigned(len(items)), join(items...)) }

// name returns a string after its length.
func name(s string) []byte { return join(unsigned(len(s)), []byte(s)) }

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// unsigned returns n in LEB128.
func unsigned(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// signed returns n in signed LEB128.
func signed(n int) []byte {
	var b []byte
	for ; n < -0x40 || n >= 0x40; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n)&0x7f)
}
