package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// mechanism reads tensors from a file. The first thing that is wrong stays in
// err, and what is read after it is not to be used.
type mechanism struct {
	path   string
	prefix string // of all names in the file
	file   *safetensors.File
	params nn.StateDict    // what has a gradient to be written, as it was asked for
	torch  *attn.MultiHead // the layer, if the file has one of PyTorch's
	asked  []string        // every name that was asked for
	err    error
}

func (m *mechanism) bad(format string, args ...any) error {
	return input.Errorf(m.path, format, args...)
}

func (m *mechanism) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// reason returns what is wrong with a tensor, without the name of the package.
func reason(err error) error {
	var format *safetensors.FormatError
	if errors.As(err, &format) {
		return format.Err
	}
	return err
}

// has reports whether the file has a tensor.
func (m *mechanism) has(name string) bool { return m.file.Lookup(m.prefix+name) != nil }

// lookup returns a tensor of the file, or nil if there is none of that name.
func (m *mechanism) lookup(name string) *safetensors.Tensor {
	if !slices.Contains(m.asked, name) {
		m.asked = append(m.asked, name)
	}
	return m.file.Lookup(m.prefix + name)
}

// get returns a tensor of floats, or nil if the file has none of that name.
func (m *mechanism) get(name string) *tensor.Tensor {
	t := m.lookup(name)
	if t == nil {
		return nil
	}
	x, err := t.Float32s()
	if err != nil {
		m.fail(m.bad("%v", reason(err)))
		return nil
	}
	if len(x) == 0 { // axes beside one of 0 could claim any size
		m.fail(m.bad("tensor %q has shape %v, want at least one element", t.Name, t.Shape))
		return nil
	}
	return tensor.New(x, t.Shape...)
}

// need is get for a tensor that must be there.
func (m *mechanism) need(name string) *tensor.Tensor {
	if m.lookup(name) == nil {
		m.fail(m.bad("tensor %q is missing", m.prefix+name))
	}
	return m.get(name)
}

// optional returns a parameter, nil if it is not there.
func (m *mechanism) optional(name string) *tensor.Tensor {
	return m.parameter(name, m.get(name))
}

// parameter notes that x is a parameter, if there is one.
func (m *mechanism) parameter(name string, x *tensor.Tensor) *tensor.Tensor {
	if x != nil {
		m.params = append(m.params, leaf(name, x))
	}
	return x
}

// param returns a parameter that must be there, with the given rank.
func (m *mechanism) param(name string, rank int) *tensor.Tensor {
	x := m.parameter(name, m.need(name))
	if x != nil && x.Rank() != rank {
		m.fail(m.bad("tensor %q has shape %v, want %d axes", m.prefix+name, x.Shape(), rank))
	}
	return x
}

// ints returns a tensor of integers of one axis or two as rows, nil if the file has none
// of that name.
func (m *mechanism) ints(name, want string) [][]int {
	t := m.lookup(name)
	if t == nil {
		return nil
	}
	x, err := t.Ints()
	switch {
	case err != nil:
		m.fail(m.bad("%v", reason(err)))
	case len(t.Shape) != 1 && len(t.Shape) != 2 || len(x) == 0:
		m.fail(m.bad("%s has shape %v, want %s", name, t.Shape, want))
	default:
		return slices.Collect(slices.Chunk(x, t.Shape[len(t.Shape)-1]))
	}
	return nil
}

// documents returns the mask of the documents in the file.
func (m *mechanism) documents() attn.Mask {
	if ends := m.ints("documents", "[N] or [B N]"); ends != nil {
		return mask.Documents(ends...)
	}
	return attn.Mask{}
}

// positions returns positions in the file, or the default.
func (m *mechanism) positions(name string) attn.Positions {
	if ids := m.ints(name, "[L] or [B L]"); ids != nil {
		return attn.Positions{IDs: ids}
	}
	return attn.Positions{}
}

// slopes returns the slopes of ALiBi in the file, none for the published ones.
func (m *mechanism) slopes() []float32 {
	x := m.get("slopes")
	if x == nil {
		return nil
	}
	if x.Rank() != 1 {
		m.fail(m.bad("tensor \"slopes\" has shape %v, want [H]", x.Shape()))
	}
	return x.Data()
}

// mask returns the mask in the file; without one nothing is hidden.
func (m *mechanism) mask() attn.Mask {
	t := m.lookup("mask")
	if t == nil {
		return attn.Mask{}
	}
	seen, err := t.Bools()
	if err != nil {
		m.fail(m.bad("%v", reason(err)))
		return attn.Mask{}
	}
	return mask.Allow(seen, t.Shape...)
}

// validLens returns the mask of the lengths in the file.
func (m *mechanism) validLens() attn.Mask {
	t := m.lookup("valid_lens")
	if t == nil {
		return attn.Mask{}
	}
	lens, err := t.Ints()
	if err != nil {
		m.fail(m.bad("%v", reason(err)))
		return attn.Mask{}
	}
	switch len(t.Shape) {
	case 1:
		return mask.Lengths(lens...)
	case 2:
		return mask.LengthsOfQueries(slices.Collect(slices.Chunk(lens, max(t.Shape[1], 1))))
	}
	m.fail(m.bad("valid_lens has shape %v, want [B] or [B Lq]", t.Shape))
	return attn.Mask{}
}

// complete refuses tensors that were not read: with a misspelt name, a mask or a bias would
// otherwise be left out silently.
func (m *mechanism) complete() {
	for _, t := range m.file.Tensors {
		name := strings.TrimPrefix(t.Name, m.prefix)
		if slices.Contains(m.asked, name) {
			continue
		}
		if flag := otherwise(name); flag != "" {
			m.fail(m.bad("tensor %q goes with %s", t.Name, flag))
			return
		}
		m.fail(m.bad("unknown tensor %s%s", shortened(t.Name), meant(name, m.asked)))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m.file.Metadata)) {
		if key != "format" { // which framework wrote the file, as most of them note
			m.fail(m.bad("unknown metadata %s, want none but \"format\"", shortened(key)))
		}
	}
}

// meant says which name was meant, or else which there are.
func meant(name string, names []string) string {
	const slips = 2
	nearest, least := "", slips+1
	for _, n := range names {
		if d := distance(strings.ToLower(name), n); d < least && d < len(n) {
			nearest, least = n, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf(", did you mean %q?", nearest)
	}
	return ", want " + strings.Join(names, ", ")
}

// shortened quotes a name from a file, which may be long.
func shortened(name string) string {
	const most = 60
	if r := []rune(name); len(r) > most {
		name = string(r[:most]) + "…"
	}
	return strconv.Quote(name)
}

// distance returns how many characters must be put in, taken out or replaced to make
// one name of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
