package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// textConfig has the settings of the text model, in a file of a model that also reads images.
const textConfig = "text_config"

// mostSize bounds a size in a config.json: no product of two of them overflows.
const mostSize = 1 << 24

// Settings are the keys of a config.json. A method that returns a key's value marks the key as
// read; a key that is never read is an error, because it might change the result. A value of null
// counts as an absent key, except where a method says otherwise.
//
// If a value is invalid, the error is recorded and a valid value is returned instead, so
// constructors need not check for errors.
type Settings struct {
	path   string // of the file
	prefix string // of the keys, in messages: "text_config."
	data   []byte // of the file
	values map[string]json.RawMessage
	usual  map[string]json.RawMessage // for generation, if the files have no value
	read   map[string]bool
	parts  map[string]*Settings
	file   string   // before the names of unknown settings: "tokenizer_config.json:", empty for config.json
	allow  []string // of Options.Allowed
	wrong  *[]error
}

func (s *Settings) parse(data []byte) error {
	s.data, s.read, s.parts = data, map[string]bool{}, map[string]*Settings{}
	return strictjson.Lenient(pythonNumbers(data), &s.values)
}

const infinite = "Infinity"

var pythonWords = []string{"-" + infinite, infinite, "NaN"}

// pythonNumbers puts the numbers that Python writes, and that are not JSON, between quotes: Infinity and NaN.
func pythonNumbers(data []byte) []byte {
	for _, word := range pythonWords {
		if !bytes.Contains(data, []byte(word)) {
			continue
		}
		var out []byte
		for quoted, i := false, 0; i < len(data); i++ {
			if !quoted && bytes.HasPrefix(data[i:], []byte(word)) {
				out, i = append(out, `"`+word+`"`...), i+len(word)-1
				continue
			}
			if out = append(out, data[i]); quoted && data[i] == '\\' && i+1 < len(data) {
				i++
				out = append(out, data[i])
			} else if data[i] == '"' {
				quoted = !quoted
			}
		}
		data = out
	}
	return data
}

// pythonic undoes pythonNumbers in text, a version of the settings, if they had such numbers.
func (s *Settings) pythonic(text []byte) []byte {
	if !bytes.Equal(pythonNumbers(s.data), s.data) {
		for _, word := range pythonWords {
			text = bytes.ReplaceAll(text, []byte(`"`+word+`"`), []byte(word))
		}
	}
	return text
}

// Fail records that a setting is invalid.
func (s *Settings) Fail(key, format string, args ...any) {
	*s.wrong = append(*s.wrong, fmt.Errorf("%s%s "+format, append([]any{s.prefix, key}, args...)...))
}

// fail records that a part of the settings is invalid as a whole.
func (s *Settings) fail(format string, args ...any) {
	*s.wrong = append(*s.wrong, fmt.Errorf("%s "+format, append([]any{strings.TrimSuffix(s.prefix, ".")}, args...)...))
}

// value returns the value of a key and marks it as read.
func (s *Settings) value(key string) (json.RawMessage, bool) {
	v, ok := s.values[key]
	s.read[key] = true
	return v, ok && string(v) != "null"
}

// get returns the value of a key, or usual if it is absent.
func get[T any](s *Settings, key, want string, usual T) T {
	v, ok := s.value(key)
	if !ok {
		return usual
	}
	var x T
	if err := json.Unmarshal(v, &x); err != nil {
		s.Fail(key, "is %s, want %s", quote.JSON(v), want)
		return usual
	}
	return x
}

// Has reports whether a key has a value other than null. It does not mark the key as read.
func (s *Settings) Has(key string) bool {
	v, ok := s.values[key]
	return ok && string(v) != "null"
}

// Size returns a size, a positive number. An absent key is an error.
func (s *Settings) Size(key string) int {
	if !s.Has(key) {
		s.Fail(key, "is missing, want a positive number")
		return 1
	}
	return s.SizeOr(key, 1)
}

// need records that a key is missing, unless it has a value. want says what it may be.
func (s *Settings) need(key, want string) {
	if !s.Has(key) {
		s.Fail(key, "is missing, want %s", want)
	}
}

// SizeOr is Size for a key that may be absent; its default is usual.
func (s *Settings) SizeOr(key string, usual int) int {
	n := get(s, key, "a positive number", usual)
	if s.Has(key) && (n < 1 || n > mostSize) {
		s.Fail(key, "is %d, want 1 to %d", n, mostSize)
		return max(1, min(usual, mostSize))
	}
	return n
}

