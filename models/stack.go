package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// stack is a transformer: embeddings, blocks, a final norm and a head. In a decoder, attention is
// causal. Each family sets the fields; parts that it lacks are nil or zero. An encoder–decoder
// has two stacks.
type stack struct {
	sizes     Sizes
	words     words
	scale     float32       // of the token embeddings, 0 means 1
	types     *nn.Embedding // of token types
	positions words         // nil if the blocks have their own
	counting                // of positions
	wordsNorm Layer         // of the sum of the embeddings
	dropout   float32       // of the embeddings, in training
	blocks    []*block
	norm      Layer
	head      *TaskHead
	logits    *nn.Linear     // in place of head, the map to the logits of the next token
	shrink    float32        // of the states for logits, 0 means 1
	shift     *tensor.Tensor // [1 V], added to the logits
	softCap   float32        // of the logits, 0 means none
	tokens    tail           // of late interaction: from hidden states to vectors
	// inputs, if not nil, returns further embeddings [B L N] for the ends of blocks. h are those of embed.
	inputs func(t *tensor.Tape, ids []int, h *tensor.Tensor) *tensor.Tensor
}

func (s *stack) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	if r.State != nil && !s.sizes.Causal {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "cache", Got: "given", Want: "nil: the layers of an encoder are not causal"})
	}
	return inParts(t, x, &r, s.sizes.Width, func(t *tensor.Tape, x Batch) *tensor.Tensor { return s.run(t, x, &r, nil) })
}

// run computes Hidden for the whole batch at once. m is the source that the blocks attend to.
// States between the blocks are passed to the Run's callback.
func (s *stack) run(t *tensor.Tape, batch Batch, r *Run, m *memory) *tensor.Tensor {
	lens := batch.lens()
	own := *r
	own.keys, own.shared, r = batch.attended, map[*block]attn.KV{}, &own
	x, to := r.Input, len(s.blocks)
	if r.To != 0 {
		to = r.To
	}
	if r.part() {
		s.wantBegin(batch, r)
	}
	if x == nil {
		x = s.embed(t, batch, r)
	}
	if s.inputs != nil {
		r.inputs = s.inputs(t, batch.ids(), x)
	}
	r.state(r.From, x)
	begin := t.Mark()
	var h *tensor.Tensor // the norm of x that the next block needs, or nil
	for i := r.From; i < to; i++ {
		b, e := s.blocks[i], r.block(s.blockName(i))
		x, r.now = edited(t, e.Input, x), e
		if r.States != nil { // the callback may keep x
			begin = t.Mark()
		}
		switch last := i == len(s.blocks)-1; {
		case b.end != nil || last && b.postNorm || r.Blocks != nil || r.To != 0:
			if x, _ = b.forward(t, x, h, r, i, lens, m, nil); b.end != nil {
				x = b.end(t, x, r)
			}
			if last && r.To == 0 {
				x = optional(t, s.norm, edited(t, r.block(s.blockName(i+1)).Input, x))
			}
		case last && s.norm != nil:
			_, x = b.forward(t, x, h, r, i, lens, m, s.norm)
		case t.Recording() && !last:
			x, h = b.forward(t, x, h, r, i, lens, m, s.blocks[i+1].input())
		default: // Release keeps only x
			x, _ = b.forward(t, x, nil, r, i, lens, m, nil)
		}
		if r.Inspect == nil { // and no callback has received internal tensors
			x = t.Release(begin, x)
		}
		r.state(i+1, x)
	}
	return x
}

// blockName is the name of a block.
func (s *stack) blockName(number int) string {
	if s.sizes.Causal {
		return fmt.Sprintf("decoder.%d", number)
	}
	return fmt.Sprintf("encoder.%d", number)
}

// wantBegin panics unless a run can begin and end where r says.
func (s *stack) wantBegin(x Batch, r *Run) {
	bad := func(got, want string) {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "run", Got: got, Want: want})
	}
	if !Resumes(s) {
		r.wantWhole()
	}
	switch n := len(s.blocks); {
	case r.From < 0 || r.From >= n || r.To < 0 || r.To > n || r.To != 0 && r.To <= r.From:
		bad(fmt.Sprintf("from block %d to %d", r.From, r.To), fmt.Sprintf("a part of blocks 0 to %d", n))
	case r.Input == nil && r.From > 0:
		bad(fmt.Sprintf("from block %d without Input", r.From), "Input, which the block reads")
	case r.Input != nil:
		if err := tensor.CheckShape("input", r.Input, "[B L D]", len(x.IDs), x.longest(), s.sizes.Width); err != nil {
			panic(err)
		}
	}
}

