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
	mismatch nn.MismatchError
	read     map[string]bool
	skip     nn.LoadOptions // tensors that need not be read
	ties     [][2]string    // pairs of names of the same tensor
	dict     nn.StateDict
	params   nn.Vars
	lost     lost // removed heads
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
	if b.r == nil {
		return n
	}
	if n > b.tensors {
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
	name = b.prefix + name
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
		b.mismatch.Misshapen = append(b.mismatch.Misshapen, nn.Misshapen{Name: name, Got: info.Shape, Want: shape})
	default:
		if err := b.r.ReadFloat32s(name, nil, 0); err != nil { // the type is checked
			b.wrong = append(b.wrong, err)
			return false
		}
		return true
	}
	return false
}

// entry registers the parameters that are stored in the named tensor.
func (b *Builder) entry(name string, transposed bool, parts ...*tensor.Tensor) {
	name = b.prefix + name
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
	return b.tensor(name, nil, shape...)
}

// tensor is Tensor for a parameter that draw makes if there is no file.
func (b *Builder) tensor(name string, draw func() *tensor.Tensor, shape ...int) *tensor.Tensor {
	if !b.want(name, shape...) || b.plan {
		return nil
	}
	p := tensor.Zeros(shape...).Param()
	if b.rng != nil && draw == nil {
		b.Fail("tensor %s has no initial value", quote.Text(b.prefix+name))
	} else if b.rng != nil {
		p = draw()
	}
	b.entry(name, false, p)
	return p
}

