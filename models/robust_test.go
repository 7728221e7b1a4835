package models_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// TestAnySetting sets every setting to values of every kind. Loading returns an error, or the model runs:
// nothing panics, and memory stays in proportion to the files.
func TestAnySetting(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: any value of every setting")
	}
	values := []any{nil, true, -1, 0, 2, 15, 1 << 24, int64(1 << 40), -1e300, "x", []any{"x"}, map[string]any{"0": "x"}}
	seen := map[string]bool{} // families: one model of each
	for _, dir := range cases(t) {
		config, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var settings map[string]json.RawMessage
		if err := json.Unmarshal(config, &settings); err != nil {
			t.Fatal(err)
		}
		if family := string(settings["model_type"]); seen[family] {
			continue
		} else {
			seen[family] = true
		}
		to, x := copyDir(t, dir), openGolden(t, dir).x
		for key, was := range settings {
			for _, v := range values {
				if settings[key], err = json.Marshal(v); err != nil {
					t.Fatal(err)
				}
				changed, err := json.Marshal(settings)
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(to, "config.json"), string(changed))
				if err := tensor.Catch(func() { loadAndRun(t, to, x) }); err != nil {
					t.Fatalf("%s with %s = %v panics: %v", dir, key, v, err)
				}
			}
			settings[key] = was
		}
	}
}

// loadAndRun loads a tiny model and runs it if loading succeeds.
func loadAndRun(t *testing.T, dir string, x models.Batch) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := models.Load(dir, models.Options{})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d bytes were allocated for a tiny model: %v", n, err)
	}
	if err != nil || m.Sizes().Check(x) != nil {
		return
	}
	hidden := m.Hidden(nil, x, models.Run{})
	if got, want := fmt.Sprint(hidden.Shape()), fmt.Sprint([]int{len(x.IDs), len(x.IDs[0]), m.Sizes().Width}); got != want {
		t.Errorf("hidden states of shape %s, want %s", got, want)
	}
	if h := m.Head(); h != nil {
		h.Logits(nil, hidden)
	}
}
