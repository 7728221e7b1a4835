package models

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// Builder builds the layers of a Family from the names and sizes of their tensors in the file. It
// records errors, so constructors need not check for them.
//
// Family.New is called twice. In the first call, the Builder compares names and shapes with the
// headers of the files and returns layers whose tensors are nil. The second call, which allocates
// and reads the tensors, is made only if everything fits and no tensor is left over.
//
// NewTranslator builds without files: the first call only counts the numbers of the tensors, and the
// second draws them.
type Builder struct {
	Config *Settings
	*building
	prefix string
}

// building is the state that all Builders of a model share.
type building struct {
	*directory
	plan     bool       // only names and shapes are checked; no tensor is read
	tensors  int        // of the file
	rng      *rand.Rand // draws the parameters, in the second call without files
	size     int        // numbers in the tensors so far, without files
	model    *Model     // which has the tensors that the new model may have, without files
	wrong    []error
	mismatch statedict.MismatchError
	read     map[string]bool
	skip     statedict.LoadOptions // tensors that need not be read
	ties     [][2]string           // pairs of names of the same tensor
	dict     nn.StateDict
	params   nn.Vars
	lost     lost      // removed heads
	lora     *taskLoRA // adapters of tasks in the file, nil if there are none
}

func newBuilder(s *directory, plan bool) *Builder {
	b := &building{directory: s, plan: plan, read: map[string]bool{}}
	if s.r != nil {
		b.tensors = len(s.r.Tensors())
	}
	return &Builder{Config: s.settings, building: b}
}

// At returns a Builder that adds prefix and a dot to all tensor names. If prefix is empty, it
// returns b.
func (b *Builder) At(prefix string) *Builder {
	if prefix == "" {
		return b
	}
	return &Builder{b.Config, b.building, b.prefix + prefix + "."}
}

// Within returns At(prefix) if there are tensors with that prefix, and otherwise b: the files of
// a bare model lack the prefix that the same model has with a head.
func (b *Builder) Within(prefix string) *Builder {
	if b.HasAny(prefix + ".") {
		return b.At(prefix)
	}
	return b
}

// Has reports whether the file has a tensor.
func (b *Builder) Has(name string) bool {
	if b.r != nil {
		_, ok := b.r.Lookup(b.prefix + name)
		return ok
	}
	return b.has(func(n string) bool { return n == b.prefix+name })
}

// has reports whether the file, or the model that is copied, has a tensor whose name fits.
func (b *Builder) has(fits func(name string) bool) bool {
	switch {
	case b.r != nil:
		return slices.ContainsFunc(b.r.Tensors(), func(i safetensors.Info) bool { return fits(i.Name) })
	case b.model != nil:
		return slices.ContainsFunc(b.model.dict, func(e nn.Entry) bool { return fits(e.Name) })
	}
	return false
}

// HasAny reports whether the file has a tensor whose name begins with prefix.
func (b *Builder) HasAny(prefix string) bool {
	return b.has(func(name string) bool { return strings.HasPrefix(name, b.prefix+prefix) })
}

// Fail records an error: the model cannot be built.
func (b *Builder) Fail(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Errorf(format, args...))
}

// Count returns a setting that counts parts with their own tensors, such as layers. A count above
// the number of tensors is an error.
func (b *Builder) Count(key string) int {
	n := b.Config.Size(key)
	if b.r != nil && n > b.tensors {
		b.Config.Fail(key, "is %d, but the file has %d tensors", n, b.tensors)
		return 1
	}
	return n
}

// Unread lists tensors that are not read, by full name or by a pattern of package path: buffers
// that are computed, such as "*position_ids".
func (b *Builder) Unread(patterns ...string) { b.skip.Unread = append(b.skip.Unread, patterns...) }

// Tied declares that the tensor name shares the memory of the tensor same (weight tying). The file
// may lack name; if present, both must be equal. Both are full names.
func (b *Builder) Tied(name, same string) {
	if b.r == nil {
		return
	}
	if _, there := b.r.Lookup(name); !there {
		return
	}
	b.ties = append(b.ties, [2]string{name, same})
	b.Unread(name)
}

// Name returns the full name of a tensor, for Tied.
func (b *Builder) Name(name string) string { return b.prefix + name }

// hopeless is the panic value of want when more tensors are missing than the file has. Each count in config.json is at most
// the number of tensors, see Count, but the product of two, such as layers and experts, may be without bounds.
type hopeless struct{}