// sizeOr is SizeOr, or Size if usual is 0.
func (s *Settings) sizeOr(key string, usual int) int {
	if usual == 0 {
		return s.Size(key)
	}
	return s.SizeOr(key, usual)
}

// Int returns an integer, or usual if the key is absent.
func (s *Settings) Int(key string, usual int) int {
	n := get(s, key, "a whole number", usual)
	if n > mostSize || n < -mostSize {
		s.Fail(key, "is %d, want %d at most", n, mostSize)
		return usual
	}
	return n
}

// Float returns a finite number, or usual if the key is absent.
func (s *Settings) Float(key string, usual float64) float64 {
	return get(s, key, "a number", usual)
}

// Eps returns the eps of a norm: a non-negative number in the range of float32.
func (s *Settings) Eps(key string, usual float32) float32 {
	x := s.Float(key, float64(usual))
	if !(x >= 0 && x <= 1) || math.IsNaN(x) {
		s.Fail(key, "is %v, want 0 to 1", x)
		return usual
	}
	return float32(x)
}

// Bool returns true or false, or usual if the key is absent. A value of null is an error if usual is true: transformers
// takes it for false, or rejects it.
func (s *Settings) Bool(key string, usual bool) bool {
	if usual && s.null(key) {
		s.Fail(key, "is null, want true or false")
	}
	return get(s, key, "true or false", usual)
}

// Text returns a string, or usual if the key is absent.
func (s *Settings) Text(key, usual string) string { return get(s, key, "a text", usual) }

// Texts returns a list of strings, nil if the key is absent.
func (s *Settings) Texts(key string) []string { return get[[]string](s, key, "a list of texts", nil) }

// textOrTexts is Texts for a list, or for a single text.
func (s *Settings) textOrTexts(key string) []string {
	if raw, ok := s.value(key); ok && raw[0] != '[' {
		return []string{s.Text(key, "")}
	}
	return s.Texts(key)
}

// Floats returns a list of numbers, nil if the key is absent.
func (s *Settings) Floats(key string) []float64 {
	return get[[]float64](s, key, "a list of numbers", nil)
}

// Only records an error unless a key is absent or has one of the given values: strings, numbers,
// booleans, or objects as decoded by encoding/json. It is for settings of which a family supports
// only some values.
func (s *Settings) Only(key string, accepted ...any) {
	v, ok := s.value(key)
	if !ok {
		return
	}
	var got any
	err := json.Unmarshal(v, &got)
	var names []string
	for _, a := range accepted {
		text, _ := json.Marshal(a)
		var want any
		if json.Unmarshal(text, &want); err == nil && reflect.DeepEqual(got, want) {
			return
		}
		names = append(names, string(text))
	}
	s.Fail(key, "is %s, want %s", quote.JSON(v), strings.Join(append(names, "none"), " or "))
}

// off is Only for settings of which a family supports only false.
func (s *Settings) off(keys ...string) {
	for _, key := range keys {
		s.Only(key, false)
	}
}

// Ignore marks keys as read that have no effect on the result.
func (s *Settings) Ignore(keys ...string) {
	for _, key := range keys {
		s.read[key] = true
	}
}

// Part returns the settings in the object that is the value of a key, nil if the key is absent.
func (s *Settings) Part(key string) *Settings {
	if p := s.parts[key]; p != nil {
		return p
	}
	v, ok := s.value(key)
	if !ok {
		return nil
	}
	p := &Settings{path: s.path, file: s.file, prefix: s.prefix + key + ".", wrong: s.wrong}
	if err := p.parse(v); err != nil {
		s.Fail(key, "is %s, want an object", quote.JSON(v))
		return nil
	}
	s.parts[key] = p
	return p
}

