package models

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tokenizer"
)

// lengthFiles are the names of the settings of a transformer, the newest first; a pipeline has one.
var lengthFiles = []string{
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
	"sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
	"sentence_xlnet_config.json",
}

// mostTokens returns the token limit of the model or, if that is smaller, of its tokenizer.
func (m *Model) mostTokens() int {
	most := cmp.Or(m.Sizes().Positions, math.MaxInt32)
	return int(min(float64(most), m.limit))
}

// limitKey is the setting of a tokenizer that readBeside returns.
const limitKey = "model_max_length"

// loadTransformer reads the first module of a pipeline. kind is its class, and behind that of the second module.
func loadTransformer(dir string, o Options, kind, behind string) (*Embedder, error) {
	task, usual := "feature-extraction", "feature-extraction"
	if behind == "SpladePooling" {
		task = "fill-mask"
	}
	if kind == "MLMTransformer" {
		usual = "fill-mask"
	}
	m, err := loadReader(dir, o)
	if err != nil {
		return nil, err
	}
	e := NewEmbedder(m, nil)
	e.MostTokens, err = m.readTransformer(task, usual, tokenVectors, nil)
	return e, err
}

// readTransformer reads the settings of the transformer of a pipeline, in the first file that there is, and returns the
// length to which it truncates texts. task is what the pipeline uses the model for, usual the task if the settings name
// none, and output the name of its output. late, if not nil, reads the settings of late interaction, with the other
// settings of lengths.
func (m *Model) readTransformer(task, usual, output string, late func(s *Settings, limited bool)) (most int, err error) {
	most = m.mostTokens()
	file, key := tokenizerConfigFile, limitKey
	var s *Settings
	for _, file := range lengthFiles {
		if s, err = optionalSettings(filepath.Join(m.Dir, file)); err != nil || len(s.values) > 0 {
			break
		}
	}
	switch {
	case err != nil:
		return 0, err
	case s.values == nil && task != usual:
		return 0, &FormatError{m.Dir, fmt.Errorf("has no %s, want one with transformer_task %s", lengthFiles[0], task)}
	case s.values == nil:
		return most, m.checkMost(most, file, key)
	}
	limit := func(from *Settings, name, full string) { // each overrides the one before
		if from.Has(name) {
			most, file, key = from.SizeOr(name, most), filepath.Base(s.path), full
		}
		from.Ignore(name)
	}
	limit(s, "max_seq_length", "max_seq_length")
	if calls := s.Part("processing_kwargs"); calls != nil {
		calls.Ignore("audio", "image", "video", "chat_template") // package chat reads the last
		for _, name := range []string{"text", "common"} {
			if call := calls.Part(name); call != nil {
				limit(call, "max_length", "processing_kwargs."+name+".max_length")
				call.Only("truncation", true, "longest_first")
				call.Only("add_special_tokens", true)
				call.Only("logits_to_keep", 1)
				call.Ignore("padding", "pad_to_multiple_of", "return_tensors", "return_attention_mask")
			}
		}
	}
	if n := m.Sizes().Positions; n > 0 {
		most = min(most, n)
	}
	if t, err := m.Tokenizer(); s.Bool("do_lower_case", false) && err == nil && !lowers(t) {
		s.Fail("do_lower_case", "is true, but the tokenizer keeps capital letters, want false, or a tokenizer with lower case")
	}
	s.readModalities(task)
	if got := s.Text("transformer_task", usual); got != task {
		s.Fail("transformer_task", "is %s, want %s", quote.Text(got), quote.Text(task))
	}
	s.Only("module_output_name", output)
	if late != nil {
		late(s, strings.HasPrefix(key, "processing_kwargs."))
	} else {
		for _, key := range []string{"query_expansion", "query_length", "document_length"} {
			s.Only(key)
		}
	}
	for _, key := range []string{"model", "config", "tokenizer", "processor"} {
		s.Only(key+"_args", map[string]any{})
		s.Only(key+"_kwargs", map[string]any{})
	}
	s.Ignore("unpad_inputs")
	return most, cmp.Or(s.check(), m.checkMost(most, file, key))
}

// readModalities checks that texts reach the model as they are or, if it writes text, in its chat template.
func (s *Settings) readModalities(task string) {
	all := s.Part("modality_config")
	if task == writesText && (all == nil || !all.Has("message")) {
		s.Fail("modality_config", "has no message, want one: pairs of texts are put into the chat template")
	}
	if all == nil {
		return
	}
	output := "last_hidden_state"
	if task != "feature-extraction" {
		output = "logits"
	}
	for _, name := range []string{"text", "message"} {
		if one := all.Part(name); one != nil {
			one.Only("method", "forward")
			one.Only("method_output_name", output)
			one.Only("format", "flat")
		}
	}
	if task != writesText {
		all.Only("message") // all texts would be put into the chat template
	}
	for key := range all.values { // images and sounds, also beside a text: "image+text"
		if !slices.ContainsFunc(strings.Split(key, "+"), func(name string) bool { return !slices.Contains(modalities, name) }) {
			all.Ignore(key)
		}
	}
}

// modalities are those of sentence-transformers, for inputs that are not conversations.
var modalities = []string{"text", "image", "audio", "video"}

// writesText is the task of a decoder in a pipeline.
const writesText = "text-generation"

// loadReader loads a model that reads texts, and returns an error for an encoder–decoder or files of an invalid tokenizer.
func loadReader(dir string, o Options) (*Model, error) {
	m, err := Load(dir, o)
	if err != nil {
		return nil, err
	}
	return m, cmp.Or(m.wantStates(), m.wantTokens())
}

// wantStates returns an error for an encoder-decoder.
func (m *Model) wantStates() error {
	if m.Sizes().Decoder == nil {
		return nil
	}
	return fmt.Errorf("%s is an encoder-decoder, whose states depend on its output, want an encoder or a decoder",
		m.Family.Name)
}

// wantTokens returns the error in the files of the tokenizer, nil if there are none: the model then takes numbers only.
func (m *Model) wantTokens() error {
	var bad *tokenizer.FormatError
	if errors.As(m.untokened, &bad) && bad.Path == m.Dir {
		return nil
	}
	return m.untokened
}

// checkMost returns an error, about a setting of a file, if a length has no room for the special tokens.
func (m *Model) checkMost(most int, file, key string) error {
	t, err := m.Tokenizer()
	if err != nil {
		return nil // Encode reports it
	}
	x, err := t.Encode("", tokenizer.Options{NoPadding: true, NoTruncation: true})
	if err != nil || len(x.IDs) <= most {
		return err
	}
	err = fmt.Errorf("%s is %d, want room for %d special tokens", key, most, len(x.IDs))
	return &FormatError{filepath.Join(m.Dir, file), err}
}

// lowers reports whether a tokenizer writes texts in lower case.
func lowers(t *tokenizer.Tokenizer) bool {
	const capitals = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
	upper, err := t.Encode(capitals, tokenizer.Options{NoTruncation: true, NoPadding: true})
	lower, err2 := t.Encode(strings.ToLower(capitals), tokenizer.Options{NoTruncation: true, NoPadding: true})
	return err == nil && err2 == nil && slices.Equal(upper.IDs, lower.IDs)
}
