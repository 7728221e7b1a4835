package statedict_test

import (
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
)

// Save a layer, and load it into another.
func ExampleSave() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "layer.safetensors")

	rng := rand.New(rand.NewPCG(1, 2))
	layer, other := nn.NewLinear(3, 2, true, rng), nn.NewLinear(3, 2, true, rng)
	if err := statedict.Save(path, layer, statedict.SaveOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := statedict.Load(path, other, statedict.LoadOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(slices.Equal(layer.Weight.Data(), other.Weight.Data()))
	// Output: true
}

// The file has tensors that the layer does not need and lacks one that it needs; the error reports both in one line.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	rng := rand.New(rand.NewPCG(1, 2))
	if err := statedict.Save(path, nn.NewLinear(3, 2, false, rng), statedict.SaveOptions{Prefix: "head."}); err != nil {
		log.Fatal(err)
	}

	err = statedict.Load(path, nn.NewLayerNorm(3), statedict.LoadOptions{Prefix: "head."})
	var mismatch *statedict.MismatchError
	fmt.Println(errors.As(err, &mismatch), mismatch)
	// Output: true tensor "head.bias" is missing; tensor "head.weight" has shape [2 3], want [3]
}
