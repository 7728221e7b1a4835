package tensor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A big-endian NumPy file in Fortran order is read into row-major order.
func TestReadNPY(t *testing.T) {
	file, err := os.Open("../testdata/npy/cube_fortran_big.npy")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	x, err := tensor.ReadNPY(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Shape(), []int{2, 3, 5}) || x.At(1, 2, 3) != 28 || x.At(0, 1, 0) != 5 || x.NeedsGrad() {
		t.Errorf("read %v %v", x.Shape(), x)
	}
	if y, err := tensor.ReadNPY(file); y != nil || !errors.Is(err, io.EOF) {
		t.Errorf("read %v behind the end, error %v", y, err)
	}
}

// A shape that no tensor can have is an error, not a panic.
func TestReadNPYOfImpossibleShape(t *testing.T) {
	const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1125899906842624, 0)}"
	_, err := tensor.ReadNPY(strings.NewReader("\x93NUMPY\x01\x00" + string(rune(len(header))) + "\x00" + header))
	if !strings.HasPrefix(fmt.Sprint(err), "npy: header: shape ") {
		t.Errorf("error %v, want one about the shape", err)
	}
}

// Tensors of any shape, including views, are read back unchanged.
func TestWriteNPY(t *testing.T) {
	all := tensor.New([]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2, 3, 2)
	for _, x := range []*tensor.Tensor{
		all, tensor.Reshape(nil, all, 12), all.Rows(1, 2), tensor.Index(nil, all, 1, 2), tensor.Full(7), tensor.Zeros(3, 0),
	} {
		var b bytes.Buffer
		if err := tensor.WriteNPY(&b, x); err != nil {
			t.Fatal(err)
		}
		y, err := tensor.ReadNPY(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(y.Shape(), x.Shape()) {
			t.Errorf("shape %v, want %v", y.Shape(), x.Shape())
		}
		tensortest.Same(t, fmt.Sprint(x.Shape()), y.Data(), x.Data())
	}
}

// Read weights that another program has saved with numpy.save.
func ExampleReadNPY() {
	file, err := os.Open("../testdata/npy/matrix_fortran.npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	x, err := tensor.ReadNPY(file)
	fmt.Println(x, err)

	// float32 cannot represent 2²⁴ + 1.
	large, err := os.Open("../testdata/npy/inexact_i4.npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer large.Close()
	_, err = tensor.ReadNPY(large)
	fmt.Println(err)
	// Output:
	// [[0 1 2 3 4] [5 6 7 8 9] [10 11 12 13 14]] <nil>
	// npy: element 1 is 16777217, which a float32 does not represent exactly
}

// Python reads this file with numpy.load("weights.npy").
func ExampleWriteNPY() {
	var file bytes.Buffer // or os.Create("weights.npy")
	err := tensor.WriteNPY(&file, tensor.New([]float32{0.25, 0.75, 1, 0}, 2, 2))
	fmt.Println(file.Len(), "bytes,", err)

	x, err := tensor.ReadNPY(&file)
	fmt.Println(x, err)
	// Output:
	// 144 bytes, <nil>
	// [[0.25 0.75] [1 0]] <nil>
}
