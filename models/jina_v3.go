package models

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// jinaV3Family is Jina Embeddings 3 as transformers 5 has it: RoBERTa with rotary positions and one map of queries, keys
// and values. Such a file has no adapters for tasks.
//
// Source: Sturua et al., "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024,
// https://arxiv.org/abs/2409.10173; transformers' class JinaEmbeddingsV3Model.
var jinaV3Family = Family{
	Type: "jina_embeddings_v3", Name: "Jina Embeddings 3", New: newJinaV3, graph: true, Harmless: []string{"pad_token_id"},
}

func newJinaV3(b *Builder) Network {
	bothWays(b.Config)
	return jinaV3(b, func(z Sizes) rotation { return newRotation(b.Config, z, 20000) })
}

func jinaV3(b *Builder, rotate func(z Sizes) rotation) Network {
	s, base := b.Config, b.Within("roberta")
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 1)
	s.Only("head_dim", z.HeadSize)
	z.HeadSize = s.rotated("hidden_size", z.HeadSize)
	eps, act := s.Eps("layer_norm_eps", 1e-5), s.Activation("hidden_act", "gelu")
	names := encoderNames{
		norm: "emb_ln", layers: "encoder.layers", bias: attn.AllProjections,
		maps: Maps{QKV: "mixer.Wqkv", Out: "mixer.out_proj"}, selfNorm: "norm1", in: "mlp.fc1", out: "mlp.fc2", ffNorm: "norm2",
	}
	r := rotate(z)
	names.position, z.Positions = r.position(b.tokens)
	e := names.encoder(base, z, 0, counting{}, eps, act, attn.Options{})
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), eps)
	return e
}

// newXLMRoBERTa also builds Jina Embeddings 3 as published, class XLMRobertaLoRA, whose files have the same model_type.
func newXLMRoBERTa(b *Builder) Network {
	s := b.Config
	if _, ok := s.values["lora_adaptations"]; !ok && s.Text("position_embedding_type", "") != "rotary" {
		return newRoBERTa(b)
	}
	bothWays(s, "rotary")
	s.Only("position_embedding_type", "rotary")
	s.Only("load_trained_adapters", true)
	s.Ignore("emb_pooler", "lora_dropout_p", "lora_main_params_trainable", "pad_token_id", "use_flash_attn", "use_reentrant")
	l := &taskLoRA{tasks: s.Texts("lora_adaptations"), rank: s.SizeOr("lora_rank", 4)}
	l.scale = float32(s.Float("lora_alpha", 1) / float64(l.rank))
	if got := slices.Sorted(maps.Keys(s.taskPrompts())); !slices.Equal(got, slices.Sorted(slices.Values(l.tasks))) {
		s.Fail("lora_adaptations", "has %s, but task_instructions has %s, want the same tasks", quote.Texts(l.tasks), quote.Texts(got))
	}
	switch l.task = slices.Index(l.tasks, b.route); {
	case b.route != "" && l.task < 0:
		s.Fail("lora_adaptations", "has no task %s, want one of %s", quote.Text(b.route), quote.Texts(l.tasks))
	case l.task >= 0 && !b.packed():
		b.Fail("the adapter of a task becomes a part of the weights, which cannot be trained then, want no task, or no Trainable")
	}
	b.lora = l
	return jinaV3(b, func(z Sizes) rotation { return rotation{all: s, theta: s.base("rotary_emb_base", 10000), sizes: z} })
}

// taskPrompts returns the prompts of the tasks with adapters.
func (s *Settings) taskPrompts() map[string]string {
	return get[map[string]string](s, "task_instructions", "an object of texts", nil)
}

// taskLoRA is the adapters in a file, one for each task. Each weight has those tensors as "parametrizations".
type taskLoRA struct {
	tasks      []string
	task, rank int // task is −1 for none
	scale      float32
}

const parametrized = ".parametrizations.weight.original"

