package models_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// bareDecoder returns a directory with a decoder without its head, and the prefix of all tensor names, as in
// a bare model.
func bareDecoder(t *testing.T, name, class string) string {
	t.Helper()
	dir := edit(t, filepath.Join("decoders", name), object{"architectures": []string{class}})
	path := filepath.Join(dir, "model.safetensors")
	file, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Tensors = slices.DeleteFunc(file.Tensors, func(x safetensors.Tensor) bool { return x.Name == "lm_head.weight" })
	for i := range file.Tensors {
		file.Tensors[i].Name = strings.TrimPrefix(file.Tensors[i].Name, "model.")
	}
	if err := file.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A bare decoder computes the same hidden states as the decoder with a head.
func TestBareDecoder(t *testing.T) {
	whole, _ := openDecoder(t, "qwen2")
	bare, err := models.Load(bareDecoder(t, "qwen2", "Qwen2Model"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{3, 1, 4, 1, 5}, {2, 7}}}
	want, got := whole.Hidden(nil, x, models.Run{}), bare.Hidden(nil, x, models.Run{})
	if !slices.Equal(got.Data(), want.Data()) {
		t.Errorf("hidden states differ from those of the model with a head")
	}
	if bare.Head() != nil {
		t.Errorf("it has a head for the %s, want none", bare.Head().Task)
	}
	if _, err := bare.Generate(t.Context(), []int{1}, models.Generation{}); err == nil || !strings.Contains(err.Error(), "want a model with a head for the next word") {
		t.Errorf("Generate: error %v, want one that asks for a head", err)
	}
}

// A file without the head of its class is rejected.
func TestDecoderWithoutItsHead(t *testing.T) {
	if got, want := refused(t, bareDecoder(t, "qwen2", "Qwen2ForCausalLM")), `tensor "lm_head.weight" is missing`; !strings.Contains(got, want) {
		t.Errorf("error %s, want %s", got, want)
	}
}
