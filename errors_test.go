package attn_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// shaped returns a tensor of zeros: only its shape matters.
func shaped(shape ...int) *tensor.Tensor { return tensor.Zeros(shape...) }

func TestAttendErrors(t *testing.T) {
	// A valid call; each case makes one argument invalid.
	type args struct {
		q, k, v *tensor.Tensor
		o       attn.Options
	}
	good := func() args {
		return args{shaped(2, 6, 5, 8), shaped(2, 3, 7, 8), shaped(2, 3, 7, 11), attn.Options{}}
	}
	flat := func() args {
		return args{shaped(2, 5, 8), shaped(2, 7, 8), shaped(2, 7, 11), attn.Options{}}
	}
	masked := func(m attn.Mask) func(*args) { return func(a *args) { a.o.Mask = m } }
	scored := func(s attn.Score) func(*args) { return func(a *args) { a.o.Score = s } }
	rng := newRand(1)
	for _, c := range []struct {
		name  string
		from  func() args
		spoil func(*args)
		want  string
	}{
		{"query's rank", good, func(a *args) { a.q = shaped(5, 8) }, `attn: Attend: query has shape \[5 8\], want \[B H Lq E\] or \[B Lq E\]`},
		{"key's rank", good, func(a *args) { a.k = shaped(2, 7, 8) }, `attn: Attend: key has shape \[2 7 8\], want \[B=2 G Lk E\]`},
		{"key's rank, three axes", flat, func(a *args) { a.k = shaped(2, 1, 7, 8) }, `attn: Attend: key has shape \[2 1 7 8\], want \[B L E\], three axes as in the query`},
		{"key's batch", good, func(a *args) { a.k = shaped(3, 3, 7, 8) }, `attn: Attend: key has shape \[3 3 7 8\], want \[B=2 G Lk E\]`},
		{"key's heads", good, func(a *args) { a.k = shaped(2, 4, 7, 8) }, `attn: Attend: key has shape \[2 4 7 8\], want \[B=2 G Lk E\] with G a divisor of H=6`},
		{"no key heads", good, func(a *args) { a.k = shaped(2, 0, 7, 8) }, `key has shape \[2 0 7 8\], want .* with G a divisor of H=6`},
		{"key's size", good, func(a *args) { a.k = shaped(2, 3, 7, 16) }, `attn: Attend: key has head size 16, want E=8`},
		{"value's heads", good, func(a *args) { a.v = shaped(2, 6, 7, 11) }, `attn: Attend: value has shape \[2 6 7 11\], want \[B=2 G=3 Lk=7 V\]`},
		{"value's length", good, func(a *args) { a.v = shaped(2, 3, 6, 11) }, `attn: Attend: value has shape \[2 3 6 11\], want \[B=2 G=3 Lk=7 V\]`},
		{"value's rank, three axes", flat, func(a *args) { a.v = shaped(2, 7) }, `attn: Attend: value has shape \[2 7\], want \[B L E\], three axes as in the query`},

		{"bias", good, func(a *args) { a.o.Bias = shaped(3, 5, 7) }, `attn: Attend: bias has shape \[3 5 7\], want a shape that broadcasts to \[B=2 H=6 Lq=5 Lk=7\]`},
		{"bias, three axes", flat, func(a *args) { a.o.Bias = shaped(2, 1, 5, 7) }, `attn: Attend: bias has shape \[2 1 5 7\], want a shape that broadcasts to \[B=2 Lq=5 Lk=7\]`},

		{"gates", good, func(a *args) { a.o.Gates = shaped(5) }, `attn: Attend: gates has shape \[5\], want \[H=6\] or \[B=2 H=6\]`},
		{"gates of sequences", good, func(a *args) { a.o.Gates = shaped(3, 6) }, `attn: Attend: gates has shape \[3 6\], want \[H=6\] or \[B=2 H=6\]`},
		{"gates, one number", good, func(a *args) { a.o.Gates = shaped() }, `attn: Attend: gates has shape \[\], want \[H=6\] or \[B=2 H=6\]`},

		{"number of valid lengths", good, masked(mask.Lengths(3, 2, 1)), `attn: Attend: mask has 3 valid lengths, want one for each of B=2 sequences`},
		{"length too long", good, masked(mask.Lengths(3, 8)), `attn: Attend: mask has valid length 8, want 0 to Lk=7`},
		{"length negative", good, masked(mask.Lengths(3, -1)), `attn: Attend: mask has valid length -1, want 0 to Lk=7`},
		{"rows of valid lengths", good, masked(mask.LengthsOfQueries([][]int{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}})), `mask has 5 rows of valid lengths, want one for each of B=2 sequences`},
		{"ragged valid lengths", good, masked(mask.LengthsOfQueries([][]int{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}})), `mask has 6 valid lengths, want one for each of Lq=5 queries`},
		{"length in a row", good, masked(mask.LengthsOfQueries([][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 8}})), `mask has valid length 8, want 0 to Lk=7`},
		{"offsets", good, masked(mask.CausalAt(1, 2, 3)), `attn: Attend: mask has 3 offsets, want one, or one for each of B=2 sequences`},
		{"no offsets", good, masked(mask.WindowAt(1, 2)), `attn: Attend: mask has 0 offsets, want one, or one for each of B=2 sequences`},
		{"mask", good, masked(mask.Allow(make([]bool, 14), 2, 7)), `attn: Attend: mask has shape \[2 7\], want a shape that broadcasts to \[B=2 H=6 Lq=5 Lk=7\]`},
		{"mask, three axes", flat, masked(mask.Allow(make([]bool, 70), 2, 1, 5, 7)), `attn: Attend: mask has shape \[2 1 5 7\], want a shape that broadcasts to \[B=2 Lq=5 Lk=7\]`},
		{"mask, sequence first", good, masked(mask.AllowSequenceFirst(make([]bool, 10), 5, 1, 2)), `attn: Attend: mask has shape \[5 1 2\], want \[Lq=5 Lk=7 B=2\], where Lq and B may be 1`},
		{"one of several masks", good, masked(attn.And(mask.Causal(), attn.And(mask.Lengths(9, 9)))), `mask has valid length 9, want 0 to Lk=7`},

		{"bilinear's query", good, scored(score.NewBilinear(9, 8, rng)), `attn: Attend: query has head size 8, want E=9`},
		{"bilinear's key", good, scored(score.NewBilinear(8, 9, rng)), `attn: Attend: key has head size 8, want E=9`},
		{"additive's query", good, scored(score.NewAdditive(9, 8, 4, rng)), `attn: Attend: query has head size 8, want E=9`},
		{"additive's key", good, scored(score.NewAdditive(8, 9, 4, rng)), `attn: Attend: key has head size 8, want E=9`},
		{"additive's key, done before", good, scored(score.OnKeys(nil, score.NewAdditive(8, 8, 4, rng), shaped(3, 3, 7, 8))), `attn: Attend: key of the score has shape \[3 3 7 4\], want \[B=2 G=3 Lk=7 4\]`},
		{"Gaussian's key", good, func(a *args) { a.o.Score, a.k = &score.Gaussian{}, shaped(2, 3, 7, 9) }, `attn: Attend: key has head size 9, want E=8`},
		{"Gaussian's w", good, scored(&score.Gaussian{W: shaped(3)}), `attn: Attend: w of the Gaussian score has shape \[3\], want \[1\] or \[E=8\]`},
		{"L1's w", good, scored(&score.L1{W: shaped(3)}), `attn: Attend: w of the L1 score has shape \[3\], want \[1\] or \[E=8\]`},
		{"cosine's key", good, func(a *args) { a.o.Score, a.k = &score.Cosine{}, shaped(2, 3, 7, 9) }, `attn: Attend: key has head size 9, want E=8`},
		{"cosine's scale", good, scored(&score.Cosine{Scale: shaped(6, 1, 1)}), `attn: Attend: scale of the cosine score has shape \[6 1 1\], want one element`},
		{"own score", good, scored(score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor { return q })), `attn: Attend: score's result has shape \[2 6 5 8\], want \[2 6 5 7\]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.from()
			attn.Attend(nil, a.q, a.k, a.v, a.o) // without changes, the call is valid
			c.spoil(&a)
			wantError(t, tensor.Catch(func() { attn.Attend(nil, a.q, a.k, a.v, a.o) }), c.want)
		})
	}
}

// A nil argument or an option out of range is rejected on every path, in training and in
// inference, even if it would have no effect.
func TestValueErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	const zeroMultiHead = `attn: MultiHead: layer is nil or the zero MultiHead, want a layer from NewMultiHead`
	type options func(o *attn.Options)
	dropout := func(p float32) options { return func(o *attn.Options) { o.Dropout = p } }
	softCap := func(cap float32) options { return func(o *attn.Options) { o.SoftCap = cap } }
	for _, c := range []struct {
		spoil options
		want  string
	}{
		{dropout(1), `dropout is 1, want a probability in \[0, 1\)`},
		{dropout(1.5), `dropout is 1.5, want .*`},
		{dropout(-0.5), `dropout is -0.5, want .*`},
		{dropout(nan), `dropout is NaN, want .*`},
		{softCap(inf), `soft-cap is \+Inf, want a positive finite number, or 0 for none`},
		{softCap(nan), `soft-cap is NaN, want .*`},
		{softCap(-3), `soft-cap is -3, want .*`},
		{softCap(1e-40), `soft-cap is 1e-40, want .*`},
		{func(o *attn.Options) { o.Gates = shaped(4) }, `gates has shape \[4\], want .*`},
		{func(o *attn.Options) { o.Bias = shaped(4) }, `bias has shape \[4\], want .*`},
		{func(o *attn.Options) { o.Mask = mask.Lengths(9, 9) }, `mask has valid length 9, want .*`},
	} {
		for _, tape := range []*tensor.Tape{nil, tensortest.Tape(tensor.Infer), tensortest.Tape(tensor.Eval), tensortest.Tape(tensor.Train)} {
			for _, inner := range []attn.Score{nil, &score.Gaussian{}, &score.Cosine{}, score.Func(ownScore)} {
				o := attn.Options{Score: inner}
				c.spoil(&o)
				q, x := shaped(2, 3, 5, 7), shaped(2, 5, 12)
				wantError(t, tensor.Catch(func() { attn.Attend(tape, q, q, q, o) }), `attn: Attend: `+c.want)
				for _, heads := range []int{3, attn.NoHeads} {
					m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: heads})
					wantError(t, tensor.Catch(func() { m.Forward(tape, x, x, x, o) }), `attn: MultiHead: `+c.want)
					wantError(t, tensor.Catch(func() { m.Query(tape, x, m.Project(tape, x, x), o) }), `attn: MultiHead: `+c.want)
					if !tape.Recording() {
						cache := mustCache(t, m, 2, attn.CacheConfig{})
						wantError(t, tensor.Catch(func() { m.Extend(tape, x, cache, o) }), `attn: MultiHead: `+c.want)
						if cache.Len(0) != 0 {
							t.Error("a step that was refused has added keys")
						}
					}
				}
			}
		}
	}

	x, m := shaped(2, 5, 12), mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	kv, o := m.Project(nil, x, x), attn.Options{}
	with := func(s attn.Score) func() {
		return func() { attn.Attend(nil, x, x, x, attn.Options{Score: s}) }
	}
	unbuilt := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, KeyWidth: attn.Infer})
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { attn.Attend(nil, nil, x, x, o) }, `attn: Attend: query is nil, want a tensor`},
		{func() { attn.Attend(nil, x, nil, x, o) }, `attn: Attend: key is nil, want a tensor`},
		{func() { attn.Attend(nil, x, x, nil, o) }, `attn: Attend: value is nil, want a tensor`},
		{func() { m.Forward(nil, nil, x, x, o) }, `attn: MultiHead: query is nil, want a tensor`},
		{func() { m.Forward(nil, x, nil, x, o) }, `attn: MultiHead: key is nil, want a tensor`},
		{func() { unbuilt.Forward(nil, x, nil, x, o) }, `attn: MultiHead: key is nil, want a tensor`},
		{func() { m.Forward(nil, x, x, nil, o) }, `attn: MultiHead: value is nil, want a tensor`},
		{func() { m.Project(nil, nil, x) }, `attn: MultiHead: key is nil, want a tensor`},
		{func() { m.Query(nil, nil, kv, o) }, `attn: MultiHead: query is nil, want a tensor`},
		{func() { m.Extend(nil, nil, mustCache(t, m, 2, attn.CacheConfig{}), o) }, `attn: MultiHead: query is nil, want a tensor`},
		{func() { new(attn.MultiHead).Forward(nil, x, x, x, o) }, zeroMultiHead},
		{func() { new(attn.MultiHead).Project(nil, x, x) }, zeroMultiHead},
		{func() { (*attn.MultiHead)(nil).Extend(nil, x, nil, o) }, zeroMultiHead},

		{with(&score.Bilinear{}), `attn: Attend: w of the bilinear score is nil, want a tensor`},
		{with(&score.Bilinear{Scaled: true}), `attn: Attend: w of the bilinear score is nil, want a tensor`},
		{with(&score.Additive{}), `attn: Attend: wv of the additive score is nil, want a tensor`},
		{with(&score.Additive{WV: shaped(3)}), `attn: Attend: wq of the additive score is nil, want a tensor`},
		{with(&score.Additive{WV: shaped(3), WQ: shaped(3, 12)}), `attn: Attend: wk of the additive score is nil, want a tensor`},
		{with(score.Func(nil)), `attn: Attend: score is a nil score.Func, want a function`},
		{with(score.Func(func(*tensor.Tape, *tensor.Tensor, *tensor.Tensor) *tensor.Tensor { return nil })), `attn: Attend: score's result is nil, want a tensor`},
		{func() { attn.Scores(nil, nil, x, attn.Options{}) }, `attn: Scores: query is nil, want a tensor`},
		{func() { attn.Scores(nil, x, nil, attn.Options{}) }, `attn: Scores: key is nil, want a tensor`},
		{func() { score.OnKeys(nil, score.NewAdditive(2, 3, 5, newRand(1)), nil) }, `score: OnKeys: key is nil, want a tensor`},
		{func() { score.DotScale(nan) }, `score: DotScale: scale is NaN, want a finite number`},
		{func() { score.DotScale(inf) }, `score: DotScale: scale is \+Inf, want a finite number`},
		{func() { score.NewAdditive(2, 3, 5, nil) }, `tensor: Uniform: rng is nil, want a \*rand\.Rand`},
		{func() { score.NewBilinear(2, 3, nil) }, `tensor: Uniform: rng is nil, want a \*rand\.Rand`},
		{func() { mask.AllowFunc(nil) }, `mask: AllowFunc: f is nil, want a function`},
		{func() {
			tape := tensortest.Tape(tensor.Eval)
			old := tensor.Scale(tape, x, 1)
			tape.Reset()
			attn.Attend(tape, x, old, x, o)
		}, `.* is a tensor that its tape has freed by Reset or Release, want .*`},
		{func() {
			tape := tensortest.Tape(tensor.Eval)
			cache := m.Project(tape, x, x)
			tape.Reset()
			m.Query(tape, x, cache, o)
		}, `.* is a tensor that its tape has freed by Reset or Release, want .*`},
	} {
		err := tensor.Catch(c.f)
		var value *tensor.ValueError
		if !errors.As(err, &value) {
			t.Errorf("error %v, want a *ValueError", err)
		}
		wantError(t, err, c.want)
	}
}

