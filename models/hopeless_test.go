package models_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// The product of two counts of config.json is no reason for loops that are longer than the file: layers × experts.
func TestProductOfCounts(t *testing.T) {
	const count = 4000
	file := &safetensors.File{}
	for i := range count {
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(fmt.Sprint("t", i), []int{1}, []float32{0}))
	}
	for _, kind := range []string{"mixtral", "qwen3_moe"} {
		dir := t.TempDir()
		config, err := json.Marshal(map[string]any{
			"model_type": kind, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": count, "num_attention_heads": 2,
			"num_key_value_heads": 2, "vocab_size": 10, "max_position_embeddings": 16, "rope_theta": 1e6,
			"num_local_experts": count, "num_experts_per_tok": 2, "head_dim": 4, "norm_topk_prob": true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := file.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		loops := testing.AllocsPerRun(1, func() { _, err = models.Load(dir, models.Options{}) })
		if err == nil || !strings.Contains(err.Error(), "missing") || loops > 100*count {
			t.Errorf("%s: error %v after %.0f allocations", kind, err, loops)
		}
	}
}
