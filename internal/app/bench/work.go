package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/tensor"
)

// Work is an operation on a shape, with the flags of attn bench. Sizes that the operation does not use are 0; Complete
// fills in missing ones.
type Work struct {
	Op string `json:"op" kong:"-"`

	B  int `json:"b,omitempty" help:"Batch size (default 1 for sdpa, mha, linear, decode, generate and read, 8 for additive and gaussian)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	H  int `json:"h,omitempty" help:"Query heads (default 12 for sdpa and mha, 1 for additive and gaussian, 16 for linear, 32 for decode, 8 for generate)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	G  int `json:"g,omitempty" help:"Key/value heads; fewer than query heads is grouped-query attention (default --h)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	Lq int `json:"lq" help:"Queries; rows of a gemm (default 1024 for gemm and sdpa, 512 for additive, gaussian and mha, 2048 for linear, 1 for decode)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	Lk int `json:"lk" help:"Keys; columns of a gemm (default 8192 for decode, generate and read, otherwise --lq)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	E  int `json:"e" help:"Head size of queries and keys; inner dimension of a gemm (default 64 for sdpa and generate, 128 for additive, gaussian, linear, decode and read, --lq for gemm, --width divided by --h for mha)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	V  int `json:"v,omitempty" help:"Head size of values (default --e)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`
	// Width is the model width for mha, and the number of hidden features for additive scores.
	Width int `json:"width,omitempty" help:"Width of the model for mha; hidden features for additive (default 768 for mha, --e for additive)." placeholder:"N" group:"Shape" want:"at least 1" needs:"op"`

	Causal bool `json:"causal" help:"Query i attends to key j only if j ≤ i + Lk − Lq." group:"Attention" needs:"op"`
	// Mask is one of Masks; empty is the first.
	Mask string `json:"mask" default:"none" enum:"${masks}" help:"${masks_help}." placeholder:"NAME" group:"Attention" needs:"op"`
	// Dropout is of the weights; a forward operation then runs in training mode.
	Dropout float64 `json:"dropout" help:"Drop weights with this probability, as in training (default 0)." placeholder:"P" group:"Attention" needs:"op"`
	Weights bool    `json:"weights" help:"Also return the weights." group:"Attention" needs:"op"`
	// With has names of Extras.
	With []string `json:"with,omitempty" help:"Extras, separated by commas: ${extras_help} (default none)." placeholder:"NAMES" group:"Attention" needs:"op"`
	// Rule is what a token of linear attention does to the state, one of rules, and Decay the form of the decay of gated rules,
	// one of decays.
	Rule  string `json:"rule,omitempty" help:"Rule of linear: linear, gated, delta or gated_delta (default gated_delta)." placeholder:"NAME" group:"Attention" needs:"op"`
	Decay string `json:"decay,omitempty" help:"Decay of a gated rule: a number for each head, token or element of a key (default token)." placeholder:"NAME" group:"Attention" needs:"op"`
	// Storage is the format of a cache; 0 means float32.
	Storage tensor.Format `json:"storage" help:"Number format of keys and values in a cache: float32, bfloat16 or int8 (default float32)." placeholder:"NAME" group:"Attention" needs:"op"`
	// Format is that of the tape; 0 means float32.
	Format tensor.Format `json:"format,omitempty" kong:"-"`
}

// An operation uses some of the fields of Work and has defaults for its sizes.
type operation struct {
	name     string
	takes    string // names of fields, lower case
	defaults Work
}

const attends = "b h g lq lk e v causal mask dropout weights with format"

var operations = []operation{
	{"gemm", "lq lk e", Work{Lq: 1024}},
	{"sdpa", attends, Work{B: 1, H: 12, Lq: 1024, E: 64}},
	{"sdpa-train", attends, Work{B: 1, H: 12, Lq: 1024, E: 64}},
	{"additive", attends + " width", Work{B: 8, H: 1, Lq: 512, E: 128}},
	{"additive-train", attends + " width", Work{B: 8, H: 1, Lq: 512, E: 128}},
	{"gaussian", attends, Work{B: 8, H: 1, Lq: 512, E: 128}},
	{"gaussian-train", attends, Work{B: 8, H: 1, Lq: 512, E: 128}},
	{"mha", attends + " width", Work{B: 1, H: 12, Lq: 512, Width: 768}},
	{"mha-train", attends + " width", Work{B: 1, H: 12, Lq: 512, Width: 768}},
	{"linear", "b h g lq e v rule decay", Work{B: 1, H: 16, Lq: 2048, E: 128}},
	{"linear-train", "b h g lq e v rule decay", Work{B: 1, H: 16, Lq: 2048, E: 128}},
	{"decode", "b h g lq lk e v causal mask weights storage with format", Work{B: 1, H: 32, Lq: 1, Lk: 8192, E: 128}},
	{"decode-fixed", "b h g lq lk e v causal mask weights storage with format", Work{B: 1, H: 32, Lq: 1, Lk: 8192, E: 128}},
	{"generate", "b h g lk e v storage", Work{B: 1, H: 8, Lk: 8192, E: 64}},
	{"generate-fixed", "b h g lk e v storage", Work{B: 1, H: 8, Lk: 8192, E: 64}},
	{"read", "b g lk e v storage", Work{B: 1, G: 32, Lk: 8192, E: 128}},
}