// wantError fails the test unless the error message ends with the wanted text.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want %s", want)
	case !regexp.MustCompile(want + `$`).MatchString(err.Error()):
		t.Errorf("error %q, want %s", err, want)
	}
}

func TestNewMultiHeadErrors(t *testing.T) {
	for _, c := range []struct {
		config attn.MultiHeadConfig
		want   string
	}{
		{attn.MultiHeadConfig{}, `width 0 and heads 0 must be positive`},
		{attn.MultiHeadConfig{Width: 12}, `width 12 and heads 0 must be positive`},
		{attn.MultiHeadConfig{Width: -12, Heads: 3}, `width -12 and heads 3 must be positive`},
		{attn.MultiHeadConfig{Width: 300, Heads: 7}, `width 300 is not divisible by 7 heads`},
		{attn.MultiHeadConfig{Width: 12, Heads: 6, KVHeads: 4}, `6 heads are not divisible by 4 key/value heads`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, KVHeads: 6}, `3 heads are not divisible by 6 key/value heads`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, KVHeads: -1}, `key/value heads -1 is negative`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, HeadSize: -4}, `head size -4 is negative`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, ValueSize: -4}, `value size -4 is negative`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, OutWidth: attn.Infer}, `output width -1 is negative`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, QueryWidth: -2}, `query width -2 is negative`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, Dropout: 1}, `dropout 1 is outside \[0, 1\)`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, Dropout: -0.5}, `dropout -0.5 is outside \[0, 1\)`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, Dropout: float32(math.NaN())}, `dropout NaN is outside \[0, 1\)`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, Bias: 99}, `bias 99 has unknown bits, want a combination of Query, Key, Value, Out and Gate`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, Layout: 7}, `layout 7 is neither BatchFirst nor SequenceFirst`},
		{attn.MultiHeadConfig{Width: math.MaxInt, Heads: 1}, `\S+ weights, want at most \S+`},
		{attn.MultiHeadConfig{Width: math.MaxInt/2 + 1, Heads: 2}, `\S+ weights, want at most \S+`},
		{attn.MultiHeadConfig{Width: 12, Heads: math.MaxInt, HeadSize: 4}, `\S+ weights, want at most \S+`},
		{attn.MultiHeadConfig{Width: 12, Heads: 3, QueryWidth: attn.Infer, OutWidth: math.MaxInt}, `\S+ weights, want at most \S+`},
	} {
		_, err := attn.NewMultiHead(c.config, newRand(1))
		wantError(t, err, `attn: NewMultiHead: `+c.want)
	}
	config := attn.MultiHeadConfig{Width: 12, Heads: 3}
	_, err := attn.NewMultiHead(config, nil)
	wantError(t, err, `attn: NewMultiHead: rng is nil, want a \*rand\.Rand`)
	config.Init = nn.ZeroLinear
	if _, err := attn.NewMultiHead(config, nil); err != nil {
		t.Errorf("without an rng that nobody needs: %v", err)
	}
	for _, c := range []struct {
		init nn.Init
		want string
	}{
		{func(in, out int, _ bool, _ *rand.Rand) *nn.Linear {
			return &nn.Linear{Weight: tensor.Zeros(in, out, 1)}
		},
			`result of Init has shape \[12 12 1\], want \[12 12\]`},
		{func(in, out int, _ bool, rng *rand.Rand) *nn.Linear { return nn.NewLinear(in, out, true, rng) },
			`bias of Init has shape \[12\], want \[12\], and none where Bias has none`},
		{func(int, int, bool, *rand.Rand) *nn.Linear { return nil }, `result of Init is nil, want a \*nn\.Linear`},
	} {
		config.Init = c.init
		_, err = attn.NewMultiHead(config, newRand(1))
		wantError(t, err, "attn: NewMultiHead: "+c.want)
	}
	config.Init = func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) }
	later, err := attn.NewMultiHead(config, nil)
	if err != nil {
		t.Errorf("maps that are to be set later: %v", err)
	}
	x := shaped(2, 5, 12)
	wantError(t, tensor.Catch(func() { later.Forward(nil, x, x, x, attn.Options{}) }), `tensor: Linear: w is nil, want a tensor`)

	config = attn.MultiHeadConfig{Width: 12, Heads: 3, KeyWidth: attn.Infer}
	for _, width := range []int{0, -5, math.MaxInt} {
		m := mustMultiHead(t, config)
		wantError(t, tensor.Catch(func() { m.Build(12, width, 12) }), `attn: Build: layer has input widths \[12 -?\d+ 12\], want positive .*`)
		m.Build(12, 7, 12) // still possible
	}
}

