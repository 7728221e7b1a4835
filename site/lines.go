package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Package runtime finds the functions of a program in pclntab, a part of the initial memory: a header, then the names
// of functions (funcnametab), of files (cutab and filetab), tables of what changes within a function from instruction
// to instruction (pctab), and the functions (functab). The layout is in runtime/symtab.go and runtime2.go of Go, and in
// cmd/link/internal/ld/pcln.go.

// pclntabStart begins the header: a number for the format, two zeros, the sizes of an instruction and of a pointer.
const pclntabStart = "\xf1\xff\xff\xff\x00\x00\x01\x08"

// Positions in the header, in bytes.
const (
	headerFuncs      = 8 // the number of functions
	headerCutab      = 40
	headerPctab      = 56
	headerFunctab    = 64
	pclntabHeaderLen = 72
)

// Positions in a function of functab, in bytes.
const (
	funcPcsp      = 16 // in pctab, the size of the stack
	funcPcfile    = 20 // in pctab, numbers of files
	funcPcln      = 24 // in pctab, numbers of lines
	funcNpcdata   = 28
	funcCuOffset  = 32 // in cutab
	funcStartLine = 36
	funcNfuncdata = 43
	funcLen       = 44 // positions in pctab of more tables follow, then positions of funcdata
)

// unsafePoint is the index of the table of instructions at which a signal may not interrupt a function. There are no
// signals in WebAssembly.
const unsafePoint = 0

// dropLines overwrites with zeros what only the files and lines of stack traces need, a tenth of a compressed program.
// Traces keep the names of functions, and show "?:0" instead of a file and line. The tables of the stack, on which the
// garbage collector, growing stacks and recover depend, stay as they are, and nothing moves. After an error, the memory
// may be half changed.
func dropLines(memory []byte) error {
	wrong := func(what string, args ...any) error {
		return fmt.Errorf("pclntab is not that of Go 1.26 and 1.27: "+what, args...)
	}
	if n := bytes.Count(memory, []byte(pclntabStart)); n != 1 {
		return wrong("%d headers, want 1", n)
	}
	table := memory[bytes.Index(memory, []byte(pclntabStart)):]
	if len(table) < pclntabHeaderLen {
		return wrong("it is cut short")
	}
	size := uint64(len(table))
	count := binary.LittleEndian.Uint64(table[headerFuncs:])
	cutab := binary.LittleEndian.Uint64(table[headerCutab:])
	pctab := binary.LittleEndian.Uint64(table[headerPctab:])
	functab := binary.LittleEndian.Uint64(table[headerFunctab:])
	if cutab < pclntabHeaderLen || pctab < cutab || functab < pctab || size < functab || (size-functab)/8 <= count {
		return wrong("its parts begin at %d, %d, %d of %d, with %d functions", cutab, pctab, functab, size, count)
	}
	files, tables, funcs := table[cutab:pctab], table[pctab:functab], table[functab:]

	ends := map[int]int{} // of each table of pctab, by its start
	kept := make([]byte, len(tables))
	next := 8*int(count) + 4 // of the function after the last one read
	for i := range int(count) {
		next = (next + 7) &^ 7
		entry := funcs[8*i:]
		if next+funcLen > len(funcs) || binary.LittleEndian.Uint32(entry[4:]) != uint32(next) ||
			!bytes.Equal(entry[:4], funcs[next:next+4]) {
			return wrong("function %d is not at %d", i, next)
		}
		f := funcs[next:]
		pcdata := int(binary.LittleEndian.Uint32(f[funcNpcdata:]))
		if next += funcLen + 4*(pcdata+int(f[funcNfuncdata])); next > len(funcs) {
			return wrong("function %d is cut short", i)
		}
		fields := []int{funcPcsp, funcPcfile, funcPcln}
		for j := range pcdata {
			fields = append(fields, funcLen+4*j)
		}
		for _, field := range fields {
			from := int(binary.LittleEndian.Uint32(f[field:]))
			if from == 0 { // no table
				continue
			}
			if ends[from] == 0 {
				ends[from] = pctableEnd(tables, from)
			}
			to := ends[from]
			if to < 0 {
				return wrong("a table of function %d is cut short", i)
			}
			switch field {
			case funcPcfile, funcPcln, funcLen + 4*unsafePoint:
				clear(f[field : field+4])
			default:
				copy(kept[from:to], tables[from:to])
			}
		}
		clear(f[funcCuOffset : funcStartLine+4])
	}

	// The functions must refer to every byte of pctab, and tables must not overlap: then no other table is cut.
	end := 1 // the first byte is in no table, because position 0 means that there is none
	for _, from := range slices.Sorted(maps.Keys(ends)) {
		if from != end {
			return wrong("a table of pctab is at %d, want %d", from, end)
		}
		end = ends[from]
	}
	if (end+7)&^7 != len(tables) {
		return wrong("pctab has %d bytes in tables of %d", end, len(tables))
	}
	copy(tables, kept)
	clear(files)
	return nil
}

// pctableEnd returns the end of a table of pctab, or -1. A table consists of pairs of numbers: the change of the value,
// which is 0 in the first pair only, and the number of instructions with this value. A zero ends it.
func pctableEnd(tables []byte, at int) int {
	for first := true; at < len(tables); first = false {
		if tables[at] == 0 && !first {
			return at + 1
		}
		for range 2 {
			_, n := binary.Uvarint(tables[min(at, len(tables)):])
			if n <= 0 {
				return -1
			}
			at += n
		}
	}
	return -1
}