// embed returns the sum of the embeddings.
func (s *stack) embed(t *tensor.Tape, x Batch, r *Run) *tensor.Tensor {
	b, l := len(x.IDs), x.longest()
	before := make([]int, b) // tokens of each sequence read in earlier runs
	if r.State != nil {
		before = r.State.Lens()
	}
	for i, ids := range x.IDs {
		if n := before[i] + len(ids); s.sizes.Positions > 0 && n > s.sizes.Positions {
			panic(&tensor.ShapeError{
				Op: "models: Hidden", Arg: fmt.Sprintf("sequence %d", i), What: "number of tokens", Got: []int{n},
				Want: fmt.Sprintf("at most %d", s.sizes.Positions),
			})
		}
	}
	h := s.sum(t, x, before, b, l)
	return tensor.Dropout(t, optional(t, s.wordsNorm, h), s.dropout)
}

// places returns the positions of the tokens of all sequences, padded like Batch.ids.
func (s *stack) places(x Batch, before []int, l int) []int {
	all := make([]int, len(x.IDs)*l)
	for i, ids := range x.IDs {
		copy(all[i*l:], s.of(ids, before[i]))
	}
	return all
}

// sum returns the sum of the embeddings before their norm. before is the number of tokens of each sequence that were
// read in earlier runs.
func (s *stack) sum(t *tensor.Tape, x Batch, before []int, b, l int) *tensor.Tensor {
	words, table := s.words.(*nn.Embedding)
	positions, learned := s.positions.(*nn.Embedding)
	if table && learned && s.scale == 0 { // in one pass
		tables, ids := []*nn.Embedding{words}, [][]int{x.ids()}
		if s.types != nil {
			tables, ids = append(tables, s.types), append(ids, x.types())
		}
		return nn.EmbeddingSum(t, append(tables, positions), append(ids, s.places(x, before, l)), b, l)
	}
	h := s.words.Forward(t, x.ids(), b, l)
	if s.scale != 0 {
		h = tensor.Scale(t, h, s.scale)
	}
	if s.types != nil {
		h = tensor.Add(t, h, s.types.Forward(t, x.types(), b, l))
	}
	if s.positions != nil {
		h = tensor.Add(t, h, s.positions.Forward(t, s.places(x, before, l), b, l))
	}
	return h
}

func (s *stack) Attention() []*attn.MultiHead {
	var layers []*attn.MultiHead
	for _, b := range s.blocks {
		if b.self != nil {
			layers = append(layers, b.self)
		}
	}
	return layers
}

func (s *stack) Sizes() Sizes { return s.sizes }

func (s *stack) FinalNorm() Layer { return s.norm }

// kinds returns the kinds of the blocks, nil if all are attention.
func (s *stack) kinds() []string {
	all, hybrid := make([]string, len(s.blocks)), false
	for i, b := range s.blocks {
		all[i] = "attention"
		if b.mixer != nil {
			all[i], hybrid = b.mixer.kind(), true
			if b.self != nil {
				all[i] += " beside attention"
			}
		}
	}
	if !hybrid {
		return nil
	}
	return all
}

// NewLayerCache returns the cache of a block, with no part if another block has its keys and values. It keeps no more keys
// than the block's window.
func (s *stack) NewLayerCache(block, batch int, c attn.CacheConfig) (LayerCache, error) {
	b := s.blocks[block]
	if b.from != nil {
		return caches{}, nil
	}
	var all caches
	if b.self != nil {
		own := c
		if c.Window == 0 && b.window > 1 {
			own.Window = b.window - 1 // without the query's own key
		}
		one, err := keysAndValues(b.self.NewCache(batch, own))
		if err != nil || b.mixer == nil {
			return one, err
		}
		all = caches{one}
	}
	one, err := b.mixer.newCache(batch, c)
	if err != nil || all == nil {
		return one, err
	}
	return append(all, one), nil
}

// Head returns the head, nil for a bare model.
func (s *stack) Head() *TaskHead {
	if s.logits == nil {
		return s.head
	}
	return &TaskHead{Task: NextWord, Layer: wordLogits{s.logits, s.shift, s.shrink, s.softCap}}
}

