package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// functions returns a memory with a pclntab after some bytes, of two functions whose tables are in pctab: of the stack,
// of files, of lines, then pcdata. Position 0 means that there is no table.
func functions(pctab []byte, first, second [5]uint32) []byte {
	u32 := binary.LittleEndian.AppendUint32
	var funcs []byte
	position := uint32((8*2 + 4 + 7) &^ 7)
	for _, entry := range []uint32{3, 4} {
		funcs = u32(u32(funcs, entry), position)
		position += funcLen + 4*2 + 4
	}
	funcs = u32(u32(funcs, 5), 0)
	for i, tables := range [][5]uint32{first, second} {
		for _, v := range []uint32{uint32(3 + i), 77, 16, 0, tables[0], tables[1], tables[2], 2, 88, 99, 1 << 24} {
			funcs = u32(funcs, v)
		}
		funcs = u32(u32(u32(funcs, tables[3]), tables[4]), 66) // the last is funcdata
	}
	for len(pctab)%8 != 0 {
		pctab = append(pctab, 0)
	}
	header := []byte("before: " + pclntabStart)
	for _, v := range []int{2, 1, 0, 72, 80, 88, 96, 96 + len(pctab)} {
		header = binary.LittleEndian.AppendUint64(header, uint64(v))
	}
	return slices.Concat(header, []byte("\x00names\x00\x00cutables a file\x00"), pctab, funcs, []byte("after"))
}

// Files and lines become zeros, but for a table that is also one of the stack, and nothing else changes.
func TestDropLines(t *testing.T) {
	pctab := []byte("\x00" + "\x00\x81\x01\x02\x03\x00" + "\x02\x05\x00" + "\x00\x07\x00" + "\x0a\x09\x00")
	const stack, file, line, last = 1, 7, 10, 13
	memory := functions(pctab, [5]uint32{stack, file, line, line, file}, [5]uint32{stack, file, last, 0, 0})
	want := functions([]byte("\x00"+"\x00\x81\x01\x02\x03\x00"+"\x02\x05\x00"+"\x00\x00\x00"+"\x00\x00\x00"),
		[5]uint32{stack, 0, 0, 0, file}, [5]uint32{stack, 0, 0, 0, 0})
	clear(want[8+80 : 8+96])
	for _, f := range []int{24, 24 + funcLen + 12} {
		clear(want[8+96+16+f+funcCuOffset:][:8])
	}
	before := bytes.Clone(memory)
	if err := dropLines(memory); err != nil || !bytes.Equal(memory, want) {
		t.Errorf("%q, %v, want %q", memory, err, want)
	}
	for n := range before {
		if err := dropLines(bytes.Clone(before[:n])); n < len(before)-len("after") && err == nil {
			t.Errorf("%d bytes of %d: no error", n, len(before))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		damaged := bytes.Clone(before)
		for range 1 + rng.IntN(3) {
			damaged[rng.IntN(len(damaged))] = byte(rng.IntN(256))
		}
		dropLines(damaged) // must not panic
	}
	for what, bad := range map[string][]byte{
		"has no header":                 []byte("a program"),
		"has two headers":               slices.Concat(before, before),
		"has a gap between tables":      functions(append(pctab, 2, 1, 0), [5]uint32{stack, file}, [5]uint32{}),
		"has tables that overlap":       functions(pctab, [5]uint32{stack, file, line, 3}, [5]uint32{last}),
		"has a table that does not end": functions(pctab, [5]uint32{stack, file, line, 20}, [5]uint32{last}),
		"has a table outside":           functions(pctab, [5]uint32{stack, file, line, 1 << 31}, [5]uint32{last}),
		"has tables without functions":  functions(append(pctab, pctab...), [5]uint32{stack, file, line}, [5]uint32{last}),
	} {
		if err := dropLines(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("a memory that %s: error %v, want one line", what, err)
		}
	}
}

// A program does the same without files and lines, with the flags of every program of the lessons, and a panic that
// ends it shows its value and the names of functions.
func TestProgramWithoutLines(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for WebAssembly")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: Node is not installed: no program runs without its files and lines")
	}
	goroot, err := goOutput("env", "GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			dir := t.TempDir()
			before := filepath.Join(dir, "before.wasm")
			module, err := compile(filepath.Join("testdata", "program"), before, p.flags)
			if err != nil {
				t.Fatal(err)
			}
			if module, err = joinSegments(module, dropLines); err != nil {
				t.Fatal(err)
			}
			after := filepath.Join(dir, "after.wasm")
			if err := os.WriteFile(after, module, 0o644); err != nil {
				t.Fatal(err)
			}
			node := func(args ...string) (stdout, stderr string, code int) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				runner := filepath.Join(goroot, "lib", "wasm", "wasm_exec_node.js")
				c := exec.CommandContext(ctx, "node", append([]string{runner}, args...)...)
				var out, log strings.Builder
				c.Stdout, c.Stderr = &out, &log
				if err := c.Run(); err != nil {
					failed, ok := errors.AsType[*exec.ExitError](err)
					if !ok {
						t.Fatal(err)
					}
					code = failed.ExitCode()
				}
				return out.String(), log.String(), code
			}
			want, log, code := node(before)
			if code != 0 || strings.Count(want, "\n") < 30 {
				t.Fatalf("exit code %d, %s%s", code, want, log)
			}
			if got, log, code := node(after); got != want || code != 0 {
				t.Errorf("without lines: exit code %d\n%s\n%s\nwant\n%s", code, got, log, want)
			}
			_, trace, _ := node(before, "this")
			_, short, code := node(after, "this")
			if code != 2 || !strings.HasPrefix(short, "panic: the end of this\n") ||
				!strings.Contains(short, "\nmain.deep(") {
				t.Errorf("a panic: exit code %d, %s", code, short)
			}
			if !strings.Contains(trace, "main.go:") || strings.Contains(short, ".go:") {
				t.Errorf("lines are in %s, want them in %s", short, trace)
			}
		})
	}
}