// want checks the shape of a tensor against the file and reports whether it fits.
func (b *Builder) want(name string, shape ...int) bool {
	name = b.stored(name)
	if b.read[name] {
		b.Fail("tensor %s is used for two parameters of the model", quote.Text(name))
		return false
	}
	b.read[name] = true
	if b.r == nil {
		n := 1
		for _, size := range shape {
			n *= size
		}
		b.size += n
		return true
	}
	info, there := b.r.Lookup(name)
	switch {
	case !there:
		b.mismatch.Missing = append(b.mismatch.Missing, name)
		if len(b.mismatch.Missing) > max(1000, b.tensors) {
			panic(hopeless{})
		}
	case !slices.Equal(info.Shape, shape):
		b.mismatch.Misshapen = append(b.mismatch.Misshapen, statedict.Misshapen{Name: name, Got: info.Shape, Want: shape})
	default:
		if err := b.r.ReadFloat32s(name, nil, 0); err != nil { // the type is checked
			b.wrong = append(b.wrong, err)
			return false
		}
		b.wantLoRA(name, shape)
		return true
	}
	return false
}

// entry registers the parameters that are stored in the named tensor.
func (b *Builder) entry(name string, transposed bool, parts ...*tensor.Tensor) {
	name = b.stored(name)
	b.dict = append(b.dict, nn.Entry{Name: name, Parts: parts, Transposed: transposed})
	for i, p := range parts {
		if len(parts) == 1 {
			b.params = append(b.params, nn.Var{Name: name, Tensor: p})
			continue
		}
		b.params = append(b.params, nn.Var{Name: fmt.Sprintf("%s.%d", name, i), Tensor: p})
	}
}

// Tensor returns a parameter of the given shape, nil in the first call of a Family.New.
func (b *Builder) Tensor(name string, shape ...int) *tensor.Tensor {
	if !b.want(name, shape...) || b.plan {
		return nil
	}
	p := tensor.Zeros(shape...).Param()
	b.entry(name, false, p)
	return p
}

// draw sets the parameters of a layer of a new model to those of a layer that a function draws.
func (b *Builder) draw(layer nn.Module, drawn func(rng *rand.Rand) nn.Module) {
	if b.rng != nil {
		copyParams(layer.Params(), drawn(b.rng).Params())
	}
}

// Fixed is Tensor for a constant: it is loaded and saved, but not trained.
func (b *Builder) Fixed(name string, shape ...int) *tensor.Tensor {
	if !b.want(name, shape...) || b.plan {
		return nil
	}
	x := tensor.Zeros(shape...)
	b.dict = append(b.dict, nn.Entry{Name: b.prefix + name, Parts: []*tensor.Tensor{x}})
	return x
}

// Embedding returns a table of n vectors: name.weight.
func (b *Builder) Embedding(name string, n, width int) *nn.Embedding {
	return &nn.Embedding{Weight: b.Tensor(name+".weight", n, width)}
}

// Linear returns a map from in to out features, with a bias: name.weight [out in] and
// name.bias.
func (b *Builder) Linear(name string, in, out int) *nn.Linear {
	l := b.Matrix(name, in, out)
	l.Bias = b.Tensor(name+".bias", out)
	b.draw(l, func(rng *rand.Rand) nn.Module { return nn.NewLinear(in, out, true, rng) })
	return l
}

// Transposed is Linear for a weight that the file stores transposed: [in out].
func (b *Builder) Transposed(name string, in, out int) *nn.Linear {
	bias := b.Tensor(name+".bias", out)
	l := b.matrices(name+".weight", true, in, out)[0]
	l.Bias = bias
	return l
}

// Matrix is Linear without a bias. Unless Options.Trainable is set, Linear.Packed has the weights and
// Linear.Weight is nil, here and in the maps of MultiHead.
func (b *Builder) Matrix(name string, in, out int) *nn.Linear {
	return b.matrices(name+".weight", false, in, out)[0]
}

// matrices returns maps without a bias whose weights are consecutive rows, or columns if they are transposed, of one
// tensor. In the first call of a Family.New, they have no weights.
func (b *Builder) matrices(name string, transposed bool, in int, outs ...int) []*nn.Linear {
	maps := emptyMaps(len(outs))
	if b.wantWeights(name, transposed, in, outs) && !b.plan {
		b.weights(name, transposed, maps, in, outs...)
	}
	return maps
}

// emptyMaps returns n maps without weights.
func emptyMaps(n int) []*nn.Linear {
	maps := make([]*nn.Linear, n)
	for i := range maps {
		maps[i] = new(nn.Linear)
	}
	return maps
}

