package models

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
)

// published is the config.json of a repository on the Hub. Source says where it was seen.
type published struct {
	Repository, Source string
	Refused            string // a part of the error, empty if the settings are accepted
	Config             map[string]any
}

func readPublished(t *testing.T, modelType string) (list []published) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/published", modelType+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatalf("%s: %v", modelType, err)
	}
	return list
}

// headTensors are tensors of the heads of the families, by the end of the head's class.
var headTensors = map[string][]string{
	"ForMaskedLM":               {"predictions.bias", "lm_head.weight", "cls.predictions.bias", "lm_head.bias", "vocab_transform.bias", "generator_predictions.dense.bias", "head.dense.weight"},
	"ForPreTraining":            {"cls.predictions.bias", "cls.seq_relationship.bias", "bert.pooler.dense.bias", "discriminator_predictions.dense.bias"},
	"ForSequenceClassification": {"classifier.bias", "classifier.out_proj.bias", "pre_classifier.bias", "head.dense.weight", "bert.pooler.dense.bias", "pooler.dense.bias", "score.weight"},
	"ForTokenClassification":    {"classifier.bias", "head.dense.weight"},
	"ForQuestionAnswering":      {"qa_outputs.bias"},
	"ForConditionalGeneration":  {"decoder.final_layer_norm.weight"},
}

// parseSettings returns the settings of a config.json and their family.
func parseSettings(t *testing.T, config map[string]any, allowed ...string) (*Settings, Family, error) {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{path: configFile, wrong: new([]error)}
	if err := s.parse(data); err != nil {
		t.Fatal(err)
	}
	o := Options{Families: Families(), Allowed: allowed}
	family, err := o.familyOf(s)
	return s, family, err
}

// planSettings returns the network of a config.json whose file has tensors of the given names, without tensors.
func planSettings(t *testing.T, config map[string]any, names []string, allowed ...string) (Network, error) {
	t.Helper()
	s, family, err := parseSettings(t, config, allowed...)
	if err != nil {
		t.Fatal(err)
	}
	like := new(Model)
	for _, name := range names {
		like.dict = append(like.dict, nn.Entry{Name: name})
	}
	n, _, err := plan(&directory{settings: s}, func(b *Builder) Network {
		b.model = like
		return family.New(b)
	})
	return n, err
}

// checkSettings returns the error of a config.json whose file has the head that architectures names. Sizes are those of
// the published model: a plan without weights takes no memory.
func checkSettings(t *testing.T, config map[string]any, allowed ...string) error {
	t.Helper()
	var names []string
	for class, of := range headTensors {
		if strings.HasSuffix(strings.Trim(fmt.Sprint(config["architectures"]), "[]"), class) {
			names = of
		}
	}
	_, err := planSettings(t, config, names, allowed...)
	return err
}

// The settings of published models are accepted: those that transformers does not read, and those that it reads as attn
// does.
func TestPublishedSettings(t *testing.T) {
	for _, f := range Families() {
		if strings.HasPrefix(f.Type, "attn-") { // attn's own; not collected
			continue
		}
		for _, p := range readPublished(t, f.Type) {
			if p.Config["model_type"] != f.Type || p.Source == "" {
				t.Errorf("%s: model_type %v, source %q", p.Repository, p.Config["model_type"], p.Source)
			}
			err := checkSettings(t, p.Config)
			if p.Refused == "" && err != nil {
				t.Errorf("%s: %v", p.Repository, err)
			}
			if p.Refused != "" && (err == nil || !strings.Contains(err.Error(), p.Refused)) {
				t.Errorf("%s: error %v, want %s", p.Repository, err, p.Refused)
			}
		}
	}
}

