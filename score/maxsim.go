package score

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// MaxSim is the score of late interaction: each token of a query is compared with each token of a document, and the
// largest products are summed. That is attention with a hard maximum in place of the softmax, and with the scores as
// values:
//
//	scores[n] = Σ_i max_j q_iᵀd_nj,    chosen[n][i] = argmax_j q_iᵀd_nj
//
// chosen is the alignment: for each token of the query, the number of the first token of document n with the largest
// product. NaN is larger than all others, as in tensor.ArgMax.
//
// The score of a document has the same bits whatever the other documents are. Gradients flow to the query and to the
// chosen tokens.
//
// Shapes: q [Lq E]; each document [Ld E], of any length from 1; scores [len(documents)].
//
// Panics: a *tensor.ShapeError for other shapes.
//
// Source: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction
// over BERT", 2020, https://arxiv.org/abs/2004.12832, section 3.3.
func MaxSim(t *tensor.Tape, q *tensor.Tensor, documents ...*tensor.Tensor) (scores *tensor.Tensor, chosen [][]int) {
	const op = "score: MaxSim"
	tensor.Want(op, "query", q)
	if q.Rank() != 2 {
		panic(&tensor.ShapeError{Op: op, Arg: "query", Got: q.Shape(), Want: "[Lq E]"})
	}
	begins := make([]int, len(documents)+1) // of the tokens of each document, in one list of all
	for n, d := range documents {
		tensor.Want(op, "document", d)
		if d.Rank() != 2 || d.Dim(0) == 0 || d.Dim(1) != q.Dim(1) {
			panic(&tensor.ShapeError{Op: op, Arg: "document", Got: d.Shape(), Want: "[Ld E] with the E of the query and one token or more"})
		}
		begins[n+1] = begins[n] + d.Dim(0)
	}
	l, all := q.Dim(0), begins[len(documents)]
	if all == 0 || l == 0 {
		return t.Make(len(documents)), make([][]int, len(documents))
	}
	products := tensor.MatMulT(t, q, tensor.Concat(t, 0, documents...)) // [Lq all]
	chosen, index := make([][]int, len(documents)), make([]int, len(documents)*l)
	par.For(len(documents), par.Chunk(len(documents), l*all/len(documents)), func(lo, hi int) {
		for n := lo; n < hi; n++ {
			chosen[n] = make([]int, l)
			for i := range l {
				row := products.Data()[i*all:][begins[n]:begins[n+1]]
				chosen[n][i] = largest(row)
				index[n*l+i] = i*all + begins[n] + chosen[n][i]
			}
		}
	})
	picked := tensor.Gather(t, tensor.Reshape(t, products, l*all, 1), index)
	return tensor.SumAxis(t, tensor.Reshape(t, picked, len(documents), l), 1), chosen
}

// largest returns the index of the first largest number of a row.
func largest(row []float32) int {
	at := 0
	for j, x := range row {
		if x > row[at] {
			at = j
		} else if x != x {
			return j
		}
	}
	return at
}
