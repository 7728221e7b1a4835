package models

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// encoderDecoder is the common structure of all encoder–decoders: an encoder, which reads the
// source, and a decoder, which writes the target and also attends to the encoder's output.
type encoderDecoder struct {
	source, target *stack // source is the encoder, whose attention is not causal
	start          int    // the token with which a target begins
}

// Hidden returns the states of the tokens of x.Targets.
func (e *encoderDecoder) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	r.wantWhole()
	m := e.read(t, x, &r)
	y := Batch{IDs: x.Targets}
	if y.IDs == nil {
		y.IDs = slices.Repeat([][]int{{e.start}}, len(x.IDs))
	}
	return e.target.run(t, y, &r, m)
}

// read runs the encoder and returns the keys and values that the decoder attends to.
func (e *encoderDecoder) read(t *tensor.Tape, x Batch, r *Run) *memory {
	cache, _ := r.State.(*Cache)
	if cache != nil && cache.memory != nil {
		wantTargets(x, cache.Lens())
		return cache.memory
	}
	wantTargets(x, nil)
	if cache != nil { // which must outlive the memory of t
		t = lasting(t)
	}
	h := e.source.Hidden(t, Batch{IDs: x.IDs}, Run{
		Observers: r.Observers, Inspect: r.Inspect, States: r.SourceStates, Gates: r.Gates, Masks: r.Masks, Edits: r.Edits,
		Blocks: r.Blocks,
	})
	m := &memory{lens: Batch{IDs: x.IDs}.lens()}
	for _, b := range e.target.blocks {
		m.kv = append(m.kv, b.cross.Project(t, h, h))
	}
	if cache != nil {
		cache.memory = m
	}
	return m
}

// lasting returns a tape for a state that must outlive the memory of t. It has the context and the format of t.
func lasting(t *tensor.Tape) *tensor.Tape {
	own := tensor.NewTape(tensor.Infer)
	own.SetContext(t.Context())
	own.SetFormat(t.Format())
	return own
}

// wantTargets panics with a *tensor.ValueError unless the targets of a batch match its sources,
// or a state that has already read the given number of tokens of each target.
func wantTargets(x Batch, read []int) {
	bad := func(arg, got, want string) {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: arg, Got: got, Want: want})
	}
	switch n := len(x.Targets); {
	case read != nil && x.IDs != nil:
		bad("source", "given", "nil: the cache stores the source")
	case read != nil && n != len(read):
		bad("targets", fmt.Sprintf("%d sequences", n), fmt.Sprintf("%d, one for each sequence of the cache", len(read)))
	case read == nil && n != len(x.IDs) && x.Targets != nil:
		bad("targets", fmt.Sprintf("%d sequences", n), fmt.Sprintf("%d, one for each source", len(x.IDs)))
	}
}

// Attention returns the attention layers of the encoder, then self-attention and cross-attention
// of each block of the decoder.
func (e *encoderDecoder) Attention() []*attn.MultiHead {
	layers := e.source.Attention()
	for _, b := range e.target.blocks {
		layers = append(layers, b.self, b.cross)
	}
	return layers
}

func (e *encoderDecoder) Sizes() Sizes {
	z := e.source.sizes
	z.Decoder = &e.target.sizes
	return z
}

func (e *encoderDecoder) Head() *TaskHead { return e.target.Head() }

func (e *encoderDecoder) FinalNorm() Layer { return e.target.norm }

// StartToken returns the first token of a target.
func (e *encoderDecoder) StartToken() int { return e.start }

// memory is the keys and values of a source for each block of a decoder, computed from the last
// states of the encoder.
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

// token returns a setting that is a token of a vocabulary of the given size.
func (s *Settings) token(key string, usual, vocabulary int) int {
	id := s.Int(key, usual)
	if id < 0 || id >= vocabulary {
		s.Fail(key, "is %d, want 0 to %d", id, vocabulary-1)
		return 0
	}
	return id
}

// shared returns token embeddings that are tied under several names, and the map to logits, which
// is the same matrix. The file contains at least one of them; the first one found is used, and
// the others must be equal to it.
func (b *Builder) shared(n, width int, names ...string) (words, *nn.Linear) {
	at := max(0, slices.IndexFunc(names, func(name string) bool { return b.Has(name + ".weight") }))
	for i, name := range names {
		if i != at {
			b.Tied(b.Name(name+".weight"), b.Name(names[at]+".weight"))
		}
	}
	return b.Words(names[at], n, width)
}