// factors returns the names of the tensors whose product is the adapter of a module, [tasks rows rank] and
// [tasks rank columns].
func (l *taskLoRA) factors(module string) (left, right string) {
	a, b := module+".parametrizations.weight.0.lora_A", module+".parametrizations.weight.0.lora_B"
	if strings.HasSuffix(module, "_embeddings") {
		return a, b
	}
	return b, a
}

// stored returns the full name of a tensor in the file, where weights with adapters have another one.
func (b *Builder) stored(name string) string {
	name = b.prefix + name
	if module, ok := strings.CutSuffix(name, ".weight"); ok && b.lora != nil && b.r != nil {
		if _, ok := b.r.Lookup(module + parametrized); ok {
			return module + parametrized
		}
	}
	return name
}

// wantLoRA checks the adapters of a weight. They are loaded so that the model can be saved.
func (b *Builder) wantLoRA(name string, shape []int) {
	module, ok := strings.CutSuffix(name, parametrized)
	if !ok || b.lora == nil {
		return
	}
	if len(shape) != 2 {
		b.Fail("tensor %s has an adapter, want one for matrices only", quote.Text(name))
		return
	}
	left, right := b.lora.factors(module)
	top, tasks := &Builder{b.Config, b.building, ""}, len(b.lora.tasks)
	top.Fixed(left, tasks, shape[0], b.lora.rank)
	top.Fixed(right, tasks, b.lora.rank, shape[1])
}

// addLoRA adds the adapter of the task to the weights that have been loaded: W + s·B·A, or s·A·B for embeddings, where
// s is lora_alpha / lora_rank. Sums are in float32, before they are packed.
//
// Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, https://arxiv.org/abs/2106.09685; class
// LoRAParametrization of jinaai/xlm-roberta-flash-implementation.
func (b *Builder) addLoRA() (err error) {
	l := b.lora
	if l == nil || l.task < 0 {
		return nil
	}
	for _, e := range b.dict {
		module, ok := strings.CutSuffix(e.Name, parametrized)
		if !ok {
			continue
		}
		left, right := l.factors(module)
		info, _ := b.r.Lookup(e.Name)
		rows, columns, next := info.Shape[0], info.Shape[1], 0
		x, y := tensor.Zeros(rows, l.rank), tensor.Zeros(l.rank, columns)
		err = cmp.Or(err, b.r.ReadFloat32s(left, x.Data(), l.task*x.Len()), b.r.ReadFloat32s(right, y.Data(), l.task*y.Len()))
		add := func(to []float32) { // to the next rows
			some := tensor.Slice(nil, x, 0, next, next+len(to)/columns)
			for i, v := range tensor.MatMul(nil, some, y).Data() {
				to[i] += float32(l.scale * v)
			}
			next += len(to) / columns
		}
		for _, p := range e.Parts {
			for part := range slices.Chunk(p.Data(), 1024*columns) {
				add(part)
			}
		}
		for _, p := range e.Packed {
			for i, n, most := 0, p.Shape()[0], 32*p.Together(); i < n; i += most {
				part := make([]float32, min(most, n-i)*columns)
				err = cmp.Or(err, b.r.ReadFloat32s(e.Name, part, next*columns))
				add(part)
				p.SetRows(i, part)
			}
		}
	}
	return err
}

// customTransformer is the type of the first module of Jina Embeddings 3, a Transformer with a task.
const customTransformer = "custom_st.Transformer"

// setTask sets the prompt of a task. module is the type of the first module.
//
// Source: encode of class XLMRobertaLoRA of jinaai/xlm-roberta-flash-implementation.
func (e *Embedder) setTask(module string) error {
	prompts := e.Model.Settings.taskPrompts()
	if prompt, ok := prompts[e.Model.options.Route]; ok {
		e.Prompt = prompt
	} else if prompts == nil && module == customTransformer {
		return &FormatError{e.Model.Dir, errors.New("has a " + customTransformer + ", which is custom code unless the model is Jina Embeddings 3")}
	}
	return nil
}
