package mask

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Allow lets a query attend to the keys where seen is true. shape broadcasts to the shape of the
// scores, [B H Lq Lk], or [B Lq Lk] if the query has three axes; axes are aligned at the end.
// Allow does not copy seen. It panics with a *tensor.ShapeError if the shape does not have
// len(seen) elements.
func Allow(seen []bool, shape ...int) attn.Mask {
	return attn.NewMask(newAllow("mask: Allow", seen, shape))
}

// AllowSequenceFirst is Allow for a mask in the layout [Lq Lk B]. The first and the last axis may
// be 1.
func AllowSequenceFirst(seen []bool, lq, lk, b int) attn.Mask {
	a := newAllow("mask: AllowSequenceFirst", seen, []int{lq, lk, b})
	a.sequenceFirst = true
	return attn.NewMask(a)
}

func newAllow(op string, seen []bool, shape []int) *allow {
	n := 1
	for _, d := range shape {
		if d < 0 {
			raiseMask(op, "", shape, "no negative axis")
		}
		if d > 0 && n > math.MaxInt/d {
			raiseMask(op, "", shape, "%d elements, the length of seen", len(seen))
		}
		n *= d
	}
	if n != len(seen) {
		raiseMask(op, "number of elements", []int{len(seen)}, "%d for shape %v", n, shape)
	}
	return &allow{seen: seen, shape: slices.Clone(shape)}
}

// allow is a mask from an array of booleans.
type allow struct {
	seen          []bool
	shape         []int
	sequenceFirst bool // [Lq Lk B]
}

func (a *allow) Check(s attn.Sizes) error {
	if a.sequenceFirst {
		if (a.shape[0] != 1 && a.shape[0] != s.Lq) || a.shape[1] != s.Lk || (a.shape[2] != 1 && a.shape[2] != s.B) {
			return badMask("", a.shape, "[Lq=%d Lk=%d B=%d], where Lq and B may be 1", s.Lq, s.Lk, s.B)
		}
		return nil
	}
	if !s.Broadcasts(a.shape) {
		_, letters := s.Shape()
		return badMask("", a.shape, "a shape that broadcasts to %s", letters)
	}
	return nil
}

func (*allow) Keys(s attn.Sizes, _ attn.Row) (lo, hi int) { return 0, s.Lk }
func (*allow) Holes() bool                                { return true }

func (a *allow) Rows(s attn.Sizes, at attn.Row) (attended []bool, step int) {
	from, each := a.element(&s, &at)
	if each != 1 {
		return nil, 0
	}
	at.Query++
	next, _ := a.element(&s, &at)
	return a.seen[from:], next - from
}

func (a *allow) Hide(s attn.Sizes, at attn.Row, lo, hi int, attended []bool) {
	from, step := a.element(&s, &at)
	for j := lo; j < hi; j++ {
		if !a.seen[from+j*step] {
			attended[j] = false
		}
	}
}

// element returns the index of the query's element for key 0, and the step from key to key.
// Missing axes and axes of size 1 have a step of 0.
func (a *allow) element(s *attn.Sizes, q *attn.Row) (at, step int) {
	index, key := [4]int{q.Batch, q.Head, q.Query, 0}, 3 // of the last four axes
	switch {
	case a.sequenceFirst:
		index, key = [4]int{0, q.Query, 0, q.Batch}, 2
	case s.ThreeAxes:
		index = [4]int{0, q.Batch, q.Query, 0}
	}
	stride := 1
	for axis := len(a.shape) - 1; axis >= 0; axis-- {
		place := axis + len(index) - len(a.shape)
		if a.shape[axis] > 1 {
			at += index[place] * stride
			if place == key {
				step = stride
			}
		}
		stride *= a.shape[axis]
	}
	return at, step
}

// AllowFunc lets query i of head h in sequence b attend to key j if f(b, h, i, j) is true. f is
// called concurrently. AllowFunc panics with a *tensor.ValueError if f is nil.
func AllowFunc(f func(b, h, i, j int) bool) attn.Mask {
	if f == nil {
		panic(&tensor.ValueError{Op: "mask: AllowFunc", Arg: "f", Got: "nil", Want: "a function"})
	}
	return attn.NewMask(allowFunc(f))
}

type allowFunc func(b, h, i, j int) bool

func (allowFunc) Check(attn.Sizes) error                     { return nil }
func (allowFunc) Keys(s attn.Sizes, _ attn.Row) (lo, hi int) { return 0, s.Lk }
func (allowFunc) Holes() bool                                { return true }

func (f allowFunc) Hide(_ attn.Sizes, at attn.Row, lo, hi int, attended []bool) {
	for j := lo; j < hi; j++ {
		if attended[j] && !f(at.Batch, at.Head, at.Query, j) {
			attended[j] = false
		}
	}
}

// raiseMask panics with a *tensor.ShapeError about the mask.
func raiseMask(op, what string, got []int, want string, args ...any) {
	panic(&tensor.ShapeError{Op: op, Arg: "mask", What: what, Got: got, Want: fmt.Sprintf(want, args...)})
}

// AllowTensor lets a query attend to the keys where m is 1 and hides the keys where it is 0; many
// tutorials use such a mask of numbers. The shape broadcasts as in Allow. m is copied.
// AllowTensor panics with a *tensor.ShapeError if an element is neither 0 nor 1. A mask with −∞,
// which is added to the scores, is a Bias.
func AllowTensor(m *tensor.Tensor) attn.Mask {
	const op = "mask: AllowTensor"
	return attn.NewMask(newAllow(op, zeroOne(op, m), m.Shape()))
}

// zeroOne returns for each element whether it is 1, and panics if it is neither 0 nor 1.
func zeroOne(op string, m *tensor.Tensor) []bool {
	tensor.Want(op, "mask", m)
	seen := make([]bool, m.Len())
	for i, v := range m.Data() {
		if v != 0 && v != 1 {
			index := make([]int, m.Rank())
			for axis := m.Rank() - 1; axis >= 0; axis-- {
				index[axis], i = i%m.Dim(axis), i/m.Dim(axis)
			}
			raiseMask(op, fmt.Sprintf("element %v at", v), index, "0 where a key is hidden and 1 where a query attends to it")
		}
		seen[i] = v == 1
	}
	return seen
}
