package models

import "fmt"

// forcedToken is the setting for the first token of each target, after the start token.
const forcedToken = "forced_bos_token_id"

// WithLanguages returns a model with the weights of m that reads sources in the language from and writes targets in the
// language to: codes of tokenizer.Tokenizer.Languages. An empty code is that of the directory: in tokenizer.json for
// sources, forced_bos_token_id of generation_config.json for targets.
//
// Errors: those of Tokenizer, and a *FormatError for a code that the tokenizer lacks.
func (m *Model) WithLanguages(from, to string) (*Model, error) {
	t, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	other, target := *m, t.Target()
	if from != "" {
		t, err = t.In(from)
	}
	if to != "" && err == nil {
		target, err = target.In(to)
	}
	if err != nil {
		return nil, &FormatError{m.Dir, err}
	}
	other.tokenizer = t.WithTarget(target)
	if id, ok := target.ID(to); ok && to != "" {
		other.language = []int{id}
	}
	return &other, nil
}

// Forced returns the tokens with which the model begins each target, after the start token.
func (m *Model) Forced() ([]int, error) {
	if m.language != nil {
		return m.language, nil
	}
	id, given, err := m.generationToken(forcedToken)
	if given || err != nil {
		return []int{id}, err
	}
	if t := m.tokenizer; t != nil && len(t.Languages()) > 1 {
		codes := t.Languages()
		return nil, &FormatError{m.Dir, fmt.Errorf("can write %d languages, %s to %s, want one of them by --to "+
			"where a command has it, Model.WithLanguages, or %s in %s", len(codes), codes[0], codes[len(codes)-1], forcedToken, generationFile)}
	}
	return nil, nil
}
