package models

import (
	"cmp"
	"maps"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/position"
)

// newRotation returns the settings of rotary positions that are the same in all blocks. The scaling of frequencies is
// in rope_parameters (transformers 5 and later), in rope_scaling beside rope_theta (earlier versions), or absent. theta
// is the default base.
func newRotation(s *Settings, z Sizes, theta float64) rotation {
	return rotation{all: s, scaling: ropeScaling(s), theta: s.base("rope_theta", theta), sizes: z}
}

// twoRopes returns the rotary positions of layers with full attention and of layers with a sliding window, and the number
// of tokens that they support. wide has the heads of layers with full attention. fullBase and localBase are the bases according to settings of earlier versions. transformers
// ignores settings for all layers in rope_parameters, and saves them again.
func twoRopes(b *Builder, wide, z Sizes, fullBase, localBase float64) (full, local attn.Position, tokens int) {
	s := b.Config
	f := rotation{all: s, scaling: ropeScaling(s), theta: fullBase, sizes: wide}
	if older := s.Part("rope_scaling"); older != nil { // transformers 5 takes another kind than that of type, which 4 uses
		older.Only("type", older.Text("rope_type", "default"))
	}
	l := rotation{all: s, theta: localBase, sizes: z}
	if newer := s.Part("rope_parameters"); newer != nil {
		if f.scaling, l.scaling = newer.Part("full_attention"), newer.Part("sliding_attention"); f.scaling == nil && l.scaling == nil {
			newer.Only("rope_type", "default")
			newer.Only("rope_theta", fullBase)
		}
		newer.Ignore(slices.Collect(maps.Keys(newer.values))...)
	}
	full, tokens = f.position(b.tokens)
	local, most := l.position(b.tokens)
	return full, local, min(tokens, most)
}

// ropeScaling returns the settings of rope_parameters or rope_scaling, nil if there are none.
func ropeScaling(s *Settings) *Settings {
	if s.Has("rope_scaling") && s.Has("rope_parameters") {
		s.Fail("rope_scaling", "and rope_parameters are both set, want one of them")
	}
	return cmp.Or(s.Part("rope_parameters"), s.Part("rope_scaling"))
}

// rotation is the settings of rotary positions.
type rotation struct {
	all     *Settings // of the model
	scaling *Settings // of the frequencies, nil if there are none
	theta   float64   // the base, unless scaling sets one
	pairs   position.Pairing
	partial bool   // a part of each head may be rotated
	usual   string // the earlier name of the setting of that part, whose default is then 1/4
	before  int    // default of original_max_position_embeddings; 0: scaling may have it
	// scaled, if not nil, returns the scaling for a number of tokens, in place of that of rope_type.
	scaled func(tokens int) position.RoPEScaling
	sizes  Sizes // of the model; Positions is the number in training
}

// position returns the positions and the number of tokens that they support: longest, or the
// model's own limit if longest is 0.
func (r *rotation) position(longest int) (attn.Position, int) {
	trained := r.sizes.Positions
	c := position.RoPEConfig{Base: r.theta, Pairs: r.pairs}
	tokens := cmp.Or(longest, trained)
	if s := r.scaling; s != nil {
		c.Base = s.base("rope_theta", r.theta)
		if r.scaled == nil {
			c.Scaling, tokens = r.frequencies(trained, longest, tokens)
		}
	}
	if r.scaled != nil {
		c.Scaling = r.scaled(tokens)
	}
	if share := r.share(); share != 1 {
		c.Size = int(share * float64(r.sizes.HeadSize))
	}
	p, err := position.NewRoPE(c)
	if err == nil {
		err = p.Check(r.sizes.HeadSize)
	}
	if err != nil {
		cmp.Or(r.scaling, r.all).fail("is invalid for heads of size %d: %w", r.sizes.HeadSize, err)
		return new(position.RoPE), tokens
	}
	return p, tokens
}

