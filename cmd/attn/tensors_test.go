package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attn-go/attn/safetensors"
)

// tensors FILE NAME:DTYPE:SHAPE[=VALUES]… writes a safetensors file:
//
//	tensors x.safetensors q:F32:2,3,4 valid_lens:I64:2=3,1
//
// Without values, numbers are small and distinct, and booleans are true.
func writeTensors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: tensors FILE NAME:DTYPE:SHAPE[=VALUES]…")
	}
	var f safetensors.File
	for _, arg := range args[1:] {
		head, text, given := strings.Cut(arg, "=")
		part := strings.Split(head, ":")
		if len(part) != 3 {
			ts.Fatalf("%s: want NAME:DTYPE:SHAPE", arg)
		}
		shape := numbers(ts, part[2])
		var values []float64
		if given {
			for _, n := range numbers(ts, text) {
				values = append(values, float64(n))
			}
		} else {
			n := 1
			for _, d := range shape {
				n *= d
			}
			for i := range n {
				values = append(values, math.Sin(float64(len(f.Tensors)*100+i)))
			}
		}
		f.Tensors = append(f.Tensors, encode(ts, part[0], safetensors.DType(part[1]), shape, values))
	}
	ts.Check(f.WriteFile(ts.MkAbs(args[0])))
}

// numbers parses a comma-separated list of integers.
func numbers(ts *testscript.TestScript, list string) []int {
	if list == "" {
		return nil
	}
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		ts.Check(err)
		all = append(all, n)
	}
	return all
}

// encode returns a tensor; a boolean is false if its value is 0.
func encode(ts *testscript.TestScript, name string, dtype safetensors.DType, shape []int, values []float64) safetensors.Tensor {
	var data []byte
	for _, v := range values {
		switch dtype {
		case safetensors.F32:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		case safetensors.F64:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
		case safetensors.I32:
			data = binary.LittleEndian.AppendUint32(data, uint32(int32(v)))
		case safetensors.I64:
			data = binary.LittleEndian.AppendUint64(data, uint64(int64(v)))
		case safetensors.BOOL:
			truth := byte(1)
			if v == 0 {
				truth = 0
			}
			data = append(data, truth)
		default:
			ts.Fatalf("no dtype %s", dtype)
		}
	}
	return safetensors.Tensor{Name: name, DType: dtype, Shape: shape, Data: data}
}

// weights FILE NAME:SHAPE… writes layers of attention weights: distinct rows that sum to 1 along the
// last axis.
func writeWeights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: weights FILE NAME:SHAPE…")
	}
	var f safetensors.File
	for _, arg := range args[1:] {
		name, text, _ := strings.Cut(arg, ":")
		shape := numbers(ts, text)
		n := 1
		for _, d := range shape {
			n *= d
		}
		x, row := make([]float32, n), shape[len(shape)-1]
		for at := 0; at < n; at += row {
			var sum float32
			for j := range row {
				x[at+j] = float32(math.Exp(math.Sin(float64(len(f.Tensors)*100 + at + j))))
				sum += x[at+j]
			}
			for j := range row {
				x[at+j] /= sum
			}
		}
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, shape, x))
	}
	ts.Check(f.WriteFile(ts.MkAbs(args[0])))
}

// raw FILE LENGTH HEADER N writes an invalid safetensors file: the length of the header ("own" for the
// true length), the header, and N zero bytes.
func writeRaw(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: raw FILE LENGTH HEADER N")
	}
	length := uint64(len(args[2]))
	if args[1] != "own" {
		var err error
		length, err = strconv.ParseUint(args[1], 10, 64)
		ts.Check(err)
	}
	n, err := strconv.Atoi(args[3])
	ts.Check(err)
	data := append(binary.LittleEndian.AppendUint64(nil, length), args[2]...)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(data, make([]byte, n)...), 0o644))
}

// nan FILE replaces every number of a safetensors file with NaN.
func fillWithNaN(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nan FILE")
	}
	f, err := safetensors.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	for i, t := range f.Tensors {
		x, err := t.Float32s()
		ts.Check(err)
		for j := range x {
			x[j] = float32(math.NaN())
		}
		f.Tensors[i] = safetensors.FromFloat32s(t.Name, t.Shape, x)
	}
	ts.Check(f.WriteFile(ts.MkAbs(args[0])))
}

// shapes FILE NAME:SHAPE… checks that a safetensors file contains exactly these F32 tensors, in this
// order, with finite numbers.
func checkShapes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: shapes FILE NAME:SHAPE…")
	}
	f, err := safetensors.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	var got []string
	for _, t := range f.Tensors {
		var x []float32
		if t.DType != safetensors.I64 {
			x, err = t.Float32s()
			ts.Check(err)
		}
		if i := slices.IndexFunc(x, func(v float32) bool { return v-v != 0 }); i >= 0 {
			ts.Fatalf("element %d of %s is %v", i, t.Name, x[i])
		}
		got = append(got, t.Name+":"+strings.Join(strings.Fields(strings.Trim(fmt.Sprint(t.Shape), "[]")), ","))
	}
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("%s holds %q, want %q", args[0], got, args[1:])
	}
}
