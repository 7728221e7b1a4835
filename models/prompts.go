package models

import (
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// promptsFile has the kind of a pipeline and its prompts.
const promptsFile = "config_sentence_transformers.json"

// Prompts returns a directory's prompts by name, and the name of the default prompt or "". Both
// are empty if the directory defines no prompts.
//
// Errors: a *FormatError, or one of the operating system.
func Prompts(dir string) (byName map[string]string, usual string, err error) {
	byName, usual, _, err = readPrompts(dir, sentenceTransformer, sparseEncoder)
	return byName, usual, err
}

// readPrompts is Prompts for a pipeline of one of some kinds. It also returns the number of elements to which vectors are
// cut after all modules, 0 if they are not.
func readPrompts(dir string, kinds ...any) (byName map[string]string, usual string, first int, err error) {
	s, err := optionalSettings(filepath.Join(dir, promptsFile))
	if err != nil {
		return nil, "", 0, err
	}
	s.Ignore("__version__", "similarity_fn_name", "requirements")
	s.Only("model_type", kinds...)
	s.Only("max_active_dims")                      // of a sparse encoder
	if slices.Contains(kinds, any(crossEncoder)) { // whose logits are scores: none of these functions changes their order
		const nn = "torch.nn.modules."
		s.Only("activation_fn", nn+"linear.Identity", nn+"activation.Sigmoid", nn+"activation.Tanh")
		s.Ignore("keep_in_fp32_modules")
	}
	if slices.Contains(kinds, any(sentenceTransformer)) {
		first = s.SizeOr("truncate_dim", 0)
	}
	byName, usual = s.prompts()
	return byName, usual, first, s.check()
}

// prompts returns the prompts by name, and the name of the default prompt or "".
func (s *Settings) prompts() (byName map[string]string, usual string) {
	byName = get[map[string]string](s, "prompts", "an object of texts", nil)
	if usual = s.Text("default_prompt_name", ""); usual != "" {
		if _, ok := byName[usual]; !ok {
			s.Fail("default_prompt_name", "is %s, which is not among the prompts", quote.Text(usual))
		}
	}
	return byName, usual
}

// Kinds of pipelines.
const (
	sentenceTransformer = "SentenceTransformer"
	sparseEncoder       = "SparseEncoder"
	crossEncoder        = "CrossEncoder"
)
