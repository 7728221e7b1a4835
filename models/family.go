package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
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
	// means that files cannot have fewer heads.
	Pruning HeadPruning
	// Search is how beam search compares texts. The zero value compares the mean log probability
	// of their tokens, like transformers with a length_penalty of 1.
	Search Search
	// Harmless are settings of this family that have no effect on the model's output.
	Harmless []string
	// Code are the classes of custom code, in auto_map of config.json, that compute what New builds.
	Code []string
	// beforeCut is the Layer through which vectors pass before Embedder.Cut, unless they are normalized; nil if there is none.
	beforeCut Layer
	// graph says that Model.ONNX exports what New builds: stack.graph has all of it.
	graph bool
}

// Table is a list of families of different types.
type Table []Family

// Families returns the families of this package; the entries are beside their constructors. To add a
// custom family, append it: append(Families(), mine). A program that does not call Families, and loads
// no model, does not contain the families.
func Families() Table {
	return Table{
		albertFamily, bertFamily, camembertFamily, debertaFamily, distilbertFamily, electraFamily, euroBERTFamily, gteFamily,
		jinaV3Family, modernBERTFamily, modernBERTDecoderFamily, mpnetFamily, newFamily, nomicFamily, robertaFamily, xlmRobertaFamily,
		gpt2Family, gptNeoXFamily, llamaFamily, mistralFamily, mistral3Family, ministral3Family, diffLlamaFamily, qwen2Family, qwen3Family, gemmaFamily, gemma2Family,
		gemma3Family, gemma3WithImages, gemma3nFamily, gemma3nWithImages, gemma4Family, gemma4WithImages, bartFamily, graniteFamily, graniteHybridFamily, falconH1Family, lfm2Family, mamba2Family, olmo2Family, olmo3Family, phi3Family, mixtralFamily,
		qwen3MoEFamily, smolLM3Family, starCoder2Family, m2m100Family, marianFamily, mt5Family, t5Family, umt5Family,
		olmoHybridFamily, qwen35Family, qwen35WithImages,
		deepSeekV2Family, deepSeekV3Family, miniCPM3Family,
		transformerFamily, recurrentFamily,
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
		return f, fmt.Errorf("has no model_type, want %s", t.list())
	default:
		return f, fmt.Errorf("model_type %s is not known%s, want %s", quote.Text(name), t.near(name), t.list())
	}
}

// list returns the types for a message of one line.
func (t Table) list() string {
	if len(t) > 10 {
		return fmt.Sprintf("one of %d types, which attn models --help lists", len(t))
	}
	return "one of " + strings.Join(t.Types(), ", ")
}

// near returns a part of a message with the type whose name is nearest, if less than half of the name differs.
func (t Table) near(name string) string {
	best, least := "", (len(name)+1)/2
	for _, f := range t {
		if n := edits(name, f.Type); n < least {
			best, least = f.Type, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (the nearest is %s)", best)
}

// edits returns the number of bytes to add, remove or replace between two names.
//
// Source: Wagner and Fischer, "The String-to-String Correction Problem", 1974.
func edits(a, b string) int {
	row := stats.Numbers(len(b) + 1)
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(before+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
