package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// MergeAdapter writes a base model of any family and a LoRA adapter of peft (adapter_config.json,
// adapter_model.safetensors or .bin) as one model to the directory out: W + s·B·A, where s is lora_alpha / r, or lora_alpha / √r
// with use_rslora. Tensors that the adapter stores whole (modules_to_save) replace those of the base. Tensors keep their
// types: sums are computed in float32 and rounded to nearest even. The other files are copied from the base, but the
// tokenizer and the chat template from the adapter if it has them. One tensor at a time is in memory.
//
// Errors: a *FormatError for a directory or its settings, or an adapter that does more than the above; a
// *safetensors.FormatError for weights, or a tensor of the adapter that changes none of the base; I/O errors; if ctx
// ends, ctx.Err(), wrapped. After an error, no file has changed.
//
// Sources: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, https://arxiv.org/abs/2106.09685;
// Kalajdzievski, "A Rank Stabilization Scaling Factor for Fine-Tuning with LoRA", 2023,
// https://arxiv.org/abs/2312.03732.
func MergeAdapter(ctx context.Context, base, adapter, out string) error {
	b, err := openDirectory(base, func(*Settings) error { return nil })
	if err != nil {
		return err
	}
	defer b.r.Close()
	a, err := openAdapter(adapter)
	if err != nil {
		return err
	}
	defer a.r.Close()
	changes, err := a.changes(b)
	if err != nil {
		return err
	}
	has := func(name string) bool { return atomicfile.Exists(filepath.Join(adapter, name)) }
	own := has(tokenizerFile) || has(tokenizerConfigFile)
	names := append([]string{configFile, generationFile}, modeldir.TokenizerFiles...)
	for _, path := range appendPipeline(nil, base) {
		name, _ := filepath.Rel(base, path) // below base
		names = append(names, name)
	}
	var files []atomicfile.File
	for _, name := range names {
		from := base
		if name == "chat_template.jinja" && has(name) || own && slices.Contains(modeldir.TokenizerFiles, name) {
			from = adapter
		}
		if atomicfile.Exists(filepath.Join(from, name)) {
			files = append(files, atomicfile.Copy(from, name))
		}
	}
	s := &safetensors.Stream{Metadata: map[string]string{"format": "pt"}, Tensors: b.r.Tensors()}                // no hashes of the base
	slices.SortStableFunc(s.Tensors, func(a, b safetensors.Info) int { return b.DType.Bits() - a.DType.Bits() }) // as in rewrite
	s.Data = func(w io.Writer, i int) error {
		x, err := b.r.Tensor(s.Tensors[i].Name)
		if c := changes[s.Tensors[i].Name]; err == nil && c.x.Name != "" {
			err = a.apply(c, x)
		}
		if err = cmp.Or(err, ctx.Err()); err == nil {
			_, err = w.Write(x.Data)
		}
		return err
	}
	return atomicfile.Save(out, append(files, atomicfile.File{Path: WeightsFile, Write: s.Write}))
}

// adapter is a LoRA adapter: its settings and its tensors.
type adapter struct {
	*Settings
	r *safetensors.Reader
}

