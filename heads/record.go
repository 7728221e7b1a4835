package heads

import (
	"fmt"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// Kind says where the queries and the keys of a layer come from.
type Kind uint8

// The kinds of attention in an encoder–decoder. A model that has no decoder has
// Encoder layers, or Decoder layers if they are causal.
const (
	Encoder Kind = iota // the source attends to itself
	Decoder             // the target attends to what has been written of it
	Cross               // the target attends to the source
)

var kindNames = [...]string{"encoder", "decoder", "cross"}

// String returns "encoder", "decoder" or "cross".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, error) {
	k, err := parseKind(s)
	if err != nil {
		return 0, fmt.Errorf("heads: %w", err)
	}
	return k, nil
}

func parseKind(s string) (Kind, error) {
	for k, name := range kindNames {
		if s == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown kind %s, want encoder, decoder or cross", quote.Text(s))
}

// Layer is the weights of the heads of one attention layer in one run.
type Layer struct {
	Name    string // as the observer was told: "encoder.0.self"
	Kind    Kind
	Index   int      // of the layer among those of its kind, in the model
	Heads   int      // H
	Queries []string // the tokens of the queries, Lq of them
	Keys    []string // the tokens of the keys, Lk of them
	// Weights are [H Lq Lk]. Nil means that Head computes those of a head each time, see
	// RecorderOptions.OnRequest, or that they stay in a File.
	Weights []float32
	// Held is about how many bytes are kept to compute weights from.
	Held int

	// Chosen are the numbers of the heads in the model if not all of them were
	// kept, H of them. Nil means 0 to H-1.
	Chosen []int
	// KeyHeads are the numbers of the key/value heads that the heads read, H of them, in
	// grouped-query attention. Nil means that each has its own.
	KeyHeads []int
	// QueryPlaces and KeyPlaces say where in the text the tokens stand, in
	// ascending order, if some were taken out or several made one. Nil keys are
	// at 0 to Lk-1, nil queries at the last Lq of these places. The place of a
	// decoder's query is that of the token which it has read last.
	QueryPlaces, KeyPlaces []int

	// ValueNorms are ‖W_h·v_j‖ [H Lk]: what a head would add to the layer's result if it
	// attended to key j alone, see ValueWeighted. Nil means that they were not recorded.
	ValueNorms []float32
	// QueryVectors [H Lq E] and KeyVectors [H Lk E] are the queries and keys as the score
	// multiplies them: ScoreScale·q_i·k_j is the score before soft-cap, bias and mask. Nil
	// means that they were not recorded.
	QueryVectors, KeyVectors []float32
	ScoreScale               float32

	inFile storedVectors            // of a layer whose vectors stay there
	again  func(head int) []float32 // computes weights, if there are none
}

// Head returns the weights [Lq Lk] of a head. Those that are computed on request may be asked
// for by several goroutines.
func (l *Layer) Head(h int) []float32 {
	if l.Weights == nil && l.again != nil {
		return l.again(h)
	}
	n := len(l.Queries) * len(l.Keys)
	return l.Weights[h*n : (h+1)*n]
}

// VectorSize returns E, the size of the recorded queries and keys of a head; 0 if there
// are none.
func (l *Layer) VectorSize() int {
	if l.inFile.size > 0 {
		return l.inFile.size
	}
	return len(l.QueryVectors) / max(1, l.Heads*len(l.Queries))
}

// Vectors returns the queries [Lq E] and the keys [Lk E] of a head, nil if they were not
// recorded or are in a file.
func (l *Layer) Vectors(h int) (queries, keys []float32) {
	if l.QueryVectors == nil {
		return nil, nil
	}
	e := l.VectorSize()
	nq, nk := len(l.Queries)*e, len(l.Keys)*e
	return l.QueryVectors[h*nq : (h+1)*nq], l.KeyVectors[h*nk : (h+1)*nk]
}

// ValueWeighted returns how much of the value of each key is in what a head gives each
// query: the size of each term of that sum, and not only its weight.
//
//	A_ij·‖W_h·v_j‖
//
// A head may give most of its weight to a key whose value is close to nothing, such as a
// separator.
//
// Shapes: weights and result [Lq Lk], norms [Lk]. ValueWeighted panics with a
// *tensor.ShapeError if they do not fit.
//
// Source: Kobayashi et al., "Attention is Not Only a Weight: Analyzing Transformers with
// Vector Norms", 2020, https://arxiv.org/abs/2004.10102, section 3.
func ValueWeighted(weights, norms []float32) []float32 {
	n := len(norms)
	if n == 0 && len(weights) > 0 || n > 0 && len(weights)%n != 0 {
		panic(&tensor.ShapeError{Op: "heads: ValueWeighted", Arg: "norms", Got: []int{n}, Want: fmt.Sprintf("[Lk] of weights [%d]", len(weights))})
	}
	out := make([]float32, len(weights))
	for i, w := range weights {
		out[i] = w * norms[i%n]
	}
	return out
}

// Norms returns those of a head, nil if they were not recorded.
func (l *Layer) Norms(h int) []float32 {
	if l.ValueNorms == nil {
		return nil
	}
	n := len(l.Keys)
	return l.ValueNorms[h*n : (h+1)*n]
}

// Number returns the number in the model of head h of Weights.
func (l *Layer) Number(h int) int {
	if l.Chosen != nil {
		return l.Chosen[h]
	}
	return h
}

// Mean returns the weights [Lq Lk] averaged over the heads.
func (l *Layer) Mean() []float32 {
	mean, _ := MeanOf(l.Heads, func(h int) ([]float32, error) { return l.Head(h), nil })
	return mean
}

// MeanOf returns the mean of n maps of one size, which at returns one after the other:
// of the heads of a layer, or of the means of several layers.
//
// Errors: those of at. MeanOf panics with a *tensor.ShapeError if a map has another size
// than the first.
func MeanOf(n int, at func(i int) ([]float32, error)) ([]float32, error) {
	var sum []float64
	for i := range n {
		weights, err := at(i)
		if err != nil {
			return nil, err
		}
		if sum == nil {
			sum = make([]float64, len(weights))
		}
		if len(weights) != len(sum) {
			panic(&tensor.ShapeError{Op: "heads: MeanOf", Arg: "maps", Got: []int{len(weights)}, Want: fmt.Sprintf("[%d] as the first", len(sum))})
		}
		for j, w := range weights {
			sum[j] += float64(w)
		}
	}
	mean := make([]float32, len(sum))
	for j, s := range sum {
		mean[j] = float32(s / float64(n))
	}
	return mean, nil
}

// Record is the attention weights of a model in one run on one text, or pair of texts.
type Record struct {
	Layers []Layer
	// Source and Target are the texts; Target is empty for a model that has
	// one text only.
	Source, Target string
	// Special lists the tokens that are marks and not text, such as the end of
	// a sentence.
	Special []string
}

// Layer returns the layer of that kind and index, or nil if it was not recorded.
//
// Aliasing: the result points into r.Layers.
func (r *Record) Layer(k Kind, index int) *Layer {
	for i := range r.Layers {
		if l := &r.Layers[i]; l.Kind == k && l.Index == index {
			return l
		}
	}
	return nil
}