// Labels returns the names of the classes in "id2label", by number. If it is absent, they are
// LABEL_0, LABEL_1 and so on; "num_labels" is their number, 2 by default.
func (s *Settings) Labels() []string {
	s.Ignore("label2id", "_num_labels", "num_labels")
	byID := get[map[string]string](s, "id2label", "an object of texts by number", nil)
	if byID == nil {
		n := s.SizeOr("num_labels", 2)
		if n > 1<<20 {
			s.Fail("num_labels", "is %d, want %d at most", n, 1<<20)
			return nil
		}
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("LABEL_%d", i)
		}
		return names
	}
	names := make([]string, len(byID))
	for i := range names {
		name, ok := byID[fmt.Sprint(i)]
		if !ok {
			s.Fail("id2label", "has %d names, but none for %d", len(byID), i)
		}
		names[i] = name
	}
	return names
}

// unread returns the keys that have not been read, with their values. null means the default, and a tool for training
// leaves notes that begin with unsloth_.
func (s *Settings) unread() map[string]string {
	all := map[string]string{}
	for key, v := range s.values {
		if !s.read[key] && string(v) != "null" && !strings.HasPrefix(key, "unsloth_") {
			all[s.file+s.prefix+key] = quote.JSON(v)
		}
	}
	for _, part := range s.parts {
		maps.Copy(all, part.unread())
	}
	return all
}

// harmless are keys that have no effect on the model's output in any family. They concern
// training, return values and execution of Python code, text generation (for which
// generation_config.json is read), and the origin of the file.
var harmless = []string{
	"_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_model_name_or_path", "_name_or_path", "_num_labels",
	"add_pooling_layer", "architectures", "attention_dropout", "attention_probs_dropout_prob", "attn_implementation",
	"author", "bad_words_ids", "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward",
	"classifier_dropout", "cls_token_id", "created_date", "custom_pipelines",
	"decoder_start_token_id", "directionality", "diversity_penalty", "do_sample",
	"dropout", "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id", "eos_token_ids",
	"exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id",
	"gradient_checkpointing", "hidden_dropout_prob", "id2label", "initializer_factor", "initializer_range",
	"internal_version", "is_matryoshka", "keys_to_ignore_at_inference", "kobart_version", "label2id", "language", "length_penalty",
	"license", "mask_token_id", "matryoshka_dimensions", "max_length",
	"min_length", "model_max_length", "model_type", "name", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
	"num_labels", "num_return_sequences", "output_attentions", "output_hidden_states", "output_past", "output_scores",
	"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
	"prefix", "problem_type", "remove_invalid_values", "repetition_penalty", "return_dict", "return_dict_in_generate",
	"sbert_ce_default_activation_function", "sentence_transformers", "sep_token_id", "suppress_tokens",
	"task_specific_params", "temperature", "tf_legacy_loss", "tokenizer_class", "top_k", "top_p", "torch_dtype",
	"torchscript", "transformers.js_config", "transformers_version", "typical_p", "unk_token_id", "use_bfloat16",
	"use_cache",
}

// ignoreCode marks auto_map as read unless it names custom code for a model, of other classes than the known ones.
func (s *Settings) ignoreCode(known []string) {
	for auto, class := range get[map[string]any](s, "auto_map", "an object of classes", nil) {
		name := fmt.Sprint(class)
		if strings.HasPrefix(auto, "AutoModel") && !slices.Contains(known, name[strings.LastIndex(name, ".")+1:]) {
			s.read["auto_map"] = false
		}
	}
}

// check returns a *FormatError for an error in the settings: an invalid value, or a key that has not been read.
func (s *Settings) check() error {
	if len(*s.wrong) > 0 {
		return &FormatError{s.path, (*s.wrong)[0]}
	}
	unread := s.unread()
	for _, name := range s.allow {
		if unread[name] == "" {
			return &FormatError{s.path, fmt.Errorf("has no unknown setting %s that could be allowed", quote.Text(name))}
		}
		delete(unread, name)
	}
	if len(unread) == 0 {
		return nil
	}
	names, more := slices.Sorted(maps.Keys(unread)), ""
	if n := len(names) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	kind, hint := "", ""
	if name := s.Text("model_type", ""); name != "" || s.file != "" {
		if s.file == "" {
			kind = " for model_type " + quote.Name(name)
		}
		flag := quote.Shell(strings.Join(names, ","))
		if len(flag) > 100 {
			flag = "NAME"
		}
		hint = ", or --allow-setting " + flag + " if it does not"
	}
	return &FormatError{s.path, fmt.Errorf("setting %s = %s%s is not known%s, and may change the result: "+
		"want only settings that are known%s", quote.Name(names[0]), unread[names[0]], more, kind, hint)}
}
