package score

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Kind is an entry of the table of scores: a kind of score by the name under which
// configurations, files and command lines ask for it.
type Kind struct {
	Name    string // "scaled-bilinear"
	Formula string // "qᵀ·w·k / (Eq·Ek)^¼", in the names of Params
	// Score is a score of this kind whose parameters are not set. It is an attn.ParamScore if
	// there are Params.
	Score  attn.Score
	Params []Param
	// Scaled returns a score of this kind with a given factor, a finite number. Nil if
	// the kind has none.
	Scaled func(factor float32) attn.Score
}

// Param is a parameter of a kind of score.
type Param struct {
	Name string // the name that Params gives it
	// Axes names the sizes of its axes: Eq and Ek of a query and of a key, E where
	// these agree, h of a hidden space, or 1.
	Axes []string
	// Optional says that a score without it is one with 1 in its place.
	Optional bool
	// New returns a parameter with the value that training begins with.
	New func(s Sizes, rng *rand.Rand) *tensor.Tensor
}

// Sizes are the sizes of the vectors that a score compares.
type Sizes struct {
	Query, Key int
	// Hidden is the size of the space in which an additive score compares. 0 means
	// Query.
	Hidden int
}

// hidden returns the size of the hidden space.
func (s Sizes) hidden() int {
	if s.Hidden == 0 {
		return s.Query
	}
	return s.Hidden
}

// Table is a list of kinds of scores with different names.
type Table []Kind

// scoreKinds is the table of this package. The entries are beside their scores.
var scoreKinds = Table{
	scaledDotKind, dotKind, additiveKind, bilinearKind, scaledBilinearKind, gaussianKind, cosineKind, l1Kind,
}

// Kinds returns the table of the scores of this package. A program with scores of its
// own appends them: append(Kinds(), mine).
func Kinds() Table { return slices.Clone(scoreKinds) }

// Names returns the names of the kinds.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}

// Find returns the kind of the given name.
func (t Table) Find(name string) (kind Kind, ok bool) {
	i := slices.IndexFunc(t, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return t[i], true
}

// New returns a score between vectors of the given sizes, with all its parameters at
// the values that training begins with.
func (k Kind) New(s Sizes, rng *rand.Rand) attn.Score {
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
func (k Kind) With(params map[string]*tensor.Tensor) (attn.Score, error) {
	sizes := map[string]int{} // of the axes
	known := 0
	for _, p := range k.Params {
		x := params[p.Name]
		if x == nil {
			if p.Optional {
				continue
			}
			return nil, fmt.Errorf("score: Kind: %s score: parameter %q is missing", k.Name, p.Name)
		}
		known++
		if err := p.check(k.Name, x, sizes); err != nil {
			return nil, err
		}
	}
	if known < len(params) {
		for name, x := range params {
			if x != nil && !slices.ContainsFunc(k.Params, func(p Param) bool { return p.Name == name }) {
				return nil, fmt.Errorf("score: Kind: %s score: unknown parameter %q", k.Name, name)
			}
		}
	}
	if s, ok := k.Score.(attn.ParamScore); ok && len(k.Params) > 0 {
		return s.WithParams(params), nil
	}
	return k.Score, nil
}

// check returns an error unless x has the axes of the parameter, of the sizes that are
// known from others, and adds what it tells of sizes.
func (p Param) check(kind string, x *tensor.Tensor, sizes map[string]int) error {
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
	return &tensor.ShapeError{Op: "score: Kind", Arg: p.Name + " of the " + kind + " score", Got: x.Shape(), Want: "[" + strings.Join(want, " ") + "]"}
}