var (
	rules  = []string{"gated_delta", "linear", "gated", "delta"}
	decays = []string{"token", "head", "element"}
)

// gated and erases report what the rule of linear attention has.
func (w Work) gated() bool  { return strings.HasPrefix(w.Rule, "gated") }
func (w Work) erases() bool { return strings.HasSuffix(w.Rule, "delta") }

// Ops returns the names of the operations.
func Ops() []string { return list(operations, func(o operation) string { return o.name }) }

// list returns the results of f for all elements.
func list[T, U any](all []T, f func(T) U) []U {
	results := make([]U, len(all))
	for i, x := range all {
		results[i] = f(x)
	}
	return results
}

func (w Work) operation() operation {
	for _, o := range operations {
		if o.name == w.Op {
			return o
		}
	}
	return operation{}
}

// Takes reports whether the operation uses a field, given by its name in lower case.
func (w Work) Takes(field string) bool {
	return slices.Contains(strings.Fields(w.operation().takes), field)
}

// Training reports whether the operation includes the backward pass.
func (w Work) Training() bool { return strings.HasSuffix(w.Op, "-train") }

// base returns the operation's name without "-train" or "-fixed".
func (w Work) base() string { return strings.TrimSuffix(strings.TrimSuffix(w.Op, "-train"), "-fixed") }

// fixed reports whether the cache is only read, and not appended to.
func (w Work) fixed() bool { return strings.HasSuffix(w.Op, "-fixed") }

// Complete returns the work with missing sizes filled in, or an error if the work is invalid. Some
// sizes follow from others: G is H, Lk is Lq, V is E; for gemm, E is Lq; for additive scores, Width
// is E; for a multi-head layer, E is Width/H. Other sizes have a default for each operation.
func (w Work) Complete() (Work, error) {
	o := w.operation()
	if o.name == "" {
		return w, fmt.Errorf("unknown operation %q, want one of %s", w.Op, strings.Join(Ops(), ", "))
	}
	fill := func(to *int, value int) {
		if *to == 0 {
			*to = value
		}
	}
	defaults := o.defaults.sizes()
	for i, s := range w.sizes() {
		fill(s.size, *defaults[i].size)
	}
	fill(&w.Lk, w.Lq)
	fill(&w.G, w.H)
	switch w.base() {
	case "gemm":
		fill(&w.E, w.Lq)
	case "additive":
		fill(&w.Width, w.E)
	case "mha":
		if w.E == 0 {
			if w.H > 0 && w.Width%w.H != 0 {
				return w, fmt.Errorf("width %d is not divisible by %d heads", w.Width, w.H)
			}
			w.E = w.Width / max(w.H, 1)
		}
	}
	if w.Takes("v") {
		fill(&w.V, w.E)
	}
	if w.Mask == "" {
		w.Mask = masks[0].name
	}
	if w.Takes("rule") {
		if w.Rule = cmp.Or(w.Rule, rules[0]); w.gated() {
			w.Decay = cmp.Or(w.Decay, decays[0])
		}
	}
	if w.Storage == 0 {
		w.Storage = tensor.Float32
	}
	return w, w.validate()
}

// format returns the format of the tape.
func (w Work) format() tensor.Format { return cmp.Or(w.Format, tensor.Float32) }