// joined is matrices for maps that may have a bias, whose parts are joined in the same way: name.bias.
func (b *Builder) joined(name string, bias bool, in int, outs ...int) []*nn.Linear {
	maps := b.matrices(name+".weight", false, in, outs...)
	if bias && b.want(name+".bias", sum(outs)) && !b.plan {
		b.biases(name, maps, outs...)
	}
	return maps
}

// transposes returns n maps without a bias whose transposed weights, [in out] each, are one below the other in a tensor.
func (b *Builder) transposes(name string, n, in, out int) []*nn.Linear {
	maps := emptyMaps(n)
	if b.want(name, n*in, out) && !b.plan {
		b.weights(name, true, maps, in, slices.Repeat([]int{out}, n)...)
		b.dict[len(b.dict)-1].Separate = true
	}
	return maps
}

// CausalConv returns a causal convolution of n tokens: name.weight [channels 1 n] and, if it has one, name.bias.
func (b *Builder) CausalConv(name string, channels, n int, bias bool) *nn.CausalConv {
	c := &nn.CausalConv{Weight: b.convWeight(name, []string{name}, n, []int{channels})}
	if bias {
		c.Bias = b.Tensor(name+".bias", channels)
	}
	return c
}

// wantWeights checks the shape of a tensor that matrices read.
func (b *Builder) wantWeights(name string, transposed bool, in int, outs []int) bool {
	shape := []int{sum(outs), in}
	if transposed {
		slices.Reverse(shape)
	}
	return b.want(name, shape...)
}

// weights gives maps their weights, unless they have some: consecutive rows of a tensor, as in matrices.
func (b *Builder) weights(name string, transposed bool, maps []*nn.Linear, in int, outs ...int) {
	if b.packed() && in > 0 && slices.Min(outs) > 0 { // a layer without heads is not packed
		for i, w := range b.pack(name, transposed, in, outs...) {
			maps[i].Packed = w
		}
		return
	}
	var parts []*tensor.Tensor
	for i, out := range outs {
		if maps[i].Weight == nil {
			maps[i].Weight = tensor.Zeros(out, in).Param()
		}
		parts = append(parts, maps[i].Weight)
	}
	b.entry(name, transposed, parts...)
}