// Settings that transformers does not read are accepted only with the value that attn computes with.
func TestPublishedSettingsOtherValues(t *testing.T) {
	for _, c := range []struct {
		modelType, key string
		value          any
		want           string
	}{
		{"bert", "emb_size", 384, "emb_size is 384, want 768 or none"},
		{"bert", "embedding_size", 128, "embedding_size is 128, want 768 or none"},
		{"bert", "is_causal", true, "is_causal is true, want false or none"},
		{"bert", "position_embedding_type", "sans_pos", `position_embedding_type is "sans_pos", want "absolute" or none`},
		{"modernbert", "layer_norm_eps", 1e-6, "layer_norm_eps is 0.000001, want 0.00001 or none"},
		{"modernbert-decoder", "causal_mask", false, "causal_mask is false, want true or none"},
		{"modernbert-decoder", "local_attention", 1, "local_attention leaves a query without a key, want 2 at least"},
		{"modernbert-decoder", "local_attention", nil, "local_attention leaves a query without a key, want 2 at least"},
		{"modernbert-decoder", "is_causal", false, "is_causal is false, want true or none"},
		{"modernbert", "causal_mask", true, "causal_mask is true, want false or none"},
		{"modernbert", "is_causal", true, "is_causal is true, want false or none"},
		{"modernbert", "position_embedding_type", "alibi", `position_embedding_type is "alibi", want "sans_pos" or "absolute" or none`},
		{"gpt2", "n_special", 2, "n_special is 2, want 0 or none"},
		{"gpt2", "is_causal", false, "is_causal is false, want true or none"},
		{"llama", "max_sequence_length", 1024, "max_sequence_length is 1024, want 2048 or none"},
		{"llama", "is_causal", false, "is_causal is false, want true or none"},
		{"gpt_neox", "rope_theta", 1e6, "rope_theta is 1000000, want 10000 or none"},
		{"qwen2", "use_mrope", true, "use_mrope is true, want false or none"},
		{"qwen3", "is_causal", false, "is_causal is false, want true or none"},
		{"qwen3_moe", "qkv_bias", true, "qkv_bias is true, want false or none"},
		{"qwen3_moe", "use_qk_norm", false, "use_qk_norm is false, want true or none"},
		{"qwen3_moe", "shared_expert_intermediate_size", 512, "shared_expert_intermediate_size is 512, want 0 or none"},
		{"gemma2", "sliding_window_size", 512, "sliding_window_size is 512, want 4096 or none"},
		{"phi3", "full_attn_mod", 2, "full_attn_mod is 2, want 1 or none"},
		{"phi3", "interpolate_factor", 2, "interpolate_factor is 2, want 1 or none"},
		{"phi3", "lm_head_bias", true, "lm_head_bias is true, want false or none"},
		{"phi3", "mlp_bias", true, "mlp_bias is true, want false or none"},
		{"starcoder2", "norm_type", "rms_norm", `norm_type is "rms_norm", want "layer_norm" or none`},
		{"starcoder2", "mlp_type", "gated", `mlp_type is "gated", want "default" or none`},
		{"starcoder2", "rms_norm_eps", 1e-6, "rms_norm_eps is 0.000001, want 0.00001 or none"},
		{"starcoder2", "activation_function", "relu", `activation_function is "relu", want "gelu" or "gelu_pytorch_tanh" or none`},
		{"bart", "do_blenderbot_90_layernorm", true, "do_blenderbot_90_layernorm is true, want false or none"},
		{"marian", "do_blenderbot_90_layernorm", true, "do_blenderbot_90_layernorm is true, want false or none"},
		{"qwen3_5_text", "attn_output_gate", false, "attn_output_gate is false, want true or none"},
		{"qwen3_5_text", "output_gate_type", "sigmoid", `output_gate_type is "sigmoid", want "swish" or none`},
		{"qwen3_5_text", "mamba_ssm_dtype", "bfloat16", `mamba_ssm_dtype is "bfloat16", want "float32" or none`},
		{"qwen3_5_text", "mlp_only_layers", []int{1}, "mlp_only_layers is [1], want [] or none"},
		{"qwen3_5_text", "layer_types", []string{"full_attention"}, "layer_types has 1 types, want 24, one for each layer"},
		{"qwen3_5_text", "linear_num_key_heads", 5, "linear_num_value_heads is 16, want a multiple of linear_num_key_heads, which is 5"},
		{"qwen3_5_text", "linear_key_head_dim", 5000, "linear_key_head_dim makes heads of size 5000, want at most 4096"},
		{"olmo_hybrid", "rope_parameters", map[string]any{"rope_theta": nil, "rope_type": "yarn"}, `rope_parameters.rope_type is "yarn", want "default" or none`},
		{"smollm3", "use_mrope", false, "setting use_mrope = false is not known for model_type smollm3"},
		{"gpt_neox", "auto_map", map[string]any{"AutoModel": "x.GPTNeoXModel"}, `setting auto_map = {"AutoModel":"x.GPTNeoXModel"} is not known`},
		{"phi3", "auto_map", map[string]any{"AutoModel": "x.Phi3Bidirectional"}, `setting auto_map = {"AutoModel":"x.Phi3Bidirectional"} is not known`},
		{"llama", "auto_map", []int{1}, "auto_map is [1], want an object of classes"},
	} {
		config := readPublished(t, c.modelType)[0].Config
		config[c.key] = c.value
		if err := checkSettings(t, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s = %v: error %v, want %s", c.modelType, c.key, c.value, err, c.want)
		}
	}
}