func (w Work) validate() error {
	for _, f := range w.sizes() {
		if w.Takes(f.name) && *f.size < 1 {
			return fmt.Errorf("%s %d, want at least 1", f.name, *f.size)
		}
	}
	switch {
	case w.H > 0 && w.H%w.G != 0:
		return fmt.Errorf("h %d is not divisible by g %d", w.H, w.G)
	case !slices.Contains(Masks(), w.Mask):
		return fmt.Errorf("mask %q, want %s", w.Mask, strings.Join(Masks(), ", "))
	case w.Rule != "" && !slices.Contains(rules, w.Rule):
		return fmt.Errorf("rule %q, want %s", w.Rule, strings.Join(rules, ", "))
	case w.Decay != "" && (!w.gated() || !slices.Contains(decays, w.Decay)):
		return fmt.Errorf("decay %q of the rule %s, want %s of gated or gated_delta", w.Decay, w.Rule, strings.Join(decays, ", "))
	case w.Storage.CheckStorage() != nil:
		return fmt.Errorf("storage %w", w.Storage.CheckStorage())
	case w.base() == "decode" && w.Lq > w.Lk:
		return fmt.Errorf("lq %d, want at most lk %d: queries are its last positions", w.Lq, w.Lk)
	case !(w.Dropout >= 0 && w.Dropout < 1):
		return fmt.Errorf("dropout %v is outside [0, 1)", w.Dropout)
	}
	if f := w.format(); f != tensor.Float32 && (f != tensor.BFloat16 || !w.Takes("format")) {
		return fmt.Errorf("format %v cannot be used with op %s, want float32, or bfloat16 for attention", f, w.Op)
	}
	for _, name := range w.With {
		if !slices.Contains(Extras(), name) {
			return fmt.Errorf("unknown extra %q, want some of %s", name, strings.Join(Extras(), ", "))
		}
	}
	for _, x := range w.extras() {
		if !slices.Contains(strings.Fields(x.goesWith), w.base()) {
			return fmt.Errorf("%s does not go with %s, but with %s", x.name, w.Op, strings.Join(strings.Fields(x.goesWith), ", "))
		}
		if x.check != nil {
			if err := x.check(w); err != nil {
				return err
			}
		}
	}
	if n := w.largest(); n > mostNumbers {
		return fmt.Errorf("%s would need an array of %.1e numbers, want at most %.1e", w.Name(), n, float64(mostNumbers))
	}
	return nil
}

// mostNumbers is the limit on the size of each array: 4 GiB.
const mostNumbers = 1 << 30

// largest returns the size of the largest array. It is a float because the product of the sizes may
// overflow an integer.
func (w Work) largest() float64 {
	b, h, l, e, width := float64(w.B), float64(w.H), float64(max(w.Lq, w.Lk)), float64(max(w.E, w.V)), float64(w.Width)
	scores := 0.0 // not stored unless requested
	if w.Weights || w.Mask == "bool" {
		scores = b * h * float64(w.Lq) * float64(w.Lk)
	}
	switch w.base() {
	case "gemm":
		return l * max(float64(min(w.Lq, w.Lk)), e)
	case "additive":
		return max(scores, b*h*l*max(e, width), e*width)
	}
	return max(scores, b*h*l*e, b*l*width, h*e*width)
}

// size is a size with the name of its flag.
type size struct {
	name string
	size *int
}

// sizes returns all sizes.
func (w *Work) sizes() []size {
	return []size{
		{"b", &w.B}, {"h", &w.H}, {"g", &w.G}, {"lq", &w.Lq}, {"lk", &w.Lk}, {"e", &w.E}, {"v", &w.V}, {"width", &w.Width},
	}
}

// Name returns a short name of the work, such as "sdpa B1 H12 L512 E64 causal".
func (w Work) Name() string {
	words := []string{w.Op}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if w.Op == "gemm" {
		add("%d×%d×%d", w.Lq, w.Lk, w.E)
		return strings.Join(words, " ")
	}
	if w.base() == "mha" {
		add("width %d", w.Width)
	}
	add("B%d", w.B)
	if w.Takes("h") {
		add("H%d", w.H)
	}
	if w.G != w.H || !w.Takes("h") && w.Takes("g") {
		add("G%d", w.G)
	}
	switch {
	case !w.Takes("lq"):
		add("Lk%d", w.Lk)
	case w.Lq == w.Lk:
		add("L%d", w.Lq)
	default:
		add("Lq%d Lk%d", w.Lq, w.Lk)
	}
	if w.base() != "mha" || w.E != w.Width/w.H {
		add("E%d", w.E)
	}
	if w.V != w.E {
		add("V%d", w.V)
	}
	if w.base() == "additive" {
		add("hidden %d", w.Width)
	}
	if w.Causal {
		add("causal")
	}
	if w.Takes("rule") && w.Rule != rules[0] {
		add("%s", w.Rule)
	}
	if w.gated() && w.Decay != decays[0] {
		add("decay by %s", w.Decay)
	}
	if w.Mask != "none" {
		add("%s mask", w.Mask)
	}
	if w.Dropout > 0 {
		add("dropout %v", w.Dropout)
	}
	if w.Storage != tensor.Float32 {
		add("%v", w.Storage)
	}
	if w.format() != tensor.Float32 {
		add("format %v", w.Format)
	}
	if w.Weights {
		add("weights")
	}
	for _, name := range w.With {
		add("%s", name)
	}
	return strings.Join(words, " ")
}
