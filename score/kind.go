package score

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Kind is an entry of the table of scores. Configurations, files and command lines select a score
// by the name of its kind.
type Kind struct {
	Name    string // "scaled-bilinear"
	Formula string // "qᵀ·w·k / (Eq·Ek)^¼", with the names of Params
	// Score is a score of this kind without parameters. It is an attn.ParamScore if Params is not
	// empty.
	Score  attn.Score
	Params []Param
	// Scaled returns a score of this kind with the given finite factor. Nil if the kind has no
	// such factor.
	Scaled func(factor float32) attn.Score
}

// Param is a parameter of a kind of score.
type Param struct {
	Name string // as in the score's Params
	// Axes names the sizes of its axes: Eq of a query and Ek of a key, E if both are equal, h of
	// a hidden space, or 1.
	Axes []string
	// Optional means that the score works without it and uses 1 instead.
	Optional bool
	// New returns the parameter with its initial value.
	New func(s Sizes, rng *rand.Rand) *tensor.Tensor
}

// Sizes are the sizes of the vectors that a score compares.
type Sizes struct {
	Query, Key int
	// Hidden is the size of the hidden space of an additive score. 0 means Query.
	Hidden int
}

// hidden returns the size of the hidden space.
func (s Sizes) hidden() int {
	if s.Hidden == 0 {
		return s.Query
	}
	return s.Hidden
}

// Table is a list of kinds of scores with distinct names.
type Table []Kind

// scoreKinds is the table of this package. The entries are defined next to their scores.
var scoreKinds = Table{
	scaledDotKind, dotKind, additiveKind, bilinearKind, scaledBilinearKind, gaussianKind, cosineKind, l1Kind,
}

// Kinds returns the table of the scores of this package. A program can append user-defined kinds:
// append(Kinds(), mine).
func Kinds() Table { return slices.Clone(scoreKinds) }

// Names returns the names of the kinds.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, k := range t {
		names[i] = k.Name
	}
	return names
}

// Find returns the kind with the given name.
func (t Table) Find(name string) (kind Kind, ok bool) {
	i := slices.IndexFunc(t, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return t[i], true
}

// New returns a score for vectors of the given sizes, with all parameters at their initial
// values.
func (k Kind) New(s Sizes, rng *rand.Rand) attn.Score {
	params := map[string]*tensor.Tensor{}
	for _, p := range k.Params {
		params[p.Name] = p.New(s, rng)
	}
	score, err := k.With(params)
	if err != nil {
		panic(err) // the table entry is inconsistent
	}
	return score
}

// With returns a score with the given parameters. It returns an error if one is missing or
// unknown, or if its shape does not fit its axes or the other parameters.
func (k Kind) With(params map[string]*tensor.Tensor) (attn.Score, error) {
	sizes := map[string]int{} // sizes by axis name
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

// Shape returns the shape of the parameter in a score for vectors of the given sizes.
func (p Param) Shape(s Sizes) []int {
	sizes := map[string]int{"Eq": s.Query, "E": s.Query, "Ek": s.Key, "h": s.hidden(), "1": 1}
	shape := make([]int, len(p.Axes))
	for i, axis := range p.Axes {
		shape[i] = sizes[axis]
	}
	return shape
}

// check returns an error unless the shape of x fits the axes of the parameter and the sizes known
// so far. It adds the sizes of x to sizes.
func (p Param) check(kind string, x *tensor.Tensor, sizes map[string]int) error {
	if x.Len() == 1 && slices.Equal(p.Axes, []string{"1"}) {
		return nil // any number of axes
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
