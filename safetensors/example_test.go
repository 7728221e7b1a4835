package safetensors_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/safetensors"
)

// Write a file and read all of it back.
func Example() {
	f := &safetensors.File{
		Metadata: map[string]string{"format": "pt"},
		Tensors: []safetensors.Tensor{
			safetensors.FromFloat32s("weight", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}),
			safetensors.FromInts("steps", nil, []int{400}),
		},
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "layer.safetensors")
	if err := f.WriteFile(path); err != nil {
		log.Fatal(err)
	}

	f, err = safetensors.Read(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t.DType, t.Shape)
	}
	weight, err := f.Lookup("weight").Float32s()
	fmt.Println(weight, err)
	// Output:
	// weight F32 [2 3]
	// steps I64 []
	// [1 2 3 4 5 6] <nil>
}

// Read one row of one matrix from a model that is split over several files. Of the other tensors, only the headers
// are read.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f := &safetensors.File{Tensors: []safetensors.Tensor{
		safetensors.FromFloat32s("embedding", []int{4, 2}, []float32{0, 1, 10, 11, 20, 21, 30, 31}),
		safetensors.FromFloat32s("bias", []int{2}, []float32{5, 6}),
	}}
	if err := f.WriteShards(filepath.Join(dir, "model.safetensors"), 32); err != nil {
		log.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		fmt.Println(file.Name())
	}

	r, err := safetensors.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	row := make([]float32, 2)
	if err := r.ReadFloat32s("embedding", row, 3*2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(r.Tensors()), row)
	// Output:
	// model-00001-of-00002.safetensors
	// model-00002-of-00002.safetensors
	// model.safetensors.index.json
	// 2 [30 31]
}

// An error describes the problem in a file in one line.
func ExampleReader_ReadFloat32s() {
	var b bytes.Buffer
	f := &safetensors.File{Tensors: []safetensors.Tensor{safetensors.FromInts("ids", []int{2}, []int{7, 8})}}
	if err := f.Write(&b); err != nil {
		log.Fatal(err)
	}
	r, err := safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		log.Fatal(err)
	}
	x := make([]float32, 2)
	fmt.Println(r.ReadFloat32s("ids", x, 0))
	fmt.Println(r.ReadFloat32s("weight", x, 0))
	// Output:
	// safetensors: tensor "ids": dtype is I64, want F16, BF16, F32 or F64
	// safetensors: tensor "weight" is missing
}

// Create tensors one after another while the file is written: only names and shapes are in memory at once.
func ExampleStream() {
	s := &safetensors.Stream{
		Tensors: []safetensors.Info{
			{Name: "a", DType: safetensors.BF16, Shape: []int{2}},
			{Name: "b", DType: safetensors.F32, Shape: []int{1}},
		},
	}
	s.Data = func(w io.Writer, i int) error {
		b, err := safetensors.AppendFloat32s(nil, s.Tensors[i].DType, []float32{1, 2}[:s.Tensors[i].Shape[0]])
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Parse(b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors {
		x, err := t.Float32s()
		fmt.Println(t.Name, t.DType, x, err)
	}
	// Output:
	// a BF16 [1 2] <nil>
	// b F32 [1] <nil>
}