// A model of custom code is refused, unless the code is known to compute what the family does, or the setting is allowed.
// Custom tokenizers and configurations do not change the model.
func TestCustomCode(t *testing.T) {
	stella := readPublished(t, "qwen2")
	i := slices.IndexFunc(stella, func(p published) bool { return p.Repository == "NovaSearch/stella_en_1.5B_v5" })
	if err := checkSettings(t, stella[i].Config); err == nil || !strings.Contains(err.Error(), "or --allow-setting auto_map if it does not") {
		t.Errorf("custom model: error %v", err)
	}
	if err := checkSettings(t, stella[i].Config, "auto_map"); err != nil {
		t.Errorf("custom model that is allowed: %v", err)
	}
	stella[i].Config["auto_map"] = map[string]any{"AutoConfig": "c.C", "AutoTokenizer": []any{"t.T", nil}}
	if err := checkSettings(t, stella[i].Config); err != nil {
		t.Errorf("custom configuration and tokenizer: %v", err)
	}
	phi := readPublished(t, "phi3")[0].Config
	if err := checkSettings(t, phi, "auto_map"); err == nil || !strings.Contains(err.Error(), "has no unknown setting \"auto_map\" that could be allowed") {
		t.Errorf("known custom model that is allowed: error %v", err)
	}
}

