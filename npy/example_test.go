package npy_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/attn-go/attn/npy"
	"github.com/attn-go/attn/tensor"
)

// Read weights that another program has saved with numpy.save.
func ExampleRead() {
	for _, name := range []string{"matrix", "half"} {
		file, err := os.Open("../testdata/npy/" + name + ".npy")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer file.Close()
		x, err := npy.Read(file)
		fmt.Println(x, err)
	}
	// Output:
	// [[0 1 2 3 4] [5 6 7 8 9] [10 11 12 13 14]] <nil>
	// <nil> npy: header: descr is "<f2", want "<f4" or "<f8", to which astype converts in NumPy
}

// Python reads this file with numpy.load("weights.npy").
func ExampleWrite() {
	var file bytes.Buffer // or os.Create("weights.npy")
	err := npy.Write(&file, tensor.New([]float32{0.25, 0.75, 1, 0}, 2, 2))
	fmt.Println(file.Len(), "bytes,", err)

	x, err := npy.Read(&file)
	fmt.Println(x, err)
	// Output:
	// 144 bytes, <nil>
	// [[0.25 0.75] [1 0]] <nil>
}
