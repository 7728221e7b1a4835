package main

import (
	"fmt"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// assemblyARM64 returns the assembly for arm64, one file for each family that has any.
func assemblyARM64() map[string][]byte { return assemblyFiles("arm64", (*family).assemblyARM64) }

func (f *family) assemblyARM64() string {
	t := new(table)
	text := f.assembly("arm64", func(k *kernel, i *implementation, name string) string {
		writing = &neonProgram{Func: a64.New(name, k.asm), implementation: i, table: t}
		k.code[i]()
		return writing.Text()
	})
	return text + t.text()
}

// A table is the constants of a file: vectors in memory.
type table struct{ rows [][4]uint32 }

// tableName is the name of the table in a file.
const tableName = "constants<>"

// offset returns the offset of a vector in the table.
func (t *table) offset(v [4]uint32) int {
	for i, r := range t.rows {
		if r == v {
			return 16 * i
		}
	}
	t.rows = append(t.rows, v)
	return 16 * (len(t.rows) - 1)
}

func (t *table) text() string {
	if len(t.rows) == 0 {
		return ""
	}
	out := "\n"
	for i, r := range t.rows {
		for half := range 2 {
			out += fmt.Sprintf("DATA %s+%d(SB)/8, $0x%08x%08x\n", tableName, 16*i+8*half, r[2*half+1], r[2*half])
		}
	}
	return out + fmt.Sprintf("GLOBL %s(SB), RODATA|NOPTR, $%d\n", tableName, 16*len(t.rows))
}

// writing is the function that the code of a kernel is written to.
var writing *neonProgram

// neon adds the code for NEON.
func (c code) neon(write func(f *neonProgram)) code {
	c[neon] = func() { write(writing) }
	return c
}
