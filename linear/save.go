package linear

import (
	"fmt"
	"io"
	"slices"

	"github.com/attn-go/attn/internal/recurrence"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// The tensors of a file of a State. A state is not saved after its last token but before its last group of up to 4
// tokens, with these, so that a program that reads it computes the same bits as the one that wrote it.
const (
	fileStates  = "states"  // [B G E V]
	fileKeys    = "keys"    // [B G 4 E]
	fileValues  = "values"  // [B G 4 V]
	fileDecays  = "decays"  // [B G max(E, 4)]
	fileLengths = "lengths" // [B]
	fileTokens  = "tokens"  // [B G]: tokens of the group
	fileEach    = "each"    // [B G]: whether decays are for each element of a key
	fileMaxima  = "maxima"  // [B 2 G E] with Exp, before the group and after it
	fileInputs  = "inputs"  // [B Conv−1 C] of a LayerState
)

// Write writes the State as a safetensors file.
func (s *State) Write(w io.Writer) error { return (&safetensors.File{Tensors: s.tensors()}).Write(w) }

// WriteFile writes the State to the safetensors file at path. An existing file is replaced when the new one is complete.
func (s *State) WriteFile(path string) error {
	return (&safetensors.File{Tensors: s.tensors()}).WriteFile(path)
}

func (s *State) tensors() []safetensors.Tensor {
	c := &s.config
	b, g, e, v := len(s.seqs), c.Heads, c.KeySize, c.columns()
	var states, keys, values, decays, maxima []float32
	var lengths, tokens []int
	var each []bool
	for _, q := range s.seqs {
		lengths, maxima = append(lengths, q.n), append(maxima, q.maxima...)
		for _, h := range q.heads {
			p := h.Parts(e, v)
			states, keys = append(states, p.State...), append(keys, p.Keys...)
			values, decays = append(values, p.Values...), append(decays, p.Decay...)
			tokens, each = append(tokens, p.Tokens), append(each, p.Each)
		}
	}
	all := []safetensors.Tensor{
		safetensors.FromFloat32s(fileStates, []int{b, g, e, v}, states),
		safetensors.FromFloat32s(fileKeys, []int{b, g, 4, e}, keys), safetensors.FromFloat32s(fileValues, []int{b, g, 4, v}, values),
		safetensors.FromFloat32s(fileDecays, []int{b, g, max(e, 4)}, decays), safetensors.FromInts(fileLengths, []int{b}, lengths),
		safetensors.FromInts(fileTokens, []int{b, g}, tokens), safetensors.FromBools(fileEach, []int{b, g}, each),
	}
	if c.Exp {
		all = append(all, safetensors.FromFloat32s(fileMaxima, []int{b, 2, g, e}, maxima))
	}
	return all
}

// ReadFile reads the file at path into s, which must have the configuration of the State that wrote it, and its number
// of sequences.
//
// Errors: those of safetensors.Read; tensors that are missing, unknown or have other shapes; numbers that no State has.
// After an error s is unchanged.
func (s *State) ReadFile(path string) error {
	f, err := safetensors.Read(path)
	if err != nil {
		return err
	}
	return s.read(f, path)
}

func (s *State) read(f *safetensors.File, path string) error {
	c := &s.config
	b, g, e, v := len(s.seqs), c.Heads, c.KeySize, c.columns()
	r := fileReader{f: f}
	states, keys := r.floats(fileStates, b, g, e, v), r.floats(fileKeys, b, g, 4, e)
	values, decays := r.floats(fileValues, b, g, 4, v), r.floats(fileDecays, b, g, max(e, 4))
	lengths, tokens, each := r.ints(fileLengths, b), r.ints(fileTokens, b, g), r.bools(fileEach, b, g)
	var maxima []float32
	if c.Exp {
		maxima = r.floats(fileMaxima, b, 2, g, e)
	}
	r.end()
	for i, n := range tokens {
		if n < 0 || n > 3 || n > lengths[i/g] {
			r.fail("%s[%d] is %d, want 0 to 3, and at most the length", fileTokens, i, n)
		}
	}
	if r.err != nil {
		return fmt.Errorf("linear: %s: %w", path, r.err)
	}
	for i := range s.seqs {
		q := sequence{n: lengths[i]}
		for h := range g {
			n := i*g + h
			state := recurrence.NewState(e, v)
			state.SetParts(recurrence.Parts{
				State: states[n*e*v:][:e*v], Keys: keys[n*4*e:][:4*e], Values: values[n*4*v:][:4*v], Decay: decays[n*max(e, 4):][:max(e, 4)],
				Tokens: tokens[n], Each: each[n],
			}, e, v)
			q.heads = append(q.heads, state)
		}
		if c.Exp {
			q.maxima = maxima[i*2*g*e:][:2*g*e]
		}
		s.seqs[i] = q
	}
	return nil
}

// fileReader reads tensors of a file, and keeps the first error.
type fileReader struct {
	f    *safetensors.File
	read []string
	err  error
}

func (r *fileReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// tensor returns a tensor of the given shape, or nil after an error.
func (r *fileReader) tensor(name string, shape []int) *safetensors.Tensor {
	r.read = append(r.read, name)
	i := slices.IndexFunc(r.f.Tensors, func(t safetensors.Tensor) bool { return t.Name == name })
	switch {
	case i < 0:
		r.fail("no tensor %s, want the file of a State", name)
	case !slices.Equal(r.f.Tensors[i].Shape, shape):
		r.fail("%s has shape %v, want %v as this State", name, r.f.Tensors[i].Shape, shape)
	case r.err == nil:
		return &r.f.Tensors[i]
	}
	return nil
}

func (r *fileReader) floats(name string, shape ...int) []float32 {
	return fileNumbers(r, r.tensor(name, shape), (*safetensors.Tensor).Float32s)
}

func (r *fileReader) ints(name string, shape ...int) []int {
	return fileNumbers(r, r.tensor(name, shape), (*safetensors.Tensor).Ints)
}

func (r *fileReader) bools(name string, shape ...int) []bool {
	return fileNumbers(r, r.tensor(name, shape), (*safetensors.Tensor).Bools)
}

func fileNumbers[T any](r *fileReader, t *safetensors.Tensor, decode func(*safetensors.Tensor) ([]T, error)) []T {
	if t == nil {
		return nil
	}
	x, err := decode(t)
	if err != nil {
		r.fail("%w", err)
		return nil
	}
	return x
}

// end refuses tensors that were not read.
func (r *fileReader) end() {
	for _, t := range r.f.Tensors {
		if !slices.Contains(r.read, t.Name) {
			r.fail("unknown tensor %s, want only those of a State", t.Name)
		}
	}
}

// WriteFile writes the state to the safetensors file at path; see State.WriteFile.
func (s *LayerState) WriteFile(path string) error {
	all := s.heads.tensors()
	if s.inputs != nil {
		all = append(all, safetensors.FromFloat32s(fileInputs, s.inputs.Shape(), s.inputs.Data()))
	}
	return (&safetensors.File{Tensors: all}).WriteFile(path)
}

// ReadFile reads a file of WriteFile into s, a state of the same layer with as many sequences; see State.ReadFile.
func (s *LayerState) ReadFile(path string) error {
	f, err := safetensors.Read(path)
	if err != nil {
		return err
	}
	var inputs *tensor.Tensor
	if s.inputs != nil {
		r := fileReader{f: f}
		if x := r.floats(fileInputs, s.inputs.Shape()...); r.err == nil {
			inputs = tensor.New(x, s.inputs.Shape()...)
		} else {
			return fmt.Errorf("linear: %s: %w", path, r.err)
		}
		f.Tensors = slices.DeleteFunc(slices.Clone(f.Tensors), func(t safetensors.Tensor) bool { return t.Name == fileInputs })
	}
	if err := s.heads.read(f, path); err != nil {
		return err
	}
	s.inputs = inputs
	return nil
}
