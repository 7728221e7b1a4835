package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// reader reads tensors of a file. It keeps the first error in err; after an error, results are not
// valid.
type reader struct {
	path   string
	prefix string // of the names to read
	file   *safetensors.File
	params nn.StateDict // the tensors whose gradients are results
	asked  []string     // the names of all known tensors
	err    error
}

func (r *reader) bad(format string, args ...any) error { return input.Errorf(r.path, format, args...) }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// has reports whether the file has a tensor.
func (r *reader) has(name string) bool { return r.file.Lookup(r.prefix+name) != nil }

// read returns a tensor of the file and its elements, or nil if the file has none of that name.
func read[T any](r *reader, name string, elements func(*safetensors.Tensor) ([]T, error)) (*safetensors.Tensor, []T) {
	if !slices.Contains(r.asked, name) {
		r.asked = append(r.asked, name)
	}
	t := r.file.Lookup(r.prefix + name)
	if t == nil {
		return nil, nil
	}
	x, err := elements(t)
	if format := (*safetensors.FormatError)(nil); errors.As(err, &format) {
		err = format.Err // without the name of the package
	}
	if err != nil {
		r.fail(r.bad("%v", err))
		return nil, nil
	}
	return t, x
}

// floats returns a tensor of floats, or nil if the file has none of that name.
func (r *reader) floats(name string) *tensor.Tensor {
	t, x := read(r, name, (*safetensors.Tensor).Float32s)
	if t == nil {
		return nil
	}
	if len(x) == 0 { // the other axes of an empty tensor can have any size
		r.fail(r.bad("tensor %q has shape %v, want at least one element", t.Name, t.Shape))
		return nil
	}
	return tensor.New(x, t.Shape...)
}

// need is floats for a required tensor.
func (r *reader) need(name string) *tensor.Tensor {
	x := r.floats(name)
	if !r.has(name) {
		r.fail(r.bad("tensor %q is missing", r.prefix+name))
	}
	return x
}

// parameter registers x as a parameter, unless it is nil, and returns it.
func (r *reader) parameter(name string, x *tensor.Tensor) *tensor.Tensor {
	if x != nil {
		r.params = append(r.params, leaf(name, x))
	}
	return x
}

// ints returns the rows of a tensor of integers with one or two axes, or nil if the file has none of
// that name.
func (r *reader) ints(name, want string) [][]int {
	t, x := read(r, name, (*safetensors.Tensor).Ints)
	if t == nil {
		return nil
	}
	if len(t.Shape) != 1 && len(t.Shape) != 2 || len(x) == 0 {
		r.fail(r.bad("%s has shape %v, want %s", name, t.Shape, want))
		return nil
	}
	return slices.Collect(slices.Chunk(x, t.Shape[len(t.Shape)-1]))
}

// documents returns the mask for the tensor documents of the file.
func (r *reader) documents() attn.Mask {
	if ends := r.ints("documents", "[N] or [B N]"); ends != nil {
		return mask.Documents(ends...)
	}
	return attn.Mask{}
}

// positions returns the positions in the file, or the default positions.
func (r *reader) positions(name string) attn.Positions {
	return attn.Positions{IDs: r.ints(name, "[L] or [B L]")}
}

// slopes returns the slopes of ALiBi in the file, or nil for the published slopes.
func (r *reader) slopes() []float32 {
	x := r.floats("slopes")
	if x == nil {
		return nil
	}
	if x.Rank() != 1 {
		r.fail(r.bad("tensor \"slopes\" has shape %v, want [H]", x.Shape()))
	}
	return x.Data()
}

// mask returns the mask in the file, or an empty mask.
func (r *reader) mask() attn.Mask {
	if t, seen := read(r, "mask", (*safetensors.Tensor).Bools); t != nil {
		return mask.Allow(seen, t.Shape...)
	}
	return attn.Mask{}
}

// validLens returns the mask for the tensor valid_lens of the file.
func (r *reader) validLens() attn.Mask {
	t, lens := read(r, "valid_lens", (*safetensors.Tensor).Ints)
	switch {
	case t == nil:
	case len(t.Shape) == 1:
		return mask.Lengths(lens...)
	case len(t.Shape) == 2:
		return mask.LengthsOfQueries(slices.Collect(slices.Chunk(lens, max(t.Shape[1], 1))))
	default:
		r.fail(r.bad("valid_lens has shape %v, want [B] or [B Lq]", t.Shape))
	}
	return attn.Mask{}
}

