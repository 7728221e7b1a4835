package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// Family is a kind of model: an entry of the table of families.
type Family struct {
	Type string // model_type in config.json: "bert"
	Name string // for people: "BERT"
	// New builds a model of this family. It is called twice: first with a Builder that only
	// checks names and sizes against the files and returns layers without memory, then with one
	// that reads tensors. So New must build layers without computing anything with them.
	New func(b *Builder) Network
	// Pruning is how config.json describes removed heads, which New reads with Builder.Kept. Zero
	// means that heads cannot be removed.
	Pruning HeadPruning
	// Search is how beam search compares texts. The zero value compares the mean log probability
	// of their tokens, like transformers with a length_penalty of 1.
	Search Search
	// Harmless are settings of this family that have no effect on the model's output.
	Harmless []string
}

// Table is a list of families of different types.
type Table []Family

// Families returns the families of this package; the entries are beside their constructors. To add a
// custom family, append it: append(Families(), mine). A program that does not call Families, and loads
// no model, does not contain the families.
func Families() Table {
	return Table{
		bertFamily, camembertFamily, distilbertFamily, electraFamily, modernBERTFamily, mpnetFamily, robertaFamily, xlmRobertaFamily,
		gpt2Family, llamaFamily, mistralFamily, qwen2Family, qwen3Family, gemmaFamily, gemma2Family, gemma3Family,
		gemma3WithImages, bartFamily, graniteFamily, olmo2Family, olmo3Family, phi3Family, smolLM3Family, starCoder2Family, marianFamily, mt5Family, t5Family, transformerFamily, recurrentFamily,
	}
}

// Find returns the family of a model_type.
func (t Table) Find(modelType string) (f Family, ok bool) {
	i := slices.IndexFunc(t, func(f Family) bool { return f.Type == modelType })
	if i < 0 {
		return Family{}, false
	}
	return t[i], true
}

// Types returns the types of the families.
func (t Table) Types() []string {
	types := make([]string, len(t))
	for i, f := range t {
		types[i] = f.Type
	}
	return types
}

// named returns the family that settings name.
func (t Table) named(s *Settings) (Family, error) {
	name := s.Text("model_type", "")
	switch f, ok := t.Find(name); {
	case ok:
		return f, nil
	case name == "":
		return f, fmt.Errorf("has no model_type, want one of %s", strings.Join(t.Types(), ", "))
	default:
		return f, fmt.Errorf("model_type %s is not known, want one of %s", quote.Text(name), strings.Join(t.Types(), ", "))
	}
}