func TestForwardErrors(t *testing.T) {
	q, k, v := shaped(2, 5, 12), shaped(2, 7, 13), shaped(2, 7, 17)
	config := attn.MultiHeadConfig{Width: 12, Heads: 3, KeyWidth: 13, ValueWidth: 17}
	m := mustMultiHead(t, config)
	other := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 2})
	own := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	config.Layout = attn.SequenceFirst
	sequence := mustMultiHead(t, config)
	config.QueryWidth = attn.Infer
	unbuilt := mustMultiHead(t, config)
	o := attn.Options{}
	for _, c := range []struct {
		name, want string
		f          func()
	}{
		{"query's rank", `attn: MultiHead: query has shape \[5 12\], want \[B Lq D=12\]`, func() { m.Forward(nil, shaped(5, 12), k, v, o) }},
		{"query's width", `attn: MultiHead: query has shape \[2 5 11\], want \[B Lq D=12\]`, func() { m.Forward(nil, shaped(2, 5, 11), k, v, o) }},
		{"key's batch", `attn: MultiHead: key has shape \[3 7 13\], want \[B=2 Lk D=13\]`, func() { m.Forward(nil, q, shaped(3, 7, 13), v, o) }},
		{"value's length", `attn: MultiHead: value has shape \[2 6 17\], want \[B=2 Lk=7 D=17\]`, func() { m.Forward(nil, q, k, shaped(2, 6, 17), o) }},
		{"value, sequence first", `attn: MultiHead: value has shape \[7 3 17\], want \[Lk=7 B=2 D=17\]`, func() {
			sequence.Forward(nil, shaped(5, 2, 12), shaped(7, 2, 13), shaped(7, 3, 17), o)
		}},
		{"mask", `attn: MultiHead: mask has valid length 8, want 0 to Lk=7`, func() { m.Forward(nil, q, k, v, attn.Options{Mask: mask.Lengths(8, 1)}) }},
		{"project", `attn: MultiHead: value has shape \[2 6 17\], want \[B=2 Lk=7 D=17\]`, func() { m.Project(nil, k, shaped(2, 6, 17)) }},
		{"query's batch", `attn: MultiHead: query has shape \[1 5 12\], want \[B=2 Lq D=12\]`, func() { m.Query(nil, shaped(1, 5, 12), m.Project(nil, k, v), o) }},
		{"empty cache", `attn: MultiHead: kv has 0 keys, want a KV from Project`, func() { m.Query(nil, q, attn.KV{}, o) }},
		{"heads of another layer", `attn: MultiHead: kv has heads and sizes \[2 6 6\], want \[G=3 E=4 V=4\]`, func() { m.Query(nil, q, other.Project(nil, q, q), o) }},
		{"cache of another layer", `attn: MultiHead: cache has heads and sizes \[2 6 6\], want \[G=3 E=4 V=4\]`, func() { own.Extend(nil, q, mustCache(t, other, 2, attn.CacheConfig{}), o) }},
		{"cache of another batch", `attn: MultiHead: query has shape \[2 5 12\], want \[B=1 L D=12\]`, func() { own.Extend(nil, q, mustCache(t, own, 1, attn.CacheConfig{}), o) }},
		{"no cache", `attn: MultiHead: cache is nil, want a cache from NewCache`, func() { own.Extend(nil, q, nil, o) }},
		{"cache that is full", `attn: MultiHead: cache has 5 keys, want at most its capacity of 4`, func() { own.Extend(nil, q, mustCache(t, own, 2, attn.CacheConfig{Capacity: 4}), o) }},
		{"cache and a tape", `attn: MultiHead: tape is one that records, want nil or one of mode Infer: .*`, func() {
			own.Extend(tensortest.Tape(tensor.Eval), q, mustCache(t, own, 2, attn.CacheConfig{}), o)
		}},
		{"cache and lengths of keys", `attn: MultiHead: key lengths is given, want none: the cache counts the keys of each sequence`, func() {
			own.Extend(nil, q, mustCache(t, own, 2, attn.CacheConfig{}), attn.Options{KeyLens: []int{1, 2}})
		}},
		{"more queries than there are", `attn: MultiHead: lengths has 6 queries, want 0 to L=5`, func() {
			own.Extend(nil, q, mustCache(t, own, 2, attn.CacheConfig{}), attn.Options{QueryLens: []int{1, 6}})
		}},
		{"cache of another layout", `attn: MultiHead: kv is from a layer with another Layout, want one from Project of this layer`, func() {
			m.Query(nil, q, sequence.Project(nil, shaped(7, 2, 13), shaped(7, 2, 17)), o)
		}},
		{"extend by two widths", `attn: MultiHead: query has shape \[2 5 12\], want \[B=2 L D=13\]`, func() { m.Extend(nil, q, mustCache(t, m, 2, attn.CacheConfig{}), o) }},
		{"not built", `attn: MultiHead: layer has input widths \[-1 13 17\], want Build or Forward to be called first`, func() { unbuilt.Project(nil, k, v) }},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, tensor.Catch(c.f), c.want) })
	}
}