// wordLogits is the map of a decoder from hidden states to logits of tokens.
type wordLogits struct {
	words           Layer
	shift           *tensor.Tensor // [V], nil for none
	shrink, softCap float32        // 0 for none
}

// Forward returns softCap·tanh((words(shrink·hidden) + shift) / softCap).
func (l wordLogits) Forward(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
	if l.shrink != 0 {
		hidden = tensor.Scale(t, hidden, l.shrink)
	}
	y := l.words.Forward(t, hidden)
	if l.shift != nil {
		y = tensor.Add(t, y, tensor.Reshape(t, l.shift, 1, 1, -1))
	}
	if l.softCap == 0 {
		return y
	}
	return tensor.Scale(t, tensor.Tanh(t, tensor.Scale(t, y, 1/l.softCap)), l.softCap)
}

// makeLogits adds the map to logits, of the given name, unless it is tied to the embeddings, whose full
// name is given: the stack then has it already. The files of a bare model, such as many
// text-embedding models, have no map to logits. Those of a classifier of texts have score, which reads
// the state of the last token; pad is the family's pad_token_id if the settings have none.
func (s *stack) makeLogits(b *Builder, name string, tied bool, embeddings string, pad ...int) {
	switch {
	case b.Has("score.weight"):
		labels := b.Config.Labels()
		b.wantClass("SequenceClassification")
		s.logits = nil
		s.head = &TaskHead{
			Task: TextClasses, Labels: labels, Layer: b.Matrix("score", s.sizes.Width, len(labels)),
			Pool: pooling("lasttoken"), Padding: padding(b.Config, pad),
		}
	case tied:
		b.Tied(b.Name(name+".weight"), embeddings)
	case b.bare() && !b.Has(name+".weight"):
		s.logits = nil
	default:
		s.logits = b.Matrix(name, s.sizes.Width, s.sizes.Vocabulary)
	}
}

// padding returns the pad_token_id of a decoder, or nothing: null means that there is none.
func padding(s *Settings, usual []int) []int {
	switch {
	case s.null("pad_token_id"):
		return nil
	case s.Has("pad_token_id"):
		return []int{s.Int("pad_token_id", 0)}
	}
	return usual
}

// bothWays rejects settings that add causal attention or cross-attention to an encoder.
func bothWays(s *Settings, positions ...any) {
	s.off("is_decoder", "is_causal", "is_encoder_decoder")
	noCross(s)
	s.Only("position_embedding_type", append(positions, "absolute")...)
	if s.null("position_embedding_type") { // some versions of transformers then add no positions
		s.Fail("position_embedding_type", "is null, want \"absolute\" or none")
	}
}

// oneWay rejects settings that add an encoder or cross-attention to a decoder.
func oneWay(s *Settings) {
	s.Ignore("is_decoder", "pad_token_id")
	s.Only("is_causal", true)
	s.off("is_encoder_decoder")
	noCross(s)
}

// twoStacks rejects settings that turn an encoder–decoder into something else.
func twoStacks(s *Settings) {
	s.Only("is_encoder_decoder", true)
	s.off("is_decoder")
	noCross(s)
}

// noCross rejects settings that add cross-attention.
func noCross(s *Settings) {
	s.off("add_cross_attention", "tie_encoder_decoder")
	s.Only("cross_attention_hidden_size")
}

// encoderName is the name of the attention of an encoder's block.
func encoderName(block int) string { return fmt.Sprintf("encoder.%d.self", block) }

// decoderName is the name of the attention of a decoder's block.
func decoderName(block int) string { return fmt.Sprintf("decoder.%d.self", block) }

// crossName is the name of the cross-attention of a decoder's block.
func crossName(block int) string { return fmt.Sprintf("decoder.%d.cross", block) }

// encoderMask lets a query attend to as many keys on either side: window keys in total, an odd number, unless it is 0.
func encoderMask(window int) attn.Mask {
	if window > 0 {
		return mask.Window(window/2, window/2)
	}
	return attn.Mask{}
}

// oddWindow returns the total number of keys for half a window on each side, and 0 for 0.
func oddWindow(window int) int {
	if window == 0 {
		return 0
	}
	return window/2*2 + 1
}

// decoderMask lets a query attend to itself and the keys before it: at most window keys in total,
// unless window is 0.
func decoderMask(window int) attn.Mask {
	if window > 0 {
		return mask.Window(window-1, 0)
	}
	return mask.Causal()
}