// biases gives maps their parts of one tensor, name.bias, unless they have some.
func (b *Builder) biases(name string, maps []*nn.Linear, outs ...int) {
	var parts []*tensor.Tensor
	for i, out := range outs {
		if maps[i].Bias == nil {
			maps[i].Bias = tensor.Zeros(out).Param()
		}
		parts = append(parts, maps[i].Bias)
	}
	b.entry(name+".bias", false, parts...)
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// gain returns a LayerNorm without a shift: name.weight.
func (b *Builder) gain(name string, width int, eps float32) *nn.LayerNorm {
	n := &nn.LayerNorm{Weight: b.Tensor(name+".weight", width), Eps: eps}
	if n.Weight != nil {
		n.Bias = tensor.Zeros(width)
	}
	return n
}

// LayerNorm returns a normalisation: name.weight and name.bias, which old files call gamma
// and beta.
func (b *Builder) LayerNorm(name string, width int, eps float32) *nn.LayerNorm {
	weight, bias := name+".weight", name+".bias"
	if !b.Has(weight) && b.Has(name+".gamma") {
		weight, bias = name+".gamma", name+".beta"
	}
	l := &nn.LayerNorm{Weight: b.Tensor(weight, width), Bias: b.Tensor(bias, width), Eps: eps}
	b.draw(l, func(*rand.Rand) nn.Module { return nn.NewLayerNorm(width) })
	return l
}

// RMSNorm returns a normalisation without a shift: name.weight.
func (b *Builder) RMSNorm(name string, width int, eps float32) *nn.RMSNorm {
	return &nn.RMSNorm{Weight: b.Tensor(name+".weight", width), Eps: eps}
}

// Maps are the names of an attention layer's linear maps; ".weight" and ".bias" are appended. If
// the file stores the maps of q, k and v as one tensor, QKV is its name, and Q, K and V are
// empty. Gate is the map of an OutputGate; if it is empty, Q has the query and the gate of the first head, then those of
// the second, and so on, as in Qwen3-Next. If V is empty, too, values are what the map of keys computes; if K is, the
// caller sets both maps.
type Maps struct {
	Q, K, V, QKV, Gate, Out string
	// Transposed means that the file stores the transposed weights, [in out].
	Transposed bool
	// ByHead means that QKV has the query, the key and the value of the first head, then those of the second, and so on.
	ByHead bool
}

// MultiHead returns an attention layer. Its maps have a bias where c.Bias says so. The parameters
// of norms, score and position in c are also read from b, by their own names.
func (b *Builder) MultiHead(c attn.MultiHeadConfig, maps Maps) *attn.MultiHead {
	none := new(attn.MultiHead) // returned after an error
	if c.HeadSize == 0 {
		if c.Heads < 1 || c.Width%c.Heads != 0 {
			b.Fail("width %d is not divisible by %d heads", c.Width, c.Heads)
			return none
		}
		c.HeadSize = c.Width / c.Heads
	}
	c.KVHeads = cmp.Or(c.KVHeads, max(c.Heads, 0))
	c.Format = cmp.Or(b.attentionFormat(), c.Format)
	q, kv := max(c.Heads, 0)*c.HeadSize, c.KVHeads*c.HeadSize
	type stored struct {
		name string
		bias attn.Projections
		in   int
		outs []int
	}
	all := []stored{{maps.QKV, attn.Query, c.Width, []int{q, kv, kv}}}
	if maps.QKV == "" {
		all = []stored{{maps.Q, attn.Query, c.Width, []int{q}}, {maps.K, attn.Key, c.Width, []int{kv}}, {maps.V, attn.Value, c.Width, []int{kv}}}
		all = slices.DeleteFunc(all, func(x stored) bool { return x.name == "" })
	}
	gate := max(c.Heads, 0) * cmp.Or(c.OutputGate.Size, c.HeadSize)
	switch {
	case c.OutputGate.Activation == nil:
	case maps.Gate != "":
		all = append(all, stored{maps.Gate, attn.Gate, c.Width, []int{gate}})
	case maps.QKV != "":
		b.Fail("an output gate of a layer with one map of q, k and v, want the name of its map")
		return none
	default:
		all[0].outs = append(all[0].outs, gate)
		if c.Bias &^= attn.Gate; c.Bias&attn.Query != 0 {
			c.Bias |= attn.Gate
		}
	}
	all = append(all, stored{maps.Out, attn.Out, q, []int{c.Width}})
	// The file's shapes are checked before the layer has memory.
	fits := true
	for _, x := range all {
		fits = b.wantWeights(x.name+".weight", maps.Transposed, x.in, x.outs) && fits
		fits = (c.Bias&x.bias == 0 || b.want(x.name+".bias", sum(x.outs))) && fits
	}
	if !fits {
		return none
	}
	switch {
	case b.plan || b.packed():
		c.Init = func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) }
	case b.rng == nil:
		c.Init = nn.ZeroLinear
	}
	m, err := attn.NewMultiHead(c, b.rng)
	if err != nil {
		b.Fail("%w", err)
		return none
	}
	linear := []*nn.Linear{m.Q, m.K, m.V, m.Out}
	if maps.QKV == "" && maps.V == "" {
		m.V, linear = m.K, slices.Delete(linear, 1+min(1, len(maps.K)), 3)
	}
	switch {
	case m.Gate == nil:
	case maps.Gate != "":
		linear = slices.Insert(linear, 3, m.Gate)
	default:
		linear = slices.Insert(linear, 1, m.Gate)
	}
	for _, x := range all {
		if b.plan {
			break
		}
		begin, n := len(b.dict), len(x.outs)
		b.weights(x.name+".weight", maps.Transposed, linear[:n], x.in, x.outs...)
		if c.Bias&x.bias != 0 {
			b.biases(x.name, linear[:n], x.outs...)
		}
		for i := range b.dict[begin:] {
			if n > 1 && (maps.ByHead || maps.QKV == "") {
				b.dict[begin+i].Interleaved = c.Heads
			}
		}
		linear = linear[n:]
	}
	return m
}

// attentionFormat returns the format of the products of attention, 0 for the tape's.
func (b *Builder) attentionFormat() tensor.Format {
	if b.format == tensor.BFloat16 || b.format == tensor.Int8 {
		return tensor.BFloat16
	}
	return 0
}

// order sorts the parameters from the given one on by the prefixes of their names. Each has exactly one of them.
func (b *Builder) order(from int, prefixes ...string) {
	all := slices.Clone(b.params[from:])
	b.params = b.params[:from]
	for _, p := range prefixes {
		for _, v := range all {
			if strings.HasPrefix(v.Name, b.prefix+p) {
				b.params = append(b.params, v)
			}
		}
	}
}

// finish returns the errors recorded while building a model, including tensors that are left
// over.
func (b *Builder) finish() error {
	if len(b.wrong) > 0 {
		return b.wrong[0]
	}
	if b.r == nil {
		return nil
	}
	var err error
	if b.mismatch.Unread, err = b.skip.Leftover(b.r, b.read); err != nil || b.mismatch.Empty() {
		return err
	}
	return &b.mismatch
}