// Settings that are NaN, negative, missing or too large give a clear one-line error.
func TestRefusedSettings(t *testing.T) {
	nan := float32(math.NaN())
	q := shaped(2, 4, 3, 8)
	biased := func(r attn.ScoreChange) func() {
		return func() { attn.Attend(nil, q, q, q, attn.Options{Changes: []attn.ScoreChange{r}}) }
	}
	for _, c := range []struct {
		name, want string
		f          func()
	}{
		{"cap of NaN", `^attn: SoftCap: limit is NaN, want a positive finite number$`, func() { attn.SoftCap(nan) }},
		{"cap of 0", `^attn: SoftCap: limit is 0, want a positive finite number$`, func() { attn.SoftCap(0) }},
		{"slope", `^attn: Attend: slope 1 of ALiBi is NaN, want a finite number$`, biased(position.ALiBi(1, nan, 1, 1))},
		{"slopes", `^position: ALiBiSlopes: heads is -1, want a number of at least 0$`, func() { position.ALiBiSlopes(-1) }},
		{"distance", `^attn: Attend: MaxDistance of T5's bias is -1, want a positive number, or 0 for 128$`,
			biased(position.T5Bias(shaped(8, 4), position.T5Config{MaxDistance: -1}))},
		{"position", `^attn: ApplyPosition: position is nil, want a Position$`,
			func() { attn.ApplyPosition(nil, nil, q, attn.Query, attn.Positions{}) }},
		{"x", `^attn: ApplyPosition: x is nil, want a tensor$`,
			func() { attn.ApplyPosition(nil, &position.RoPE{}, nil, attn.Query, attn.Positions{}) }},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, tensor.Catch(c.f), c.want) })
	}
	if strconv.IntSize == 64 { // such a length does not fit in 32 bits
		capacity := 1
		capacity <<= 40
		_, err := attn.NewCache(attn.CacheConfig{Batch: 3, Heads: 2, KeySize: 8, Capacity: capacity})
		wantError(t, err, `^attn: NewCache: capacity 1099511627776 takes 4.22e\+14 bytes, want at most 4.4e\+12$`)
	}
}