// mostNumbers limits the size of each array that a file implies: 4 GiB.
const mostNumbers = 1 << 30

// plausible rejects small tensors whose scores or projections would exhaust memory. widest is the
// longest axis of a parameter.
func (r *reader) plausible(q, k, v *tensor.Tensor, heads, widest int) {
	if r.err != nil || q.Rank() < 3 || k.Rank() != q.Rank() || v.Rank() != q.Rank() {
		return // other code reports inconsistent shapes
	}
	batch := float64(q.Len() / q.Dim(-1) / q.Dim(-2)) // times heads, if q has an axis of heads
	lq, lk := float64(q.Dim(-2)), float64(k.Dim(-2))
	widest = max(widest, k.Dim(-1), v.Dim(-1))
	if n := batch * max(float64(max(heads, 1))*lq*lk, max(lq, lk)*float64(widest)); n > mostNumbers {
		r.fail(r.bad("q %v, k %v and v %v would need arrays of %.1e numbers, want at most %d",
			q.Shape(), k.Shape(), v.Shape(), n, mostNumbers))
	}
}

// largestAxis returns the size of the longest axis of a parameter.
func (r *reader) largestAxis() int {
	n := 1
	for _, e := range r.params {
		for _, x := range e.Parts {
			n = max(n, slices.Max(append(x.Shape(), 1)))
		}
	}
	return n
}

// complete rejects tensors that were not read: otherwise a mask or a bias with a misspelt name would be
// ignored silently.
func (r *reader) complete() {
	for _, t := range r.file.Tensors {
		name := strings.TrimPrefix(t.Name, r.prefix)
		if slices.Contains(r.asked, name) {
			continue
		}
		if flag := otherwise(name); flag != "" {
			r.fail(r.bad("tensor %q requires %s", t.Name, flag))
			return
		}
		r.fail(r.bad("unknown tensor %s%s", quote.Text(t.Name), meant(name, r.asked)))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(r.file.Metadata)) {
		if key != "format" { // most frameworks write their name here
			r.fail(r.bad("unknown metadata %s, want none but \"format\"", quote.Text(key)))
		}
	}
}

// otherwise returns the flag that an unused tensor requires, or "".
func otherwise(name string) string {
	for flag, names := range map[string][]string{
		"--alibi": {"slopes"}, "--rope": {"q_positions", "k_positions"}, "--weights": {"dweights"}, "--lse": {"dlse"},
		"--rule " + flags.Listed(rulesWith(func(r rule) bool { return r.decay }), "or"): {"decay"},
		"--rule " + flags.Listed(rulesWith(func(r rule) bool { return r.beta }), "or"):  {"beta"},
		"--rule":  {"state", "dstate"},
		"--layer": {"in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"},
	} {
		if slices.Contains(names, name) {
			return flag
		}
	}
	kinds := slices.DeleteFunc(score.Kinds(), func(k score.Kind) bool {
		return !slices.ContainsFunc(k.Params, func(p score.Param) bool { return name == "score."+p.Name })
	})
	if len(kinds) > 0 {
		return "--score " + flags.Listed(kinds.Names(), "or")
	}
	for i, names := range mapNames {
		for _, n := range names {
			if name == n+".weight" || name == n+".bias" {
				return []string{"--heads", "--layer", "--layer"}[i]
			}
		}
	}
	return ""
}

// meant returns the end of a message about an unknown name: the known name that is most similar, or all
// known names.
func meant(name string, names []string) string {
	const slips = 2 // missing or extra characters at the end
	for _, n := range names {
		short, long := strings.ToLower(name), n
		if len(short) > len(long) {
			short, long = long, short
		}
		if len(n) > slips && strings.HasPrefix(long, short) && len(long) <= len(short)+slips {
			return fmt.Sprintf(", did you mean %q?", n)
		}
	}
	return ", want " + strings.Join(names, ", ")
}
