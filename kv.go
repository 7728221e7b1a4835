package attn

import "github.com/attn-go/attn/tensor"

// KV holds keys and values that MultiHead.Project has mapped, so that they can be asked
// more than once, as cross-attention does. Gradients pass through it. What grows step by
// step is a Cache.
type KV struct {
	keys, values heads
	cache        *Cache // in place of keys and values; nil if there is none
	extra        int    // of the keys are in front of those of the caller
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

// dense returns the keys and values in tensors.
func (kv KV) dense(t *tensor.Tape) KV {
	if kv.cache == nil {
		return kv
	}
	k, v := kv.cache.tensors(t)
	return KV{keys: headFirst(k), values: headFirst(v)}
}

// mapped returns keys as a score compares them, and the values.
func (kv KV) mapped(t *tensor.Tape, f Form) KV {
	switch {
	case f.MappedKeys != nil:
		kv = kv.dense(t)
		kv.keys = headFirst(f.MappedKeys)
	case f.Keys != nil:
		kv = kv.dense(t)
		kv.keys = kv.keys.mapped(t, f.Keys)
	}
	return kv
}

// unmappedKeys returns the function that gives the keys to a bias that depends on them.
func (kv KV) unmappedKeys(op string) func(*tensor.Tape) *tensor.Tensor {
	return func(t *tensor.Tape) *tensor.Tensor {
		if kv.cache != nil && kv.cache.keyMap != nil {
			panic(&tensor.ValueError{Op: op, Arg: "bias", Got: "one that depends on the keys", Want: "none, as the cache has keys that its score has mapped"})
		}
		k := kv.dense(t).keys.split(t)
		if kv.extra > 0 {
			k = tensor.Slice(t, k, 2, kv.extra, k.Dim(2))
		}
		return k
	}
}

// Select returns the keys and values of the given sequences of the batch, in
// the given order.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.keys.x == nil {
		return kv
	}
	chosen := func(h heads) heads {
		x := h.own(t)
		if h.layout == SequenceFirst {
			x = tensor.Transpose(t, tensor.Gather(t, tensor.Transpose(t, x, 1, 0, 2), sequences), 1, 0, 2)
		} else {
			x = tensor.Gather(t, x, sequences)
		}
		return headLast(x, h.layout, 0, h.size, h.count)
	}
	return KV{keys: chosen(kv.keys), values: chosen(kv.values), extra: kv.extra}
}