// Buffers that older versions of transformers saved beside the parameters are accepted: they follow from the settings.
func TestPublishedBuffers(t *testing.T) {
	const embeddings, rotary = "word_embeddings.weight", "self_attn.rotary_emb.inv_freq"
	for dir, c := range map[string]struct {
		beside  string // the end of the name of a parameter in the same module
		buffers []string
	}{
		"bert":                {embeddings, []string{"position_ids"}},
		"roberta":             {embeddings, []string{"position_ids"}},
		"xlm_roberta_words":   {embeddings, []string{"position_ids"}},
		"camembert_words":     {embeddings, []string{"position_ids"}},
		"distilbert":          {embeddings, []string{"position_ids"}},
		"electra":             {embeddings, []string{"position_ids"}},
		"mpnet":               {embeddings, []string{"position_ids"}},
		"deberta":             {embeddings, []string{"position_ids"}},
		"decoders/gpt2":       {"ln_1.weight", []string{"attn.bias", "attn.masked_bias"}},
		"decoders/gpt_neox":   {"input_layernorm.weight", []string{"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"}},
		"decoders/llama2":     {"input_layernorm.weight", []string{rotary}},
		"decoders/mistral":    {"input_layernorm.weight", []string{rotary}},
		"decoders/mixtral":    {"input_layernorm.weight", []string{rotary}},
		"decoders/qwen2":      {"input_layernorm.weight", []string{rotary}},
		"decoders/gemma":      {"input_layernorm.weight", []string{rotary}},
		"decoders/phi3":       {"input_layernorm.weight", []string{rotary}},
		"decoders/starcoder2": {"input_layernorm.weight", []string{rotary}},
		"seq2seq/bart":        {"encoder.layernorm_embedding.weight", []string{"encoder.version", "decoder.version"}},
		"seq2seq/m2m100":      {"encoder.layer_norm.weight", []string{"encoder.version", "decoder.version", "encoder.embed_positions.weights"}},
		"seq2seq/t5":          {"decoder.final_layer_norm.weight", []string{"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"}},
	} {
		to := t.TempDir()
		if err := os.CopyFS(to, os.DirFS(filepath.Join("testdata", dir))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, WeightsFile)
		file, err := safetensors.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(file.Tensors, func(x safetensors.Tensor) bool { return strings.HasSuffix(x.Name, c.beside) })
		if i < 0 {
			t.Fatalf("%s has no %s", dir, c.beside)
		}
		module := strings.TrimSuffix(file.Tensors[i].Name, c.beside)
		for _, name := range c.buffers {
			if file.Lookup(module+name) == nil {
				file.Tensors = append(file.Tensors, safetensors.FromFloat32s(module+name, []int{1}, []float32{1}))
			}
		}
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Describe(to, Options{}); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(module+"other", []int{1}, []float32{1}))
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Describe(to, Options{}); err == nil || !strings.Contains(err.Error(), module+"other") {
			t.Errorf("%s: error %v for a tensor %sother", dir, err, module)
		}
	}
}

// Files beside the models of published pipelines are accepted. Sizes are those of the test's model.
func TestPublishedPipelines(t *testing.T) {
	const (
		prompts = "config_sentence_transformers.json"
		pooling = "1_Pooling/config.json"
		limits  = "sentence_bert_config.json"
		words   = "tokenizer_config.json"
	)
	for _, c := range []struct{ repository, file, text string }{
		{"hkunlp/instructor-base", prompts, `{"__version__": {"sentence_transformers": "2.2.0", "transformers": "4.7.0", "pytorch": "1.9.0+cu102"}}`},
		{"avsolatorio/NoInstruct-small-Embedding-v0", prompts, `{"__version__": {"sentence_transformers": "2.2.2"}, "prompts": {}, "default_prompt_name": null}`},
		{"a SetFit model", prompts, `{"__version__": {"sentence_transformers": "3.3.1"}, "prompts": {}, "default_prompt_name": null, "similarity_fn_name": "cosine"}`},
		{"leyoai-cyber-embedding", prompts, `{"__version__": {"sentence_transformers": "5.4.1"}, "model_type": "SentenceTransformer", "prompts": {"document": "", "query": ""}, "default_prompt_name": null, "similarity_fn_name": "cosine"}`},
		{"sentence-transformers/all-MiniLM-L6-v2", pooling, `{"word_embedding_dimension": 15, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false}`},
		{"a copy of all-MiniLM-L6-v2", pooling, `{"word_embedding_dimension": 15, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false, "pooling_mode_lasttoken": true}`},
		{"NovaSearch/stella_en_1.5B_v5", pooling, `{"word_embedding_dimension": 15, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false, "pooling_mode_weightedmean_tokens": false, "pooling_mode_lasttoken": false, "include_prompt": true}`},
		{"sentence-transformers/all-mpnet-base-v2", limits, `{"max_seq_length": 384, "do_lower_case": false}`},
		{"thenlper/gte-base", limits, `{"max_seq_length": 512, "do_lower_case": false}`},
		{"microsoft/deberta-v3-base", words, `{"do_lower_case": false, "vocab_type": "spm"}`},
		{"deepset/roberta-base-squad2", words, `{"do_lower_case": true, "max_len": 512, "bos_token": "[CLS]"}`},
		{"deepset/gbert-base", words, `{"cls_token": "[CLS]", "do_basic_tokenize": true, "do_lower_case": false, "mask_token": "[MASK]", "max_len": 512, "name_or_path": "deepset/gbert-base", "never_split": null, "special_tokens_map_file": null, "strip_accents": false, "tokenize_chinese_chars": true, "tokenizer_class": "BertTokenizer"}`},
		{"klue/roberta-base", words, `{"add_prefix_space": false, "clean_up_tokenization_spaces": true, "errors": "replace", "max_length": 512, "model_max_length": 4096, "pad_to_multiple_of": null, "pad_token_type_id": 0, "padding_side": "right", "stride": 0, "tokenizer_class": "RobertaTokenizer", "trim_offsets": true, "truncation_side": "right", "truncation_strategy": "longest_first"}`},
		{"a copy of Llama 2", words, `{"add_bos_token": false, "add_eos_token": false, "legacy": true, "model_max_length": 1000000000000000019884624838656, "pad_token": null, "sp_model_kwargs": {}, "tokenizer_class": "LlamaTokenizer", "unk_token": {"__type": "AddedToken", "content": "[UNK]", "lstrip": false, "normalized": true, "rstrip": false, "single_word": false}}`},
		{"BAAI/bge-m3", limits, `{"max_seq_length": 8192, "do_lower_case": false}`},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/sentence_mean")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadEmbedder(dir, Options{}); err != nil {
			t.Errorf("%s: %v", c.repository, err)
		}
	}
}

