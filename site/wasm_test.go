package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/itchio/lzma"
)

// module returns a module with a custom section, the data segments, and another custom section.
func module(segments map[int][]byte, order []int) []byte {
	section := func(number byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{number}, uint64(len(content))), content...)
	}
	data := binary.AppendUvarint(nil, uint64(len(order)))
	for _, from := range order {
		data = append(appendSigned(append(data, 0, i32Const), from), end)
		data = append(binary.AppendUvarint(data, uint64(len(segments[from]))), segments[from]...)
	}
	out := append([]byte("\x00asm\x01\x00\x00\x00"), section(0, []byte("\x01abc"))...)
	return append(append(out, section(dataSection, data)...), section(0, []byte("\x01bxyz"))...)
}

// memory returns the bytes that a module puts into a memory, the number of its segments, and what is before and after
// its data section.
func memory(t *testing.T, module []byte) (image []byte, segments int, around string) {
	t.Helper()
	r := &wasmReader{rest: module[8:]}
	around = string(module[:8])
	for len(r.rest) > 0 {
		number := r.byte()
		content := r.bytes(r.unsigned())
		if number != dataSection {
			around += string(content)
			continue
		}
		s := &wasmReader{rest: content}
		segments = s.unsigned()
		for range segments {
			s.bytes(2)
			from := s.signed()
			s.bytes(1)
			data := s.bytes(s.unsigned())
			image = append(image, make([]byte, max(0, from+len(data)-len(image)))...)
			copy(image[from:], data)
		}
		if s.err != nil || len(s.rest) > 0 {
			t.Fatalf("the data section is not as long as its segments: %v", s.err)
		}
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return image, segments, around
}

func unchanged([]byte) error { return nil }

// Segments that are joined make the same memory, whatever their order, overlaps and distances.
func TestJoinSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fewer := false
	for range 500 {
		segments, order := map[int][]byte{}, []int{}
		for range rng.IntN(30) {
			from, data := rng.IntN(1<<rng.IntN(18)), make([]byte, rng.IntN(100))
			for i := range data {
				data[i] = byte(1 + rng.IntN(255))
			}
			if segments[from] == nil {
				segments[from], order = data, append(order, from)
			}
		}
		before := module(segments, order)
		after, err := joinSegments(before, unchanged)
		if err != nil {
			t.Fatal(err)
		}
		want, many, apart := memory(t, before)
		got, few, rest := memory(t, after)
		if !bytes.Equal(got, want) || rest != apart {
			t.Fatalf("segments at %v make another memory or module", order)
		}
		fewer = fewer || few < many
		for n := range len(before) - 8 {
			joinSegments(before[:8+n], unchanged) // must not panic
		}
	}
	if !fewer {
		t.Error("no segments were joined")
	}
	for _, bad := range []string{
		"", "\x00asm\x02\x00\x00\x00", "\x00asm\x01\x00\x00\x00\x0b\x05\x01", // cut short
		"\x00asm\x01\x00\x00\x00\x0b\x06\x01\x01\x41\x00\x0b\x00", // copied by the program, not at the start
		"\x00asm\x01\x00\x00\x00\x0b\x06\x01\x00\x23\x00\x0b\x00", // at the address in a global variable
	} {
		if out, err := joinSegments([]byte(bad), unchanged); err == nil {
			t.Errorf("%q: %q, want an error", bad, out)
		}
	}
}

// A program is compressed into another file, with its size, which the library reads back.
func TestSqueeze(t *testing.T) {
	b := &build{out: t.TempDir(), files: map[string]*file{}}
	want := []byte(strings.Repeat("attend to the keys; ", 500))
	if err := b.write("a.wasm", want); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.out, "a.wasm.lzma"))
	if err != nil || len(data) > len(want)/20 || binary.LittleEndian.Uint64(data[5:]) != uint64(len(want)) {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if f := b.files["a.wasm.lzma"]; f == nil || f.compressed != len(data) {
		t.Errorf("the size in the report is %v, want %d", f, len(data))
	}
	var got bytes.Buffer
	r := lzma.NewReader(bytes.NewReader(data))
	if _, err := got.ReadFrom(r); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes, %v, want the %d compressed ones", got.Len(), err, len(want))
	}
}
