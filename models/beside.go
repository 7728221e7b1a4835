package models

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
)

// harmlessTokens are settings of tokenizer_config.json that package tokenizer reads, or that do not change tokens: they
// concern padding, decoding, slow tokenizers and return values in Python, and the origin of the file.
var harmlessTokens = []string{
	"add_bos_token", "add_eos_token", "add_prefix_space", "add_special_tokens", "added_tokens_decoder",
	"additional_special_tokens", "auto_map", "backend", "bos_id", "chat_control_tokens", "chat_template", "clean_text",
	"clean_up_tokenization_spaces", "device_map", "do_basic_tokenize", "do_lower_case", "do_split_on_punc", "eos_id",
	"errors", "extra_ids", "extra_special_tokens", "from_slow", "init_inputs", "is_local", "keep_accents",
	"lang_codes", "language_codes", "langs", "legacy", "legacy_behaviour", "local_files_only", "mask_token_sent",
	"max_input_chars_per_word", "max_len", "max_length", "model_input_names", "model_specific_special_tokens",
	"model_type", "name", "name_or_path", "never_split", "num_madeup_words", "offset", "pad_id", "pad_to_multiple_of",
	"pad_token_type_id", "padding", "padding_side", "processor_class", "remove_space", "response_schema",
	"response_template", "return_token_type_ids", "sanitize_control_tokens", "separate_vocabs", "source_lang",
	"sp_model_kwargs", "spaces_between_special_tokens", "special_tokens", "split_by_punct", "split_special_tokens",
	"src_lang", "stride", "strip_accents", "target_lang", "tgt_lang", "token_type_ids_include_special_tokens",
	"token_type_ids_pattern", "tokenize_chinese_chars", "tokenizer_class", "tokenizer_type", "tokenizer_version",
	"transformers_version", "trim_offsets", "truncation", "truncation_side", "truncation_strategy",
	"trust_remote_code", "unk_id", "use_default_system_prompt", "use_fast", "verbose", "vocab_size", "vocab_type",
	"wordpieces_prefix",
}

// harmlessGeneration are settings of generation_config.json that this package reads, or that Generation replaces.
var harmlessGeneration = []string{
	"_from_model_config", "_name_or_path", "assistant_confidence_threshold", "assistant_early_exit", "assistant_ensemble_weight",
	"assistant_lookbehind", "assistant_token_id", "attn_implementation", "bad_words_ids", "begin_suppress_tokens",
	"bos_token_id", "cache_config", "cache_implementation", "chat_format", "compile_config", "constraints",
	"continuous_batching_config", "decoder_start_token_id", "disable_compile", "diversity_penalty", "do_sample",
	"dola_layers", "early_stopping", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty", "eos_token_id",
	"epsilon_cutoff", "eta_cutoff", "exponential_decay_length_penalty", "force_words_ids", "forced_bos_token_id",
	"forced_decoder_ids", "forced_eos_token_id", "generation_kwargs", "guidance_scale", "is_assistant",
	"length_penalty", "low_memory", "max_cache_len", "max_length", "max_matching_ngram_size", "max_new_tokens",
	"max_time", "max_window_size", "min_length", "min_new_tokens", "min_p", "no_repeat_ngram_size",
	"num_assistant_tokens", "num_assistant_tokens_schedule", "num_beam_groups", "num_beams", "num_return_sequences",
	"output_attentions", "output_hidden_states", "output_logits", "output_scores", "pad_token_id", "penalty_alpha",
	"prefill_chunk_size", "prompt_lookup_num_tokens", "remove_invalid_values", "renormalize_logits",
	"repetition_penalty", "return_dict_in_generate", "return_legacy_cache", "sequence_bias", "speculation_type", "stop_strings",
	"suppress_tokens", "target_lookbehind", "temperature", "token_healing", "top_h", "top_k", "top_p",
	"transformers_version", "trust_remote_code", "typical_p", "use_cache", "use_mtp", "user_token_id",
	"watermarking_config",
}

// readBeside reads the settings in files beside config.json. Unknown ones are an error.
func (m *Model) readBeside() (err error) {
	if m.generation, err = m.settingsBeside(generationFile); m.generation != nil {
		m.generation.Ignore(harmlessGeneration...)
		err = m.generation.check()
	}
	if err != nil {
		return err
	}
	m.limit = math.Inf(1)
	s, err := m.settingsBeside(tokenizerConfigFile)
	if m.tokens = s; s == nil {
		return err
	}
	m.limit = s.Float(limitKey, m.limit) // 1e30 in files without a limit
	if m.limit < 1 {
		s.Fail(limitKey, "is %v, want at least 1, or null", m.limit)
	}
	for key := range s.values {
		names := strings.HasSuffix(key, "_token") || strings.HasSuffix(key, "_token_id")
		if names || strings.HasSuffix(key, "_file") || strings.HasPrefix(key, "_") { // files are found by their usual names
			s.Ignore(key)
		}
	}
	s.Ignore(harmlessTokens...)
	s.Only("fix_mistral_regex", false)
	s.Only("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false)
	return s.check()
}

// settingsBeside reads a file beside config.json, nil if there is none. Options.Allowed has its settings behind its
// name.
func (m *Model) settingsBeside(name string) (*Settings, error) {
	s, err := openSettings(filepath.Join(m.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if s != nil {
		s.file = name + ":"
		s.allowed(m.options)
	}
	return s, err
}

// allowed sets the settings of the file that Options.Allowed names.
func (s *Settings) allowed(o Options) {
	for _, name := range o.Allowed {
		if file, _, other := strings.Cut(name, ":"); other && file+":" == s.file || !other && s.file == "" {
			s.allow = append(s.allow, name)
		}
	}
}
