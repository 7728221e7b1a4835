package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// KV holds keys and values that MultiHead.Project has mapped, so that they can be asked
// more than once, as cross-attention does. Gradients pass through it. What grows step by
// step is a Cache.
type KV struct {
	keys, values heads
	cache        *Cache // in place of keys and values; nil if there is none
	extra        int    // of the keys are in front of those of the caller
	// rows is which sequence of keys and values each sequence has; nil means its own.
	// Sequences of a beam search share those of their source.
	rows []int
}

// Len returns the number of keys, in each sequence.
func (kv KV) Len() int {
	if kv.cache != nil {
		return kv.cache.longest()
	}
	return kv.keys.length() - kv.extra
}

// sizes returns the number of heads and the sizes of a key and a value.
func (kv KV) sizes() [3]int { return [3]int{kv.keys.count, kv.keys.size, kv.values.size} }

// batches returns the number of sequences.
func (kv KV) batches() int {
	if kv.rows != nil {
		return len(kv.rows)
	}
	return kv.keys.batches()
}

// dense returns the keys and values in tensors, those of each sequence in its place.
func (kv KV) dense(t *tensor.Tape) KV {
	switch {
	case kv.cache != nil:
		k, v := kv.cache.tensors(t)
		return KV{keys: headFirst(k), values: headFirst(v)}
	case kv.rows != nil:
		return KV{keys: kv.keys.chosen(t, kv.rows), values: kv.values.chosen(t, kv.rows), extra: kv.extra}
	}
	return kv
}

// mapped returns keys as a score compares them, and the values.
func (kv KV) mapped(t *tensor.Tape, f Form) KV {
	switch {
	case f.MappedKeys != nil:
		kv = kv.dense(t)
		kv.keys = headFirst(f.MappedKeys)
	case f.Keys != nil:
		if kv.cache != nil {
			kv = kv.dense(t)
		}
		kv.keys = kv.keys.mapped(t, f.Keys)
	}
	return kv
}

// unmappedKeys returns the function that gives the keys to a bias that depends on them.
func (kv KV) unmappedKeys(op string) func(*tensor.Tape) *tensor.Tensor {
	return func(t *tensor.Tape) *tensor.Tensor {
		if kv.cache != nil && kv.cache.keyMap != nil {
			const want = "none, as the cache has keys that its score has mapped"
			badValue(op, "bias", "one that depends on the keys", want)
		}
		k := kv.dense(t).keys.split(t)
		if kv.extra > 0 {
			k = tensor.Slice(t, k, 2, kv.extra, k.Dim(2))
		}
		return k
	}
}

// Select returns the keys and values of the given sequences of the batch, in the given
// order: of the sources of the beginnings that a beam search keeps, say. Without a tape
// that records, they share memory with kv. It panics with a *tensor.ValueError if there is
// no such sequence.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.keys.x == nil {
		return kv
	}
	rows := make([]int, len(sequences))
	for i, b := range sequences {
		if b < 0 || b >= kv.batches() {
			badValue("attn: Select", "sequence", fmt.Sprint(b), fmt.Sprintf("0 to %d", kv.batches()-1))
		}
		if rows[i] = b; kv.rows != nil {
			rows[i] = kv.rows[b]
		}
	}
	if kv.rows = rows; t.Recording() {
		return kv.dense(t)
	}
	return kv
}

// chosen returns the heads of the given sequences.
func (h heads) chosen(t *tensor.Tape, sequences []int) heads {
	if h.x.Rank() == 4 {
		return headFirst(tensor.Gather(t, h.x, sequences))
	}
	x := h.own(t)
	if h.layout == SequenceFirst {
		x = tensor.Transpose(t, tensor.Gather(t, tensor.Transpose(t, x, 1, 0, 2), sequences), 1, 0, 2)
	} else {
		x = tensor.Gather(t, x, sequences)
	}
	return headLast(x, h.layout, 0, h.size, h.count)
}

// Keys to which every query attends, whatever the mask, stand in front of the keys of the
// call: there they have the same place however many keys follow, so that padding changes
// no bits. Sizes, and with them masks, biases and observers, know nothing of them; the
// kernels count them.

// extra returns how many such keys the layer has.
func (c *MultiHeadConfig) extra() int {
	n := 0
	for _, has := range []bool{c.BiasKV, c.ZeroKV} {
		if has {
			n++
		}
	}
	return n
}

// withExtra puts the layer's own key and value, and one of zeros, in front of those of
// each sequence.
func (m *MultiHead) withExtra(t *tensor.Tape, kv KV) KV {
	if n := m.config.extra(); n > 0 {
		return KV{keys: m.behindExtra(t, kv.keys, m.BiasK), values: m.behindExtra(t, kv.values, m.BiasV), extra: n}
	}
	return kv
}

// behindExtra returns heads behind the vector first, unless it is nil, and zeros if the layer has
// ZeroKV.
func (m *MultiHead) behindExtra(t *tensor.Tape, h heads, first *tensor.Tensor) heads {
	x, axis := h.own(t), 1
	if h.layout == SequenceFirst {
		axis = 0
	}
	shape := slices.Clone(x.Shape())
	shape[axis] = 1
	var all []*tensor.Tensor
	if first != nil {
		all = append(all, tensor.BroadcastTo(t, first, shape...))
	}
	if m.config.ZeroKV {
		all = append(all, tensor.Zeros(shape...))
	}
	return headLast(tensor.Concat(t, axis, append(all, x)...), h.layout, 0, h.size, h.count)
}
