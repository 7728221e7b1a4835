package models

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
)

// defaultsTable is what a version of transformers makes of changed settings; testdata/model_defaults.py explains it.
type defaultsTable struct {
	Version string
	Models  map[string]struct {
		First   map[string]any // what save_pretrained writes
		Results []defaultsResult
		Cases   []defaultsCase
	}
}

type defaultsResult struct {
	Sum    []float64      // empty if the weights do not fit the settings, nil if transformers fails
	Config map[string]any // the difference from First, nil if the settings are refused
}

type defaultsCase struct {
	changes map[string]any // values by key; "-" if the key is absent
	result  int
}

func (c *defaultsCase) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&c.changes, &c.result})
}

func readDefaults(t *testing.T, name string) (table defaultsTable) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata/defaults", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := gzip.NewReader(file)
	if err == nil {
		err = json.NewDecoder(data).Decode(&table)
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// changedSettings returns settings with other values of some keys; "rope_parameters.factor" is a key in an object.
func changedSettings(settings, changes map[string]any) map[string]any {
	settings = maps.Clone(settings)
	for key, value := range changes {
		if part, inner, ok := strings.Cut(key, "."); ok {
			settings[part] = changedSettings(settings[part].(map[string]any), map[string]any{inner: value})
			continue
		}
		if settings[key] = value; value == "-" {
			delete(settings, key)
		}
	}
	return settings
}

// withSettings loads weights with other settings than those of their directory.
func withSettings(t *testing.T, r *safetensors.Reader, settings map[string]any) (*Model, error) {
	t.Helper()
	s, family, err := parseSettings(t, settings)
	if err != nil {
		return nil, err
	}
	network, b, err := build(&directory{settings: s, r: r}, family.New)
	if err != nil {
		return nil, err
	}
	return newModel(network, b, family, Options{}), nil
}

// defaultsOutput returns the logits of a text, or the last states of a model without a head, and the sizes and windows
// that one short text does not show.
func defaultsOutput(m *Model, head bool) (out []float32, sizes string) {
	z := m.Sizes()
	ids := make([]int, 11)
	for i := range ids {
		ids[i] = (5+3*i)%(z.Vocabulary-4) + 4
	}
	x := Batch{IDs: [][]int{ids}}
	if z.Decoder != nil {
		x.Targets = [][]int{ids[:7]}
		sizes = fmt.Sprint(*z.Decoder)
		z.Decoder = nil
		start, err := m.DecoderStart()
		sizes += fmt.Sprint(" start ", start, err, " ")
	}
	if s, ok := m.Network.(*stack); ok {
		for _, b := range s.blocks {
			sizes += fmt.Sprint(b.window, " ")
		}
	}
	hidden := m.Hidden(nil, x, Run{})
	if h := m.Head(); h != nil && head {
		hidden = h.Of(nil, hidden, x)
	}
	return hidden.Data(), sizes + fmt.Sprint(z)
}

// near reports whether an output has the sums of a result.
func (r defaultsResult) near(out []float32) bool {
	var norm float64
	for _, x := range out {
		norm += float64(x) * float64(x)
	}
	norm = math.Sqrt(norm)
	sums := []float64{norm, 0, 0, 0}
	for n := range 3 {
		for i, x := range out {
			sums[n+1] += float64(x) * math.Cos(float64(1+n)+float64(i)*float64(1+n))
		}
	}
	for i, x := range sums {
		if math.Abs(x-r.Sum[i]) > 2e-4*norm {
			return false
		}
	}
	return true
}

// Settings that are absent, null or changed mean what they mean in transformers, alone and together, or are refused.
// What transformers saves for them gives the same bits. Where versions disagree, settings are refused. A change that is
// none in transformers is none here, but sizes must be given.
func TestDefaults(t *testing.T) {
	// Files of transformers 5, which 4 reads in another way.
	newer := []string{"bert_untied", "seq2seq/mt5"}
	exceptions := []string{
		// Tensors in the file say which head there is.
		"deberta_v3 map[legacy:-]", "deberta_words map[legacy:<nil>]",
		// transformers 4 reads them in another way.
		"decoders/olmo3 map[rope_theta:500]", "seq2seq/umt5_tied map[tie_word_embeddings:<nil>]",
		"seq2seq/t5 map[tie_word_embeddings:<nil>]",
		// The script then gives no target.
		"seq2seq/bart map[is_encoder_decoder:<nil>]",
	}
	deliberate := func(err error) bool { // sizes, two forms of a setting, and those that transformers does not read
		text := err.Error()
		return strings.Contains(text, "is missing, want ") || strings.HasSuffix(text, " or none") ||
			strings.Contains(text, "are both set")
	}
	for _, version := range []string{"transformers4.json.gz", "transformers5.json.gz"} {
		table := readDefaults(t, version)
		old := strings.HasPrefix(table.Version, "4.")
		for i, name := range slices.Sorted(maps.Keys(table.Models)) {
			if testing.Short() && i%6 > 0 {
				continue
			}
			t.Run(table.Version+"/"+name, func(t *testing.T) {
				dir := filepath.Join("testdata", name)
				var settings map[string]any
				data, err := os.ReadFile(filepath.Join(dir, configFile))
				if err == nil {
					err = json.Unmarshal(pythonNumbers(data), &settings)
				}
				r, err2 := safetensors.Open(dir)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				defer r.Close()
				if slices.Contains(newer, name) && old {
					return
				}
				saved := map[int]*Model{} // of results
				for _, c := range table.Models[name].Cases {
					result := table.Models[name].Results[c.result]
					changed := changedSettings(settings, c.changes)
					if changed["rope_parameters"] != nil && old {
						continue // which this version does not read
					}
					if slices.Contains(exceptions, fmt.Sprint(name, " ", c.changes)) {
						continue
					}
					m, err := withSettings(t, r, changed)
					switch {
					case err != nil && c.result == 0 && !deliberate(err):
						t.Errorf("%v: %v, want that it is the same as without a change", c.changes, err)
						continue
					case err != nil:
						continue
					case result.Config == nil, result.Sum == nil && settings["model_type"] != "gemma3" && settings["model_type"] != "qwen3_5": // transformers fails
						continue
					case result.Sum != nil && len(result.Sum) == 0:
						t.Errorf("%v: loaded, want that the weights do not fit", c.changes)
						continue
					}
					if !m.Sizes().Causal && strings.Contains(name, "decoders/") { // and has no logits
						continue
					}
					head := name != "gemma3_embed" // which transformers loads without one
					out, sizes := defaultsOutput(m, head)
					if result.Sum != nil && !result.near(out) {
						t.Errorf("%v: other results than transformers", c.changes)
					}
					if old && name == "gemma3_embed" { // whose window transformers 4 halves again when it saves
						continue
					}
					if saved[c.result] == nil {
						full := changedSettings(table.Models[name].First, result.Config)
						if saved[c.result], err = withSettings(t, r, full); err != nil {
							t.Errorf("%v: what transformers saves: %v", c.changes, err)
							saved[c.result] = m
						}
					}
					same, sameSizes := defaultsOutput(saved[c.result], head)
					if !slices.Equal(out, same) || sizes != sameSizes {
						t.Errorf("%v: other results than with what transformers saves: %s, want %s", c.changes, sizes, sameSizes)
					}
				}
			})
		}
	}
}
