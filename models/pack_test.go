package models

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// A matrix that several tasks read has the same numbers as one that is set at once, for any number of
// processors and any type in the file. A file that is truncated while it is read gives an error.
func TestMatricesInTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: millions of numbers, again and again")
	}
	const name, in, first, second = "w", 1009, 4211, 131
	file := newRandomFile(map[string][]int{name: {first + second, in}})
	data, err := io.ReadAll(io.NewSectionReader(file, 0, file.size))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := safetensors.NewReader(bytes.NewReader(data), file.size)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]float32, (first+second)*in)
	if err := whole.ReadFloat32s(name, rows, 0); err != nil {
		t.Fatal(err)
	}
	turned := make([]float32, len(rows))
	for i, v := range rows {
		turned[i%in*(first+second)+i/in] = v
	}
	var floats bytes.Buffer
	if err := (&safetensors.File{Tensors: []safetensors.Tensor{
		safetensors.FromFloat32s(name, []int{first + second, in}, rows), safetensors.FromFloat32s("turned", []int{in, first + second}, turned),
	}}).Write(&floats); err != nil {
		t.Fatal(err)
	}
	inFloats, err := safetensors.NewReader(bytes.NewReader(floats.Bytes()), int64(floats.Len()))
	if err != nil {
		t.Fatal(err)
	}
	files := []struct {
		r    *safetensors.Reader
		name string
	}{{whole, name}, {inFloats, name}, {inFloats, "turned"}}
	indices := []int{0, 1, 63, 64, 1000, first - 1}
	for _, numbers := range tensor.Formats() {
		at := 0
		for part, out := range []int{first, second} {
			want := tensor.NewPacked(out, in, numbers)
			want.SetRows(0, rows[at*in:][:out*in])
			at += out
			for i, file := range files {
				procs := []int{1, 2, 7}[i]
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				b := &Builder{building: &building{directory: &directory{r: file.r, format: numbers}}}
				b.Unread(name, "turned")
				got := b.pack(file.name, file.name == "turned", in, first, second)[part]
				if err := b.load(); err != nil {
					t.Fatal(err)
				}
				for _, j := range indices {
					j %= out
					x, y := got.Rows(nil, []int{j}).Data(), want.Rows(nil, []int{j}).Data()
					for k := range x {
						if x[k] != y[k] {
							t.Fatalf("file %d, %v, part %d, %d processors: weight %d of row %d is %v, want %v", i, numbers, part, procs, k, j, x[k], y[k])
						}
					}
				}
			}
		}
	}
	short, err := safetensors.NewReader(bytes.NewReader(data[:len(data)-in]), file.size)
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{building: &building{directory: &directory{r: short, format: tensor.Int8}}}
	b.pack(name, false, in, first, second)
	if err := b.load(); err == nil || !strings.Contains(err.Error(), "became shorter while it was read") {
		t.Errorf("%v from a file that ends early", err)
	}
}
