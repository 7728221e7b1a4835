package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// KV contains keys and values that MultiHead.Project has mapped. Several calls can attend to the
// same KV, as in cross-attention. Gradients pass through it. For keys and values that grow step
// by step, use a Cache.
type KV struct {
	keys, values heads
	cache        *Cache // instead of keys and values; may be nil
	extra        int    // number of extra keys in front of the caller's keys
	// rows[b] is the sequence of keys and values that sequence b reads; nil means b. Several
	// sequences of a beam search can read the same source.
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
	switch {
	case kv.cache != nil:
		return len(kv.cache.seqs)
	case kv.rows != nil:
		return len(kv.rows)
	}
	return kv.keys.batches()
}

// dense returns the keys and values as tensors that contain each sequence in its place.
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

// mapped returns the keys as the score maps them, with the values unchanged.
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

// unmappedKeys returns a function that returns the keys for a bias that depends on them.
func (kv KV) unmappedKeys(op string) func(*tensor.Tape) *tensor.Tensor {
	return func(t *tensor.Tape) *tensor.Tensor {
		if kv.cache != nil && kv.cache.keyMap != nil {
			const want = "none: the cache stores keys that its score has mapped"
			badValue(op, "bias", "one that depends on the keys", want)
		}
		k := kv.dense(t).keys.split(t)
		if kv.extra > 0 {
			k = tensor.Slice(t, k, 2, kv.extra, k.Dim(2))
		}
		return k
	}
}

// Select returns the keys and values of the given sequences of the batch, in the given order, for
// example for the hypotheses that a beam search keeps. Without a recording tape, the result
// shares memory with kv. Select panics with a *tensor.ValueError if a sequence does not exist.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.cache != nil {
		return kv.cache.Select(sequences).KV()
	}
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

// Extra keys are keys that every query attends to, whatever the mask. They are stored in front of
// the keys of the call: their place does not depend on the number of other keys, so padding
// changes no bits. Sizes does not count them, so masks, biases and observers do not see them;
// only the kernels count them.

// extra returns the number of extra keys of the layer.
func (c *MultiHeadConfig) extra() int {
	n := 0
	for _, has := range []bool{c.BiasKV, c.ZeroKV} {
		if has {
			n++
		}
	}
	return n
}

// withExtra puts the layer's key and value, and a key and value of zeros, in front of those of
// each sequence.
func (m *MultiHead) withExtra(t *tensor.Tape, kv KV) KV {
	if n := m.config.extra(); n > 0 {
		return KV{keys: m.behindExtra(t, kv.keys, m.BiasK), values: m.behindExtra(t, kv.values, m.BiasV), extra: n}
	}
	return kv
}

// behindExtra returns the heads after the vector first, unless it is nil, and after zeros if the
// layer has ZeroKV.
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