// share returns the part of the elements of a head that are rotated.
func (r *rotation) share() float64 {
	key, from, x := "partial_rotary_factor", r.all, 1.
	if s := r.scaling; s != nil && s.Text("rope_type", "") == "proportional" { // frequencies has it
		return x
	}
	if !r.partial {
		from.Only(key, 1)
		if r.scaling != nil {
			r.scaling.Only(key, 1)
		}
		return 1
	}
	switch x = from.Float(key, x); {
	case r.scaling != nil && r.scaling.Has(key):
		from, x = r.scaling, r.scaling.Float(key, 1)
	case r.usual != "":
		key, x = r.usual, from.Float(r.usual, 0.25)
	}
	if n := int(x * float64(r.sizes.HeadSize)); !(x > 0 && x <= 1) || n < 2 || n%2 != 0 {
		from.Fail(key, "is %v, want more than 0, at most 1, and an even number of the %d elements of a head", x, r.sizes.HeadSize)
		return 1
	}
	return x
}

// frequencies returns the scaling of the frequencies and the number of tokens that it supports.
func (r *rotation) frequencies(trained, longest, tokens int) (position.RoPEScaling, int) {
	s := r.scaling
	kind := s.Text("rope_type", s.Text("type", "default"))
	switch s.Ignore("type"); kind {
	case "default":
		return nil, tokens
	case "linear":
		return position.ScaleLinear(r.factor()), tokens
	case "proportional":
		s.Only("factor", 1)
		return position.ScaleProportional(s.Float("partial_rotary_factor", 1)), tokens
	case "dynamic":
		// In transformers, the base grows with sequences longer than in training. Cached keys
		// keep their angles, so here the base is that of the longest sequence from the first
		// token on.
		return position.ScaleNTK(r.factor(), trained, tokens), tokens
	case "llama3":
		return position.ScaleLlama3(r.factor(), s.Float("low_freq_factor", 0), s.Float("high_freq_factor", 0), r.original(trained)), tokens
	case "yarn":
		original := r.original(trained)
		return position.ScaleYaRN(position.YaRN{
			Factor:       s.Float("factor", float64(trained)/float64(original)),
			Trained:      original,
			Fast:         s.Float("beta_fast", 0),
			Slow:         s.Float("beta_slow", 0),
			Attention:    get[*float64](s, "attention_factor", "a number", nil),
			MScale:       s.Float("mscale", 0),
			MScaleAllDim: s.Float("mscale_all_dim", 0),
			Exact:        !s.Bool("truncate", true),
		}), tokens
	case "longrope":
		// There are two lists of factors: for sequences up to the original training length, and
		// for longer ones. Cached keys have been rotated with one of them, so the choice is
		// fixed: the first list, unless Options.Tokens exceeds that length.
		original := r.original(trained)
		if longest == 0 {
			tokens = original
		}
		return position.ScaleLongRoPE(position.LongRoPE{
			Short:     s.Floats("short_factor"),
			Long:      s.Floats("long_factor"),
			Trained:   original,
			Length:    tokens,
			Factor:    s.Float("factor", float64(trained)/float64(original)),
			Attention: get[*float64](s, "attention_factor", "a number", nil),
		}), tokens
	}
	s.Fail("rope_type", "is %s, want default, linear, dynamic, llama3, yarn, longrope or proportional", quote.Text(kind))
	return nil, tokens
}

// factor returns the factor of scalings that have no default.
func (r *rotation) factor() float64 {
	x := r.scaling.Float("factor", 1)
	switch {
	case !r.scaling.Has("factor"):
		r.scaling.Fail("factor", "is missing, want at least 1")
	case x < 1:
		r.scaling.Fail("factor", "is %v, want at least 1", x)
	}
	return x
}

// base returns the base of the frequencies. It is never 0, which RoPEConfig would replace.
func (s *Settings) base(key string, usual float64) float64 {
	x := s.Float(key, usual)
	if !(x > 1) {
		s.Fail(key, "is %v, want more than 1", x)
		return usual
	}
	return x
}

// original returns the number of positions in training, before scaling.
func (r *rotation) original(trained int) int {
	const key = "original_max_position_embeddings"
	if r.before > 0 || r.all.Has(key) { // which then takes precedence
		r.scaling.Ignore(key)
		return r.all.SizeOr(key, cmp.Or(r.before, trained))
	}
	return r.scaling.SizeOr(key, trained)
}
