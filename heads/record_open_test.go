package heads

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn/safetensors"
)

// An opened record equals the record that Read returns, and Head returns the same weights.
func TestOpenIsRead(t *testing.T) {
	weights := make([]float32, 3*5*5)
	for i := range weights {
		if i%5 <= i/5%5 {
			weights[i] = 1 / float32(1+i/5%5)
		}
	}
	for name, tensors := range map[string][]string{"named": {"encoder.0", "decoder.1"}, "not named": {"b", "a"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.safetensors")
			var file safetensors.File
			for _, tensor := range tensors {
				file.Tensors = append(file.Tensors, safetensors.FromFloat32s(tensor, []int{3, 5, 5}, weights))
			}
			if err := file.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			want, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want.Layers {
				for h := range want.Layers[i].Heads {
					if w, err := got.Head(i, h); err != nil || !slices.Equal(w, want.Layers[i].Head(h)) {
						t.Errorf("layer %d head %d: %v, %v", i, h, w, err)
					}
				}
				if got.Record.Layers[i].Weights != nil {
					t.Errorf("layer %d has its weights in memory", i)
				}
				want.Layers[i].Weights = nil
			}
			if !reflect.DeepEqual(got.Record, want) {
				t.Errorf("%+v, want %+v", got.Record, want)
			}
			if err := got.Close(); err != nil {
				t.Error(err)
			}
			if _, err := got.Head(0, 0); err == nil {
				t.Error("a closed file can be read")
			}
		})
	}
}

// Open rejects the files that Read rejects, with the same errors.
func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.safetensors")
	file := safetensors.File{Tensors: []safetensors.Tensor{safetensors.FromFloat32s("weight", []int{2, 3}, make([]float32, 6))}}
	if err := file.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	_, want := Read(path)
	if _, err := Open(path); err == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
}