// publishedBeside is a generation_config.json or tokenizer_config.json, without most of its long lists.
type publishedBeside struct {
	Repository, Source, File string
	Refused                  string // a part of the error, empty if the settings are accepted
	Settings                 map[string]any
}

func readPublishedBeside(t *testing.T) (list []publishedBeside) {
	t.Helper()
	data, err := os.ReadFile("testdata/published_beside.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The settings of published files beside config.json are accepted, and a key that no file has is refused by name.
func TestPublishedBeside(t *testing.T) {
	read := func(file string, settings map[string]any) error {
		data, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		m := &Model{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(m.Dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return m.readBeside()
	}
	files := map[string]int{}
	for _, p := range readPublishedBeside(t) {
		if files[p.File]++; p.Source == "" {
			t.Errorf("%s has no source", p.Repository)
		}
		err := read(p.File, p.Settings)
		if p.Refused == "" && err != nil {
			t.Errorf("%s: %v", p.Repository, err)
		}
		if p.Refused != "" && (err == nil || !strings.Contains(err.Error(), p.Refused)) {
			t.Errorf("%s: error %v, want %s", p.Repository, err, p.Refused)
		}
		if p.Refused == "" {
			p.Settings["another_key"] = 1
			if err := read(p.File, p.Settings); err == nil || !strings.Contains(err.Error(), p.File+":another_key = 1 is not known") {
				t.Errorf("%s: error %v, want one that names another_key", p.Repository, err)
			}
		}
	}
	for _, file := range []string{generationFile, tokenizerConfigFile} {
		if files[file] < 12 {
			t.Errorf("%d files %s, want a dozen", files[file], file)
		}
	}
	if err := read(generationFile, map[string]any{"return_legacy_cache": true, "_name_or_path": "gpt2"}); err != nil {
		t.Error(err)
	}
}

// docs/models.md lists the repositories.
func TestPublishedAreListed(t *testing.T) {
	data, err := os.ReadFile("../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(data), "## Published configurations")
	words := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" \n,;", r) })
	var names []string
	for _, f := range Families() {
		if strings.HasPrefix(f.Type, "attn-") {
			continue
		}
		for _, p := range readPublished(t, f.Type) {
			names = append(names, p.Repository)
		}
	}
	for _, p := range readPublishedBeside(t) {
		names = append(names, p.Repository)
	}
	for _, name := range names {
		if !strings.Contains(name, " ") && !slices.Contains(words, name) && !slices.Contains(words, name+".") {
			t.Errorf("docs/models.md does not list %s", name)
		}
	}
}
