package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// Model is a model that records texts for a page. Weights are computed on request.
type Model struct {
	Model *models.Model
	// Generate is the number of tokens that a pretrained decoder adds to each text.
	Generate int
	// Unknown, if not nil, reports the unknown pieces of the texts.
	Unknown *texts.Unknown
	// Late, if not nil, compares two texts token by token, with the same Model: a record of two is their alignment.
	Late *models.LateEmbedder
}

var _ view.Recorder = Model{}

// New returns the model in a directory. generate is the number of tokens that a decoder adds to each
// text. It reports unknown pieces of texts to messages.
//
// Errors: *flags.Error if the model cannot generate, and an error of the tokenizer.
func New(dir string, m *models.Model, generate int, messages io.Writer) (Model, error) {
	r := Model{Model: m, Generate: generate, Unknown: texts.NewUnknown(m, messages)}
	if _, err := m.Tokenizer(); err != nil {
		return r, err
	}
	if h := m.Head(); generate > 0 && (h == nil || h.Task != models.NextWord || m.Sizes().Decoder != nil) {
		return r, flags.Errorf("--generate requires a decoder, and %s is %s model", quote.Shell(dir), quote.A(m.Family.Name))
	}
	_, err := io.WriteString(messages, Unseen(m))
	return r, err
}

// Unseen returns a line about the layers of a decoder whose tokens meet without weights, as in a convolution; "" if there
// are none.
func Unseen(m *models.Model) string {
	if m.Sizes().Decoder != nil {
		return ""
	}
	var list []string
	layers := m.HeadLayers()
	for i := range m.Sizes().Layers {
		if !slices.ContainsFunc(layers, func(l attn.LayerHeads) bool { _, at := heads.Place(l.Name); return at == i }) {
			list = append(list, strconv.Itoa(i))
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf("%s without weights: %s\n", quote.Counted(len(list), "layer", "layers"), strings.Join(list, ", "))
}

// Page returns the options of a page that records texts with the model.
func (m Model) Page() view.Options {
	o := view.Options{Recorder: m, MaxText: MaxText, Keep: 2 * (maxKept + 64<<20)} // room for two records, to compare them
	switch z := m.Model.Sizes(); {
	case m.Late != nil:
		o.Second = view.Second{Label: "Document", Hint: "to which the first text, a query, is compared token by token"}
	case z.Decoder != nil: // the second text of an encoder-decoder is the target
	case z.Causal:
		o.Second = view.Second{Label: "Continuation", Hint: "text that follows the first, if any"}
	default:
		o.Second = view.Second{Label: "Second text", Hint: "none"}
	}
	return o
}

// Record records a text or, if second is not empty, a pair of texts: an encoder-decoder writes a second one that is empty, and
// for late interaction the first is a query and the second a document.
//
// Errors: a text that the model cannot read; one that would take too much memory.
func (m Model) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	if m.Late != nil && second != "" {
		return probe.Align(ctx, m.Late, first, second)
	}
	in, err := probe.Read(m.Model, first, second)
	if err != nil {
		return nil, err
	}
	z := m.Model.Sizes()
	if m.Unknown != nil {
		m.Unknown.Read(in)
	}
	source, target := lengths(in)
	n := max(source, target) + m.Generate
	if n > maxTokens {
		return nil, fmt.Errorf("the text has %d tokens, want at most %d", n, maxTokens)
	}
	bytes := keptBytes(m.Model, source+m.Generate, target)
	if bytes > maxKept {
		return nil, fmt.Errorf("the queries and keys of %d tokens take %d MB, want at most %d MB, enough for %d tokens",
			n, bytes>>20, maxKept>>20, int64(n)*maxKept/bytes)
	}
	o := heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: 2*bytes <= maxVectors}
	switch {
	case m.Generate == 0:
		return probe.Record(ctx, in, o)
	case second != "":
		return nil, errors.New("a second text and --generate exclude each other")
	case z.Positions > 0 && n > z.Positions:
		return nil, fmt.Errorf("the text has %d tokens, to which --generate adds %d, want at most %d in total",
			source, m.Generate, z.Positions)
	}
	if in, err = in.Generate(ctx, models.Generation{Tokens: m.Generate}); err != nil {
		return nil, err
	}
	return probe.Record(ctx, in, o)
}

// NoVectors returns why a record has no queries and keys, as a sentence for the page.
func (m Model) NoVectors(r *heads.Record) string {
	tokens := map[heads.Kind]int{} // of the source and of the target
	for i := range r.Layers {
		l := &r.Layers[i]
		tokens[l.Kind] = len(l.Keys)
	}
	source := max(tokens[heads.Encoder], tokens[heads.Cross])
	if m.Model.Sizes().Decoder == nil {
		source = max(source, tokens[heads.Decoder])
	}
	if 2*keptBytes(m.Model, source, tokens[heads.Decoder]) <= maxVectors {
		return "The scores of this model are not products of queries and keys."
	}
	return fmt.Sprintf("The queries and keys of this text take more than %d MB; a shorter text has them.", maxVectors>>20)
}