// add registers the parameters of a module that has been drawn.
func (b *Builder) add(name string, m nn.Module) {
	for of, p := range m.Params() {
		b.tensor(name+"."+of, func() *tensor.Tensor { return p }, p.Shape()...)
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
	if b.rng != nil {
		l := nn.NewLinear(in, out, true, b.rng)
		b.add(name, l)
		return l
	}
	l := b.Matrix(name, in, out)
	l.Bias = b.Tensor(name+".bias", out)
	return l
}

// Transposed is Linear for a weight that the file stores transposed: [in out].
func (b *Builder) Transposed(name string, in, out int) *nn.Linear {
	bias := b.Tensor(name+".bias", out)
	l := b.matrix(name+".weight", true, in, out)
	l.Bias = bias
	return l
}

// Matrix is Linear without a bias. Unless Options.Trainable is set, Linear.Packed has the weights and
// Linear.Weight is nil, here and in the maps of MultiHead.
func (b *Builder) Matrix(name string, in, out int) *nn.Linear {
	return b.matrix(name+".weight", false, in, out)
}

// matrix returns a map from in to out features whose weight is the named tensor, without a weight
// in the first call of a Family.New.
func (b *Builder) matrix(name string, transposed bool, in, out int) *nn.Linear {
	shape := []int{out, in}
	if transposed {
		slices.Reverse(shape)
	}
	switch {
	case !b.want(name, shape...) || b.plan:
		return new(nn.Linear)
	case b.packed():
		return &nn.Linear{Packed: b.pack(name, transposed, in, out)[0]}
	case b.rng != nil:
		b.Fail("tensor %s has no initial value", quote.Text(b.prefix+name))
	}
	l := nn.ZeroLinear(in, out, false, nil)
	b.entry(name, transposed, l.Weight)
	return l
}

// matrices returns maps without a bias whose weights are consecutive rows of one tensor, name.weight.
func (b *Builder) matrices(name string, in int, outs ...int) []*nn.Linear {
	maps, sum := make([]*nn.Linear, len(outs)), 0
	for i, out := range outs {
		maps[i], sum = new(nn.Linear), sum+out
	}
	switch name += ".weight"; {
	case !b.want(name, sum, in) || b.plan:
	case b.packed():
		for i, w := range b.pack(name, false, in, outs...) {
			maps[i].Packed = w
		}
	default:
		var weights []*tensor.Tensor
		for i, out := range outs {
			maps[i] = nn.ZeroLinear(in, out, false, nil)
			weights = append(weights, maps[i].Weight)
		}
		b.entry(name, false, weights...)
	}
	return maps
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
	if b.rng != nil {
		l := nn.NewLayerNorm(width)
		l.Eps = eps
		b.add(name, l)
		return l
	}
	weight, bias := name+".weight", name+".bias"
	if !b.Has(weight) && b.Has(name+".gamma") {
		weight, bias = name+".gamma", name+".beta"
	}
	return &nn.LayerNorm{Weight: b.Tensor(weight, width), Bias: b.Tensor(bias, width), Eps: eps}
}

// RMSNorm returns a normalisation without a shift: name.weight.
func (b *Builder) RMSNorm(name string, width int, eps float32) *nn.RMSNorm {
	return &nn.RMSNorm{Weight: b.Tensor(name+".weight", width), Eps: eps}
}

// Maps are the names of an attention layer's linear maps; ".weight" and ".bias" are appended. If
// the file stores the maps of q, k and v as one tensor, QKV is its name, and Q, K and V are
// empty.
type Maps struct {
	Q, K, V, QKV, Out string
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
	if b.format == tensor.BFloat16 || b.format == tensor.Int8 {
		c.Format = tensor.BFloat16
	}
	if b.rng != nil {
		return b.drawHeads(c, maps)
	}
	parts := maps.parts(c)
	if !b.wantHeads(parts, maps) {
		return none
	}
	m, err := b.emptyHeads(c)
	if err != nil {
		b.Fail("%w", err)
		return none
	}
	if !b.plan {
		for _, p := range parts {
			b.readHeads(m, p, maps)
		}
	}
	return m
}

// headPart is a tensor of an attention layer in the file: a map, or those of queries, keys and values.
type headPart struct {
	name string
	in   int
	outs []int // by map
	maps []attn.Projections
	bias bool
}

// out is the number of rows of a tensor.
func (p headPart) out() (sum int) {
	for _, n := range p.outs {
		sum += n
	}
	return sum
}

// parts returns the tensors of a layer.
func (m Maps) parts(c attn.MultiHeadConfig) []headPart {
	q, kv := max(c.Heads, 0)*c.HeadSize, c.KVHeads*c.HeadSize
	one := func(name string, in, out int, which attn.Projections) headPart {
		return headPart{name, in, []int{out}, []attn.Projections{which}, c.Bias&which != 0}
	}
	out := one(m.Out, q, c.Width, attn.Out)
	if m.QKV != "" {
		which := []attn.Projections{attn.Query, attn.Key, attn.Value}
		return []headPart{{m.QKV, c.Width, []int{q, kv, kv}, which, c.Bias&attn.Query != 0}, out}
	}
	return []headPart{one(m.Q, c.Width, q, attn.Query), one(m.K, c.Width, kv, attn.Key), one(m.V, c.Width, kv, attn.Value), out}
}

// wantHeads checks the tensors of a layer and reports whether all fit.
func (b *Builder) wantHeads(parts []headPart, maps Maps) bool {
	fits := true
	for _, p := range parts {
		shape := []int{p.out(), p.in}
		if maps.Transposed {
			slices.Reverse(shape)
		}
		fits = b.want(p.name+".weight", shape...) && fits
		if p.bias {
			fits = b.want(p.name+".bias", p.out()) && fits
		}
	}
	return fits
}

// packsHeads reports whether the maps of a layer are packed, which those of a layer without heads are not.
func (b *Builder) packsHeads(c attn.MultiHeadConfig) bool { return b.packed() && c.Heads > 0 }

// emptyHeads returns a layer to read into, in the first call of a Family.New one without tensors.
func (b *Builder) emptyHeads(c attn.MultiHeadConfig) (*attn.MultiHead, error) {
	if c.Init = nn.ZeroLinear; b.plan || b.packsHeads(c) {
		c.Init = func(_, out int, bias bool, _ *rand.Rand) *nn.Linear {
			return &nn.Linear{Bias: nn.ZeroLinear(0, out, bias, nil).Bias}
		}
	}
	if b.plan {
		c.Bias = attn.NoProjection
	}
	return attn.NewMultiHead(c, nil)
}

// readHeads registers or packs the maps of a tensor.
func (b *Builder) readHeads(m *attn.MultiHead, p headPart, maps Maps) {
	all := map[attn.Projections]*nn.Linear{attn.Query: m.Q, attn.Key: m.K, attn.Value: m.V, attn.Out: m.Out}
	var linear []*nn.Linear
	var weights, biases []*tensor.Tensor
	for _, which := range p.maps {
		l := all[which]
		linear, weights, biases = append(linear, l), append(weights, l.Weight), append(biases, l.Bias)
	}
	begin := len(b.dict)
	if b.packsHeads(m.Config()) {
		for i, w := range b.pack(p.name+".weight", maps.Transposed, p.in, p.outs...) {
			linear[i].Packed = w
		}
	} else {
		b.entry(p.name+".weight", maps.Transposed, weights...)
	}
	if p.bias {
		b.entry(p.name+".bias", false, biases...)
	}
	if maps.ByHead && len(linear) > 1 {
		for i := range b.dict[begin:] {
			b.dict[begin+i].Interleaved = m.Config().Heads
		}
	}
}

// drawHeads is MultiHead for a new model.
func (b *Builder) drawHeads(c attn.MultiHeadConfig, maps Maps) *attn.MultiHead {
	m, err := attn.NewMultiHead(c, b.rng)
	if err != nil || maps.QKV != "" {
		b.Fail("an attention layer cannot be drawn: %v", err)
		return new(attn.MultiHead)
	}
	b.add(maps.Q, m.Q)
	b.add(maps.K, m.K)
	b.add(maps.V, m.V)
	b.add(maps.Out, m.Out)
	return m
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
