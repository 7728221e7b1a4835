package apply

import (
	"slices"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// A rule is how a token of linear attention changes the state, with the name of ONNX's operator LinearAttention.
type rule struct {
	name        string
	decay, beta bool // whether the rule has them
}

var rules = []rule{{"linear", false, false}, {"gated", true, false}, {"delta", false, true}, {"gated_delta", true, true}}

// Rules returns the names of the rules.
func Rules() []string { return rulesWith(func(rule) bool { return true }) }

// rulesWith returns the names of the rules that satisfy a condition.
func rulesWith(ok func(rule) bool) []string {
	var names []string
	for _, r := range rules {
		if ok(r) {
			names = append(names, r.name)
		}
	}
	return names
}

// runRule is run for attention without a softmax.
func (m Mechanism) runRule(in *reader) (*safetensors.File, error) {
	r := rules[slices.Index(Rules(), *m.Rule)] // the parser has checked the name
	q, k, v := in.need("q"), in.need("k"), in.need("v")
	o := linear.Options{Weights: m.Weights, Bidirectional: m.Bidirectional, State: in.floats("state"), Lens: in.lens(), Documents: in.ints("documents", "[N] or [B N]")}
	if r.decay {
		o.Decay = in.need("decay")
	}
	if r.beta {
		o.Beta = in.need("beta")
	}
	if m.Scale != nil {
		o.Scale = *m.Scale
	}
	if m.Documents != nil {
		if o.Documents != nil {
			in.fail(flags.Errorf("--documents and the tensor documents cannot be used together"))
		}
		o.Documents = [][]int{m.Documents}
	}
	results := m.results(in)
	documents := 1
	for _, ends := range o.Documents {
		documents = max(documents, len(ends))
	}
	in.plausibleState(q, k, v, documents, m.Weights)
	if in.has("dweights") {
		in.fail(in.bad("tensor \"dweights\": with --rule, no gradient flows through weights"))
	}
	in.complete()
	if in.err != nil {
		return nil, in.err
	}
	leaves := nn.StateDict{leaf("q", q), leaf("k", k), leaf("v", v), leaf("decay", o.Decay), leaf("beta", o.Beta), leaf("state", o.State)}
	return compute(leaves, results, func(t *tensor.Tape) map[string]*tensor.Tensor {
		y := linear.Attend(t, q, k, v, o)
		return map[string]*tensor.Tensor{"out": y.Out, "state": y.State, "weights": y.Weights}
	}), nil
}

// lens returns the tensor valid_lens of the file, one length for each sequence, or nil if there is none.
func (r *reader) lens() []int {
	t, lens := read(r, "valid_lens", (*safetensors.Tensor).Ints)
	if t != nil && len(t.Shape) != 1 {
		r.fail(r.bad("valid_lens has shape %v, want [B] with --rule", t.Shape))
	}
	return lens
}

// plausibleState rejects small tensors whose outputs, states of documents or weights would exhaust memory.
func (r *reader) plausibleState(q, k, v *tensor.Tensor, documents int, weights bool) {
	if r.err != nil || q.Rank() < 3 || k.Rank() != q.Rank() || v.Rank() != q.Rank() {
		return // other code reports inconsistent shapes
	}
	heads := max(q.Len()/q.Dim(-1)/q.Dim(-2), v.Len()/v.Dim(-1)/v.Dim(-2)) // times sequences
	l, size := float64(q.Dim(-2)), float64(v.Dim(-1))
	each := size * max(l, float64(q.Dim(-1))*float64(documents))
	if weights {
		each = max(each, l*l)
	}
	if n := float64(heads) * each; n > mostNumbers {
		r.fail(r.bad("q %v, k %v and v %v would need arrays of %.1e numbers, want at most %d",
			q.Shape(), k.Shape(), v.Shape(), n, mostNumbers))
	}
}
