package main

import (
	"math"
	"slices"
	"strconv"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" //lint:ignore ST1001 formulas read as formulas

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
)

// network is the transformer of package models as a graph: the encoder–decoder of Vaswani et al. 2017, with pre-norm.
type network struct {
	config models.TranslatorConfig
	// param returns the parameter with attn's name.
	param func(name string) *Node
	// dropout drops elements in training.
	dropout func(x *Node) *Node
}

// logits returns [B Lt V], the logits of the token after each token of read [B Lt], given sources [B Ls] and their
// lengths [B] without padding.
func (n *network) logits(source, lengths, read *Node) *Node {
	g := source.Graph()
	ls, lt := source.Shape().Dim(1), read.Shape().Dim(1)
	place := func(l, axis int) *Node { return Iota(g, shapes.Make(dtypes.Int32, 1, 1, l, l), axis) }
	visible := LessThan(
		Reshape(Iota(g, shapes.Make(dtypes.Int32, ls), 0), 1, 1, 1, ls),
		Reshape(lengths, -1, 1, 1, 1))
	x := n.positioned("source", source)
	for i := range n.config.Layers {
		l := "encoder." + strconv.Itoa(i)
		h := n.norm(l+".norm1", x)
		x = n.residual(x, n.multiHead(l+".self", h, h, visible))
		x = n.residual(x, n.feedForward(l+".ff", n.norm(l+".norm2", x)))
	}
	memory := n.norm("encoder.norm", x)

	earlier := LessOrEqual(place(lt, 3), place(lt, 2)) // keys up to the query's position
	x = n.positioned("target", read)
	for i := range n.config.Layers {
		l := "decoder." + strconv.Itoa(i)
		h := n.norm(l+".norm1", x)
		x = n.residual(x, n.multiHead(l+".self", h, h, earlier))
		x = n.residual(x, n.multiHead(l+".cross", n.norm(l+".norm2", x), memory, visible))
		x = n.residual(x, n.feedForward(l+".ff", n.norm(l+".norm3", x)))
	}
	return times(n.norm("decoder.norm", x), n.param("target.weight"))
}

// multiHead attends from x to y, each [B L D]; the mask broadcasts to [B H Lq Lk].
func (n *network) multiHead(name string, x, y, mask *Node) *Node {
	heads, size := n.config.Heads, n.config.Width/n.config.Heads
	split := func(which string, x *Node) *Node { // [B L H E]
		x = n.linear(name+"."+which, x)
		return Reshape(x, x.Shape().Dim(0), x.Shape().Dim(1), heads, size)
	}
	q, k, v := split("q", x), split("k", y), split("v", y)
	scores := n.scores(name+".score.", q, k)
	mask = BroadcastToDims(mask, scores.Shape().Dimensions...)
	weights := n.dropout(MaskedSoftmax(scores, mask, -1))
	out := Einsum("bhqk,bkhe->bqhe", weights, v)
	return n.linear(name+".out", Reshape(out, x.Shape().Dim(0), x.Shape().Dim(1), heads*size))
}

// scores returns the scores [B H Lq Lk] of queries [B Lq H E] and keys [B Lk H E]. The names of its parameters start
// with prefix.
func (n *network) scores(prefix string, q, k *Node) *Node {
	root := math.Sqrt(float64(q.Shape().Dim(-1)))
	dot := func(q, k *Node) *Node { return Einsum("bqhe,bkhe->bhqk", q, k) }
	param := func(name string) *Node { return n.param(prefix + name) }
	// pairs calls f with all pairs, [B H Lq 1 E] and [B H 1 Lk E], and sums its result over the elements.
	pairs := func(q, k *Node, f func(q, k *Node) *Node) *Node {
		q, k = TransposeAllAxes(q, 0, 2, 1, 3), TransposeAllAxes(k, 0, 2, 1, 3)
		full := []int{q.Shape().Dim(0), q.Shape().Dim(1), q.Shape().Dim(2), k.Shape().Dim(2), q.Shape().Dim(3)}
		return ReduceSum(f(BroadcastToDims(ExpandAxes(q, 3), full...), BroadcastToDims(ExpandAxes(k, 2), full...)), -1)
	}
	every := func(w, like *Node) *Node {
		return BroadcastToDims(ExpandLeftToRank(w, like.Rank()), like.Shape().Dimensions...)
	}
	switch n.config.Score {
	case "scaled":
		return DivScalar(dot(q, k), root)
	case "dot":
		return dot(q, k)
	case "bilinear":
		return dot(times(q, Transpose(param("w"), 0, 1)), k)
	case "scaled-bilinear":
		return DivScalar(dot(times(q, Transpose(param("w"), 0, 1)), k), root)
	case "cosine":
		unit := func(x *Node) *Node {
			return Div(x, Sqrt(MaxScalar(ReduceAndKeep(Square(x), ReduceSum, -1), 1e-37)))
		}
		s := dot(unit(q), unit(k))
		return Mul(s, every(param("scale"), s))
	case "additive":
		return pairs(times(q, param("wq")), times(k, param("wk")), func(q, k *Node) *Node {
			return Mul(Tanh(Add(q, k)), every(param("wv"), q))
		})
	case "gaussian":
		return pairs(q, k, func(q, k *Node) *Node {
			return MulScalar(Square(Mul(Sub(q, k), every(param("w"), q))), -0.5)
		})
	case "l1":
		return pairs(q, k, func(q, k *Node) *Node { return Neg(Abs(Mul(Sub(q, k), every(param("w"), q)))) })
	}
	panic("attn: no graph of score " + n.config.Score) // newRun has rejected it
}

func (n *network) feedForward(name string, x *Node) *Node {
	h := MaxScalar(n.linear(name+".in", x), 0)
	return n.linear(name+".out", n.dropout(h))
}

// residual returns x + dropout(y).
func (n *network) residual(x, y *Node) *Node { return Add(x, n.dropout(y)) }

// norm is layer normalisation.
func (n *network) norm(name string, x *Node) *Node {
	x = Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(x), ReduceMean, -1)
	x = Div(x, Sqrt(AddScalar(variance, 1e-5)))
	return Add(Mul(x, ExpandLeftToRank(n.param(name+".weight"), 3)), ExpandLeftToRank(n.param(name+".bias"), 3))
}

// positioned returns the embeddings of tokens [B L] plus sinusoids.
func (n *network) positioned(name string, ids *Node) *Node {
	width, l := n.config.Width, ids.Shape().Dim(1)
	x := MulScalar(Gather(n.param(name+".weight"), ExpandAxes(ids, -1)), math.Sqrt(float64(width)))
	positions := Const(ids.Graph(), slices.Collect(slices.Chunk(nn.Sinusoids(nil, 0, l, width).Data(), width)))
	return n.dropout(Add(x, ExpandLeftToRank(positions, 3)))
}

func (n *network) linear(name string, x *Node) *Node {
	return Add(times(x, n.param(name+".weight")), ExpandLeftToRank(n.param(name+".bias"), x.Rank()))
}

// times returns x·wᵀ for x [… in] and w [out in].
func times(x, w *Node) *Node { return DotGeneral(x, []int{x.Rank() - 1}, nil, w, []int{1}, nil) }