// openAdapter opens an adapter and checks the settings that do not concern single tensors.
func openAdapter(dir string) (a adapter, err error) {
	if a.Settings, err = openSettings(filepath.Join(dir, "adapter_config.json")); err != nil {
		return a, err
	}
	a.Only("peft_type", "LORA")
	a.Only("bias", "none")
	a.Only("init_lora_weights", true, false, "gaussian", "eva", "orthogonal") // others change the base, too
	for _, key := range []string{"use_dora", "lora_bias", "use_qalora"} {
		a.Only(key, false)
	}
	a.Only("layer_replication")
	a.Ignore("auto_mapping", "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config", "exclude_modules",
		"inference_mode", "layers_pattern", "layers_to_transform", "loftq_config", "lora_dropout", "lora_ga_config",
		"megatron_config", "megatron_core", "modules_to_save", "peft_version", "qalora_group_size", "revision", "runtime_config",
		"target_modules", "task_type", "fan_in_fan_out", "use_rslora", "r", "lora_alpha", "rank_pattern", "alpha_pattern")
	if err := a.check(); err != nil {
		return a, err
	}
	for _, name := range []string{"adapter_model.safetensors", "adapter_model.bin"} {
		if a.r, err = safetensors.Open(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
	}
	return a, &FormatError{dir, errors.New("has no adapter_model.safetensors and no adapter_model.bin")}
}

// change is what an adapter does to a tensor: it replaces it by x or, if rank is not 0, adds scale·b·x or its transpose.
type change struct {
	x, b        safetensors.Info
	rank, scale float64
	transposed  bool
}

// changes returns the changes of tensors of the base, by their names.
func (a adapter) changes(base *directory) (map[string]change, error) {
	const prefix, endA, endB = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
	transposed := base.settings.Text("model_type", "") == "gpt2" // Conv1D of transformers, [in out]
	a.Only("fan_in_fan_out", transposed)                         // shapes of square matrices do not show it
	text := cmp.Or(base.settings.Part(textConfig), base.settings)
	all := map[string]change{}
	for _, x := range a.r.Tensors() {
		module := strings.TrimSuffix(strings.TrimSuffix(x.Name, endA), endB)
		layer := strings.TrimPrefix(module, prefix)
		_, hasA := a.r.Lookup(module + endA)
		b, hasB := a.r.Lookup(module + endB)
		c, name, shape := change{x: x, b: b, transposed: transposed}, x.Name, x.Shape
		if hasA && hasB {
			if x.Name == b.Name {
				continue
			}
			c.rank = a.number("r", "rank_pattern", layer)
			if c.scale = a.number("lora_alpha", "alpha_pattern", layer) / c.rank; a.Bool("use_rslora", false) {
				c.scale *= math.Sqrt(c.rank)
			}
			if len(x.Shape) == 2 && len(b.Shape) == 2 && x.Shape[0] == b.Shape[1] && float64(x.Shape[0]) == c.rank {
				if name, shape = module+".weight", []int{b.Shape[0], x.Shape[1]}; transposed {
					slices.Reverse(shape)
				}
			}
		}
		w, found := lookup(base.r, strings.TrimPrefix(name, prefix))
		why := ""
		switch {
		case c.rank != 0 && name == x.Name:
			why = fmt.Sprintf("has shape %v and its lora_B %v, want rank %v", x.Shape, b.Shape, c.rank)
		case !found || !strings.HasPrefix(name, prefix):
			why = "matches no tensor of the base, which must have the linear layers (lora_A and lora_B) and whole tensors of the adapter"
		case all[w.Name].x.Name != "":
			why = "is the second for " + quote.Text(w.Name)
		case !slices.Equal(w.Shape, shape):
			why = fmt.Sprintf("is for %s, which has shape %v, want %v", quote.Text(w.Name), w.Shape, shape)
		case len(shape) == 2 && shape[0] == text.Int("vocab_size", 0) && base.settings.Bool("tie_word_embeddings", true):
			why = fmt.Sprintf("is for %s, which may be tied; want tie_word_embeddings = false in the base's config.json", quote.Text(w.Name))
		}
		if why != "" {
			return nil, &safetensors.FormatError{Path: a.r.Path(), Err: fmt.Errorf("tensor %s %s", quote.Text(x.Name), why)}
		}
		all[w.Name] = c
	}
	return all, a.check() // the settings that concern single tensors
}

// apply changes a tensor of the base.
func (a adapter) apply(c change, w *safetensors.Tensor) (err error) {
	read := func(x safetensors.Info) *tensor.Tensor {
		y := tensor.Zeros(x.Shape...)
		err = cmp.Or(err, a.r.ReadFloat32s(x.Name, y.Data(), 0))
		return y
	}
	merged := read(c.x)
	if c.rank != 0 {
		if merged = tensor.MatMul(nil, read(c.b), merged); c.transposed {
			merged = tensor.Transpose(nil, merged, 1, 0)
		}
		base, failed := w.Float32s()
		err = cmp.Or(err, failed)
		for i, v := range base {
			merged.Data()[i] = v + float32(float32(c.scale)*merged.Data()[i])
		}
	}
	if err == nil {
		w.Data, err = safetensors.AppendFloat32s(w.Data[:0], w.DType, merged.Data())
	}
	return err
}

// number returns a setting of a module: that of the pattern, an expression for the end of its name, or the usual one.
func (a adapter) number(key, patterns, module string) float64 {
	value, matched := a.Float(key, 8), false // peft's default of both
	for p, v := range get[map[string]float64](a.Settings, patterns, "an object of numbers by module", nil) {
		e, err := regexp.Compile(`^(.*\.)?(` + p + `)$`)
		switch {
		case err != nil || v <= 0 || e.MatchString(module) && matched && v != value: // peft does not save which is first
			a.Fail(patterns, "has an invalid pattern or number, or different numbers for %s", quote.Text(module))
		case e.MatchString(module):
			value, matched = v, true
		}
	}
	return value
}

// lookup returns the tensor of a model by its name in another class of the same model: as in transformers, names in a
// model with a head have one more word in front.
func lookup(r *safetensors.Reader, name string) (safetensors.Info, bool) {
	if x, ok := r.Lookup(name); ok {
		return x, true
	}
	_, without, _ := strings.Cut(name, ".")
	near := slices.DeleteFunc(r.Tensors(), func(x safetensors.Info) bool {
		_, inner, _ := strings.Cut(x.Name, ".")
		return inner != name && x.Name != without
	})
	return append(near, safetensors.Info{})[0], len(near) == 1
}
