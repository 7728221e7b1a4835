package models

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// encoderDecoder is the frame of all encoder–decoders: a stack of blocks that reads the
// source, and one that writes the target, whose blocks also attend to what the first has
// made of the source.
type encoderDecoder struct {
	source, target *decoder // those of source are not causal
	start          int      // the token with which a target begins
}

// Hidden returns the states of the tokens of x.Targets.
func (e *encoderDecoder) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	m := e.read(t, x, &r)
	y := Batch{IDs: x.Targets}
	if y.IDs == nil {
		y.IDs = slices.Repeat([][]int{{e.start}}, len(x.IDs))
	}
	call := Call{Run: &r, Lens: y.lens(), memory: m}
	return through(t, e.target.embed(t, y, &r), e.target.blocks, e.target.norm, call)
}

// read returns what the decoder attends to of the source.
func (e *encoderDecoder) read(t *tensor.Tape, x Batch, r *Run) *memory {
	cache, _ := r.State.(*Cache)
	if cache != nil && cache.memory != nil {
		wantTargets(x, cache.Lens())
		return cache.memory
	}
	wantTargets(x, nil)
	if cache != nil {
		t = nil // a cache outlives what is made on the tape
	}
	h := e.source.Hidden(t, Batch{IDs: x.IDs}, Run{Observe: r.Observe, Inspect: r.Inspect, States: r.SourceStates, Gates: r.Gates})
	m := &memory{lens: Batch{IDs: x.IDs}.lens()}
	for _, b := range e.target.blocks {
		m.kv = append(m.kv, crossOf(b).Project(t, h, h))
	}
	if cache != nil {
		cache.memory = m
	}
	return m
}

// wantTargets panics with a *tensor.ValueError unless the targets of a batch go with its
// sources, or with those of a state that has read so many tokens of each target.
func wantTargets(x Batch, read []int) {
	bad := func(arg, got, want string) {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: arg, Got: got, Want: want})
	}
	switch n := len(x.Targets); {
	case read != nil && x.IDs != nil:
		bad("source", "given", "nil, as the cache has one")
	case read != nil && n != len(read):
		bad("targets", fmt.Sprintf("%d sequences", n), fmt.Sprintf("%d, as many as the cache has", len(read)))
	case read == nil && n != len(x.IDs) && x.Targets != nil:
		bad("targets", fmt.Sprintf("%d sequences", n), fmt.Sprintf("%d, one for each source", len(x.IDs)))
	}
}

// Attention returns the attention of the encoder, and of each block of the decoder that to
// the target and that to the source.
func (e *encoderDecoder) Attention() []*attn.MultiHead {
	layers := attentionOf(e.source.blocks)
	for _, b := range e.target.blocks {
		layers = append(layers, b.Attention(), crossOf(b))
	}
	return layers
}

func (e *encoderDecoder) Sizes() Sizes {
	z := e.source.sizes
	z.Decoder = &e.target.sizes
	return z
}

func (e *encoderDecoder) Head() *TaskHead { return e.target.Head() }

// StartToken returns the token with which a target begins.
func (e *encoderDecoder) StartToken() int { return e.start }

// memory is what the blocks of a decoder attend to of a source: keys and values that each
// has made of the last states of the encoder.
type memory struct {
	kv   []attn.KV
	lens []int // of the sources, nil if they are equal
}

// choose returns the memory of the given sequences.
func (m *memory) choose(sequences []int) *memory {
	if m == nil {
		return nil
	}
	chosen := new(memory)
	for _, kv := range m.kv {
		chosen.kv = append(chosen.kv, kv.Select(nil, sequences))
	}
	for _, b := range sequences {
		if m.lens != nil {
			chosen.lens = append(chosen.lens, m.lens[b])
		}
	}
	return chosen
}

// attendAcross is attention from x to the source.
func (c Call) attendAcross(t *tensor.Tape, cross *attn.MultiHead, x *tensor.Tensor) *tensor.Tensor {
	o := c.Run.options(attn.Options{}, cross, c.Lens)
	o.KeyLens = c.memory.lens
	return cross.Query(t, x, c.memory.kv[c.Number], o).Out
}

// crossOf returns the attention of a block to the source.
func crossOf(b Block) *attn.MultiHead {
	return b.(interface{ CrossAttention() *attn.MultiHead }).CrossAttention()
}

// crossName is the name of the attention of a decoder's block to the source.
func crossName(block int) string { return fmt.Sprintf("decoder.%d.cross", block) }

// encoderName is the name of the attention of an encoder's block.
func encoderName(block int) string { return fmt.Sprintf("encoder.%d.self", block) }

// startToken returns the setting of the token with which a target begins.
func startToken(s *Settings, usual, vocabulary int) int {
	const key = "decoder_start_token_id"
	id := s.Int(key, usual)
	if id < 0 || id >= vocabulary {
		s.Fail(key, "is %d, want 0 to %d", id, vocabulary-1)
		return 0
	}
	return id
}

// shared returns the embeddings of tokens that are tied under several names, and the map to
// logits that is the same matrix. The file has one of them or more: the first that is there
// counts, and the others must be equal to it.
func (b *Builder) shared(n, width int, names ...string) (words, *nn.Linear) {
	at := max(0, slices.IndexFunc(names, func(name string) bool { return b.Has(name + ".weight") }))
	for i, name := range names {
		if i != at {
			b.Tied(b.Name(name+".weight"), b.Name(names[at]+".weight"))
		}
	}
	return b.Words(names[at], n, width)
}
