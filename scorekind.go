package attn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// ScoreKind is an entry of the table of scores: a kind of score by the name under which
// configurations, files and command lines ask for it.
type ScoreKind struct {
	Name    string // "scaled-bilinear"
	Formula string // "qᵀ·w·k / (Eq·Ek)^¼", in the names of Params
	// Score is a score of this kind whose parameters are not set. It is a ParamScore if
	// there are Params.
	Score  Score
	Params []ScoreParam
	// Scaled returns a score of this kind with a given factor, a finite number. Nil if
	// the kind has none.
	Scaled func(factor float32) Score
}

// ScoreParam is a parameter of a kind of score.
type ScoreParam struct {
	Name string // the name that Params gives it
	// Axes names the sizes of its axes: Eq and Ek of a query and of a key, E where
	// these agree, h of a hidden space, or 1.
	Axes []string
	// Optional says that a score without it is one with 1 in its place.
	Optional bool
	// New returns a parameter with the value that training begins with.
	New func(s ScoreSizes, rng *rand.Rand) *tensor.Tensor
}

// ScoreSizes are the sizes of the vectors that a score compares.
type ScoreSizes struct {
	Query, Key int
	// Hidden is the size of the space in which an additive score compares. 0 means
	// Query.
	Hidden int
}

// hidden returns the size of the hidden space.
func (s ScoreSizes) hidden() int {
	if s.Hidden == 0 {
		return s.Query
	}
	return s.Hidden
}

// ParamScore is a Score with parameters from which one with other parameters can be made.
// MultiHead.Keep copies such a score; any other is shared.
type ParamScore interface {
	Score
	nn.Module
	// WithParams returns a score like this one with the given parameters, by the
	// names that Params gives them, and with no others.
	WithParams(params map[string]*tensor.Tensor) Score
}

// ScoreTable is a list of kinds of scores with different names.
type ScoreTable []ScoreKind

// scoreKinds is the table of this package. The entries are beside their scores.
var scoreKinds = ScoreTable{
	scaledDotKind, dotKind, additiveKind, bilinearKind, scaledBilinearKind, gaussianKind, cosineKind, l1Kind,
}

// ScoreKinds returns the table of the scores of this package. Whoever has scores of their
// own appends them: append(ScoreKinds(), mine).
func ScoreKinds() ScoreTable { return slices.Clone(scoreKinds) }

// Names returns the names of the kinds.
func (t ScoreTable) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}

// Find returns the kind of the given name.
func (t ScoreTable) Find(name string) (kind ScoreKind, ok bool) {
	i := slices.IndexFunc(t, func(k ScoreKind) bool { return k.Name == name })
	if i < 0 {
		return ScoreKind{}, false
	}
	return t[i], true
}

// New returns a score between vectors of the given sizes, with all its parameters at
// the values that training begins with.
func (k ScoreKind) New(s ScoreSizes, rng *rand.Rand) Score {
	params := map[string]*tensor.Tensor{}
	for _, p := range k.Params {
		params[p.Name] = p.New(s, rng)
	}
	score, err := k.With(params)
	if err != nil {
		panic(err) // the entry contradicts itself
	}
	return score
}

// With returns a score with the given parameters. It returns an error if one is missing,
// unknown, or has a shape that does not go with its axes or with the others.
func (k ScoreKind) With(params map[string]*tensor.Tensor) (Score, error) {
	sizes := map[string]int{} // of the axes
	known := 0
	for _, p := range k.Params {
		x := params[p.Name]
		if x == nil {
			if p.Optional {
				continue
			}
			return nil, fmt.Errorf("attn: ScoreKind: %s score: parameter %q is missing", k.Name, p.Name)
		}
		known++
		if err := p.check(k.Name, x, sizes); err != nil {
			return nil, err
		}
	}
	if known < len(params) {
		for name, x := range params {
			if x != nil && !slices.ContainsFunc(k.Params, func(p ScoreParam) bool { return p.Name == name }) {
				return nil, fmt.Errorf("attn: ScoreKind: %s score: unknown parameter %q", k.Name, name)
			}
		}
	}
	if s, ok := k.Score.(ParamScore); ok && len(k.Params) > 0 {
		return s.WithParams(params), nil
	}
	return k.Score, nil
}

// check returns an error unless x has the axes of the parameter, of the sizes that are
// known from others, and adds what it tells of sizes.
func (p ScoreParam) check(kind string, x *tensor.Tensor, sizes map[string]int) error {
	if x.Len() == 1 && slices.Equal(p.Axes, []string{"1"}) {
		return nil // with any number of axes
	}
	fits := x.Rank() == len(p.Axes)
	want := slices.Clone(p.Axes)
	for i, axis := range p.Axes {
		n, known := sizes[axis]
		if axis == "1" {
			n, known = 1, true
		} else if known {
			want[i] = fmt.Sprintf("%s=%d", axis, n)
		}
		if fits = fits && (!known || x.Dim(i) == n); fits {
			sizes[axis] = x.Dim(i)
		}
	}
	if fits {
		return nil
	}
	return &tensor.ShapeError{Op: "attn: ScoreKind", Arg: p.Name + " of the " + kind + " score", Got: x.Shape(), Want: "[" + strings.Join(want, " ") + "]"}
}

// copyScore returns a score with parameters of its own, if it can be made.
func copyScore(s Score) Score {
	m, ok := s.(ParamScore)
	if !ok {
		return s
	}
	params := map[string]*tensor.Tensor{}
	for name, x := range m.Params() {
		params[name] = like(x, slices.Clone(x.Data()), x.Shape()...)
	}
	return m.WithParams(params)
}
