package heads

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// Kind is the kind of attention: which texts the queries and keys of a layer come from.
type Kind uint8

// The kinds of attention in an encoder–decoder. A model without a decoder has Encoder layers, or Decoder
// layers if they are causal.
const (
	Encoder   Kind = iota // the source attends to itself
	Decoder               // the target attends to the part of itself that is already written
	Cross                 // the target attends to the source
	Mamba                 // as Decoder: a layer of Mamba-2 beside the attention of the same index, as in Falcon-H1
	Alignment             // tokens of the source choose tokens of the target: late interaction, see score.MaxSim
)

var kindNames = [...]string{"encoder", "decoder", "cross", "mamba", "alignment"}

// Causal reports whether no query attends to a later key.
func (k Kind) Causal() bool { return k == Decoder || k == Mamba }

// OfTwo reports whether queries and keys are of two texts.
func (k Kind) OfTwo() bool { return k == Cross || k == Alignment }

// String returns "encoder", "decoder", "cross", "mamba" or "alignment".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, error) {
	if k := slices.Index(kindNames[:], s); k >= 0 {
		return Kind(k), nil
	}
	return 0, fmt.Errorf("unknown kind %s, want encoder, decoder, cross, mamba or alignment", quote.Text(s))
}

// Layer has the weights of the heads of one attention layer in one run.
type Layer struct {
	Name    string // as passed to the observer: "encoder.0.self"
	Kind    Kind
	Index   int      // number of the layer among the model's layers of its kind
	Heads   int      // H
	Queries []string // the tokens of the queries, Lq of them
	Keys    []string // the tokens of the keys, Lk of them
	// Weights are [H Lq Lk]. Nil means that Head computes the weights of a head in each call, see
	// RecorderOptions.OnRequest, or that they stay in a File.
	Weights []float32
	// Signed means that weights may be negative and that rows need not sum to 1, as without a softmax: see package linear.
	Signed bool
	// Held is the approximate number of bytes kept to compute weights from.
	Held int

	// Chosen has, for each of the H heads, its number in the model, if some heads were not kept. Nil means
	// 0 to H-1.
	Chosen []int
	// KeyHeads has, for each of the H heads, the number of its key/value head in grouped-query attention.
	// Nil means that each head has its own.
	KeyHeads []int
	// QueryPlaces and KeyPlaces are the positions of the tokens in the text, in ascending order, if tokens
	// were removed or merged. With nil, keys are at 0 to Lk-1 and queries at the last Lq of these
	// positions. The position of a decoder's query is the position of the token that the decoder read last.
	QueryPlaces, KeyPlaces []int

	// ValueNorms are ‖W_h·v_j‖ [H Lk]: the norm of the vector that a head would add to the layer's result
	// if it attended to key j alone, see ValueWeighted. Nil means that they were not recorded.
	ValueNorms []float32
	// QueryVectors [H Lq E] and KeyVectors [H Lk E] are the queries and keys that the score multiplies:
	// ScoreScale·q_i·k_j is the score before soft-cap, bias and mask. Nil means that they were not
	// recorded.
	QueryVectors, KeyVectors []float32
	ScoreScale               float32

	inFile storedVectors            // where the vectors are, if they stay in a file
	again  func(head int) []float32 // computes the weights of a head, if Weights is nil
}

// Head returns the weights [Lq Lk] of a head. Several goroutines may call it at once, even if it computes
// the weights.
func (l *Layer) Head(h int) []float32 {
	if l.Weights == nil && l.again != nil {
		return l.again(h)
	}
	n := len(l.Queries) * len(l.Keys)
	return l.Weights[h*n : (h+1)*n]
}

// Shares returns the weights [Lq Lk] of a head as shares of each row, which sum to 1: those of Head, or |w|/Σ|w| if the
// layer is signed. Measures, divergences and rollouts use them. A row of zeros remains one.
func (l *Layer) Shares(h int) []float32 {
	if !l.Signed {
		return l.Head(h)
	}
	shares, n := slices.Clone(l.Head(h)), len(l.Keys)
	for at := 0; at < len(shares); at += n {
		ToShares(shares[at : at+n])
	}
	return shares
}

// ToShares replaces a row of signed weights by their shares |w|/Σ|w|. A row of zeros remains one.
func ToShares(row []float32) {
	sum := 0.
	for j, w := range row {
		row[j] = float32(math.Abs(float64(w)))
		sum += float64(row[j])
	}
	for j := range row {
		if sum != 0 {
			row[j] = float32(float64(row[j]) / sum)
		}
	}
}

// VectorSize returns E, the size of the recorded queries and keys of a head; 0 if none were recorded.
func (l *Layer) VectorSize() int {
	return cmp.Or(l.inFile.size, len(l.QueryVectors)/max(1, l.Heads*len(l.Queries)))
}

// Vectors returns the queries [Lq E] and the keys [Lk E] of a head; nil if they were not recorded or are in
// a file.
func (l *Layer) Vectors(h int) (queries, keys []float32) {
	if l.QueryVectors == nil {
		return nil, nil
	}
	e := l.VectorSize()
	nq, nk := len(l.Queries)*e, len(l.Keys)*e
	return l.QueryVectors[h*nq : (h+1)*nq], l.KeyVectors[h*nk : (h+1)*nk]
}

// ValueWeighted returns how large the contribution of each key to a head's result is, for each query: the
// norm of the weighted value, not only the weight.
//
//	A_ij·‖W_h·v_j‖
//
// A head may give most of its weight to a key whose value is close to zero, such as a separator.
//
// Shapes: weights and result [Lq Lk], norms [Lk]. ValueWeighted panics with a *tensor.ShapeError if the
// length of weights is no multiple of the length of norms.
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

// Norms returns the value norms of a head; nil if they were not recorded.
func (l *Layer) Norms(h int) []float32 {
	if l.ValueNorms == nil {
		return nil
	}
	n := len(l.Keys)
	return l.ValueNorms[h*n : (h+1)*n]
}

// Number returns the number in the model of head h of the layer.
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

// MeanOf returns the mean of n maps of one size, such as the heads of a layer or the means of several
// layers. It calls at for one map after the other.
//
// Errors: those of at. MeanOf panics with a *tensor.ShapeError if the sizes of the maps differ.
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
			panic(&tensor.ShapeError{Op: "heads: MeanOf", Arg: "maps", What: "number of values", Got: []int{len(weights)}, Want: fmt.Sprintf("%d as in the first map", len(sum))})
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

// Record has the attention weights of a model in one run on one text or pair of texts.
type Record struct {
	Layers []Layer
	// Source and Target are the texts. Target is empty for a model that has only one text.
	Source, Target string
	// Special lists the special tokens, such as the end of a sentence.
	Special []string
}

// Layer returns the layer of the given kind and index, or nil if it was not recorded.
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
