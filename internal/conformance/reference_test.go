package conformance

import (
	"math"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// reference implements the specification of the operator in float64, without package attn: every score, then the sum
// of all biases, then a softmax.
func (n *attention) reference() map[string][]float64 {
	q, k, v := array(n.q, n.QNumHeads), array(n.k, n.KVNumHeads), array(n.v, n.KVNumHeads)
	past := 0
	if n.pastKey != nil {
		past = n.pastKey.Dim(2)
		k, v = follow(array(n.pastKey, nil), k), follow(array(n.pastValue, nil), v)
	}
	b, h, lq, e := len(q), len(q[0]), len(q[0][0]), n.q.Dim(-1)
	if n.q.Rank() == 3 {
		e /= h
	}
	group, lk, size := h/len(k[0]), past+n.k.Dim(-2), n.v.Dim(-1)
	if n.q.Rank() == 3 {
		size /= len(k[0])
	}
	scale := 1 / math.Sqrt(float64(e))
	if n.Scale != nil {
		scale = float64(*n.Scale)
	}

	y := make([]float64, b*h*lq*size)
	var scores []float64
	for s := range b {
		offset, valid := past, lk
		if n.nonpad != nil {
			offset, valid = n.nonpad[s]-lq, n.nonpad[s]
		}
		for head := range h {
			for i := range lq {
				raw, capped, biased := make([]float64, lk), make([]float64, lk), make([]float64, lk)
				top, open := math.Inf(-1), false
				for j := range lk {
					for f, x := range q[s][head][i] {
						raw[j] += scale * x * k[s][head/group][j][f]
					}
					capped[j] = raw[j]
					if n.Softcap > 0 {
						capped[j] = float64(n.Softcap) * math.Tanh(raw[j]/float64(n.Softcap))
					}
					bias := n.mask.bias(n.opset, s, head, i, j)
					p := i + offset
					if n.IsCausal == 1 && j > p ||
						n.LeftWindowSize >= 0 && p-j > n.LeftWindowSize ||
						n.RightWindowSize >= 0 && j-p > n.RightWindowSize || j >= valid {
						bias = math.Inf(-1)
					}
					biased[j] = capped[j] + bias
					top, open = max(top, biased[j]), open || !math.IsInf(bias, -1)
				}
				weights, sum := make([]float64, lk), 0.0
				for j := range weights {
					if open {
						weights[j] = math.Exp(biased[j] - top)
						sum += weights[j]
					}
				}
				for j := range weights {
					if open {
						weights[j] /= sum
					}
					for f, x := range v[s][head/group][j] {
						at := ((s*h+head)*lq+i)*size + f
						if n.q.Rank() == 3 {
							at = ((s*lq+i)*h+head)*size + f
						}
						y[at] += weights[j] * x
					}
				}
				scores = append(scores, [][]float64{raw, capped, biased, weights}[n.QKMatmulOutputMode]...)
			}
		}
	}
	return map[string][]float64{"Y": y, "present_key": flat(k), "present_value": flat(v), "qk_matmul_output": scores}
}

// bias returns the mask's contribution to a score.
func (m *maskInput) bias(opset, b, h, i, j int) float64 {
	if m == nil {
		return 0
	}
	last := len(m.shape) - 1
	if opset >= 24 && j >= m.shape[last] {
		return math.Inf(-1)
	}
	at, index := 0, []int{b, h, i, j}
	for axis, size := range m.shape {
		at *= size
		if size > 1 {
			at += index[axis+4-len(m.shape)]
		}
	}
	switch {
	case m.numbers != nil:
		return float64(m.numbers[at])
	case !m.booleans[at]:
		return math.Inf(-1)
	}
	return 0
}

// array returns x as [B][heads][L][size].
func array(x *tensor.Tensor, heads *int) [][][][]float64 {
	b, h, l, size := x.Dim(0), 0, x.Dim(-2), x.Dim(-1)
	if x.Rank() == 4 {
		h = x.Dim(1)
	} else {
		h = *heads
		size /= h
	}
	y := make([][][][]float64, b)
	for s := range y {
		y[s] = make([][][]float64, h)
		for head := range y[s] {
			y[s][head] = make([][]float64, l)
			for i := range l {
				row := make([]float64, size)
				for f := range row {
					if x.Rank() == 4 {
						row[f] = float64(x.At(s, head, i, f))
					} else {
						row[f] = float64(x.At(s, i, head*size+f))
					}
				}
				y[s][head][i] = row
			}
		}
	}
	return y
}

// follow returns a followed by b along the third axis.
func follow(a, b [][][][]float64) [][][][]float64 {
	for s := range a {
		for h := range a[s] {
			a[s][h] = append(a[s][h], b[s][h]...)
		}
	}
	return a
}

func flat(x [][][][]float64) []float64 {
	var y []float64
	for _, s := range x {
		for _, h := range s {
			for _, row := range h {
				y = append(y, row...)
			}
		}
	}
	return y
}

// expected converts the reference's numbers to the outputs of a case, in the specified shapes. They are not rounded
// to half precision, because that could hide an error.
func (n *attention) expected() []output {
	q, k, v := split(n.q, n.QNumHeads), split(n.k, n.KVNumHeads), split(n.v, n.KVNumHeads)
	b, h, lq, g := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(1)
	lk := k.Dim(2)
	if n.pastKey != nil {
		lk += n.pastKey.Dim(2)
	}
	shapes := map[string][]int{
		"Y":                {b, h, lq, v.Dim(3)},
		"present_key":      {b, g, lk, k.Dim(3)},
		"present_value":    {b, g, lk, v.Dim(3)},
		"qk_matmul_output": {b, h, lq, lk},
	}
	if n.q.Rank() == 3 {
		shapes["Y"] = []int{b, lq, h * v.Dim(3)}
	}
	var all []output
	for name, values := range n.reference() {
		all = append(all, output{name, safetensors.F32, shapes[name], values})
	}
	return all
}
