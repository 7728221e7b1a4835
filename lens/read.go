package lens

import (
	"context"
	"errors"
	"math"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Prediction is a token that a state predicts.
type Prediction struct {
	Token       int
	Logit       float64
	Probability float64
}

// LogitLens returns the top tokens that the model would predict from the residual stream before each block, and behind the
// last one, at each position: [layers + 1][L][top]. Each state passes the final norm and the head.
//
// Errors: those of Record; a model without logits of tokens; one without a final norm, as with norms that follow each sum,
// whose states the head has not been trained to read.
//
// Source: nostalgebraist, "interpreting GPT: the logit lens", 2020.
func (l *Lens) LogitLens(ctx context.Context, x models.Batch, top int) ([][][]Prediction, error) {
	head, norm := l.model.Head(), l.model.FinalNorm()
	switch {
	case head == nil || head.Task != models.NextWord && head.Task != models.MaskedWords:
		return nil, errors.New("lens: LogitLens: the model predicts no tokens")
	case norm == nil:
		return nil, errors.New("lens: LogitLens: the model has no final norm, so its head reads only the last layer")
	}
	r, err := l.Record(ctx, x, Residual)
	if err != nil {
		return nil, err
	}
	var all [][][]Prediction
	t := tape(ctx, tensor.Infer)
	for _, name := range blocks(l.model, Residual) {
		if z := l.model.Sizes(); z.Decoder != nil && name[0] == 'e' {
			continue // the head reads the decoder
		}
		states := r.values[name][Residual]
		var layer [][]Prediction
		err := tensor.Catch(func() {
			for p := range states.Dim(0) { // one position after another: a row of logits is long
				h := norm.Forward(t, states.Rows(p, p+1))
				logits := head.Logits(t, tensor.Reshape(t, h, 1, 1, -1))
				layer = append(layer, predictions(logits.Data(), top))
				t.Reset()
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, layer)
	}
	return all, nil
}

// predictions returns the top tokens of a row of logits.
func predictions(logits []float32, top int) []Prediction {
	values, ids := tensor.TopK(tensor.New(logits, len(logits)), min(top, len(logits)))
	most, sum := float64(values.Data()[0]), 0.
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	list := make([]Prediction, len(ids))
	for i, id := range ids {
		v := float64(values.Data()[i])
		list[i] = Prediction{id, v, math.Exp(v-most) / sum}
	}
	return list
}

// Direct is how much each part of the model adds to Logits without passing a later layer.
type Direct struct {
	// Parts have the effects of heads and feed-forward networks at each position, and those of the embeddings, which are the
	// Residual before block 0.
	Parts []Effect
	// Rest [L] is what biases add at each position. The sum of all is the metric there.
	Rest []float64
}

// Direct returns what each part adds to the metric, which must be Logits, at each position: its output, divided as the final
// norm divides the state of this run, times the difference of the rows of the head. Biases of values count for their heads.
//
// Errors: those of Edges; another metric; a final norm other than LayerNorm and RMSNorm; a head that is not
// linear, as with a soft-cap.
//
// Source: Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021.
func (l *Lens) Direct(ctx context.Context, x models.Batch) (*Direct, error) {
	metric, ok := l.metric.(Logits)
	if !ok {
		return nil, errors.New("lens: Direct: the metric is no sum of logits")
	}
	if err := l.model.WantTrainable("lens: Direct"); err != nil {
		return nil, err
	}
	g, err := newGraph(l.model)
	if err != nil {
		return nil, err
	}
	r, err := l.Record(ctx, x, Head, FeedForward, Residual)
	if err != nil {
		return nil, err
	}
	parts, err := g.contributions(r)
	if err != nil {
		return nil, err
	}
	last := r.values[g.block(g.layers)][Residual]
	towards, metrics, err := l.direction(ctx, metric, last)
	if err != nil {
		return nil, err
	}
	weight, small, centred, ok := models.NormGain(l.model.FinalNorm())
	if !ok {
		return nil, errors.New("lens: Direct: the final norm is neither a LayerNorm nor an RMSNorm")
	}
	n, d, gain, eps := len(x.IDs[0]), g.width, weight.Data(), float64(small)
	y := &Direct{Rest: metrics}
	for p := range n {
		state := last.Data()[p*d:][:d]
		_, scale := spread(state, centred, eps)
		for s := range g.sources() {
			part := parts.Data()[(s*n+p)*d:][:d]
			mean, _ := spread(part, centred, eps)
			sum := 0.
			for i, v := range part {
				sum += float64((float64(v) - mean) / scale * float64(gain[i]) * towards[i])
			}
			y.Rest[p] -= sum
			y.Parts = append(y.Parts, Effect{Site: g.site(s, p), What: "direct", Metric: sum, Effect: sum})
		}
	}
	return y, nil
}

// site returns the site of a source at a position.
func (g *graph) site(source, position int) Site {
	layer, head := (source-1)/(g.heads+1), (source-1)%(g.heads+1)
	switch {
	case source == 0:
		return Site{Residual, g.block(0), 0, position}
	case head == g.heads:
		return Site{FeedForward, g.block(layer), 0, position}
	}
	return Site{Head, g.attention[layer].Config().Name, head, position}
}

// direction returns the gradient [D] of the metric by the state behind the final norm, and the metric at each position. It
// returns an error if the metric is not linear.
func (l *Lens) direction(ctx context.Context, metric Logits, last *tensor.Tensor) (towards, metrics []float64, err error) {
	metric.At = All
	n, d := last.Dim(0), last.Dim(1)
	var slopes, hidden []float32
	err = tensor.Catch(func() {
		t := tape(ctx, tensor.Eval)
		states := tensor.Concat(nil, 0, tensor.Zeros(1, d), l.model.FinalNorm().Forward(nil, last))
		leaf := tensor.Reshape(nil, states, n+1, 1, d).Clone().Param() // 0 and each position, each as a text
		t.Only(leaf)
		y := metric.Values(t, l.model, leaf, models.Batch{IDs: make([][]int, n+1)})
		for _, v := range y.Data() {
			metrics = append(metrics, float64(v))
		}
		t.Backward(y, tensor.Full(1, y.Shape()...))
		slopes, hidden = leaf.Grad().Data(), leaf.Data()
	})
	if err != nil {
		return nil, nil, err
	}
	for _, v := range slopes[:d] {
		towards = append(towards, float64(v))
	}
	for p := 1; p <= n; p++ {
		sum, size := metrics[0]-metrics[p], 0.
		for i, v := range hidden[p*d:][:d] {
			term := float64(float64(v) * towards[i])
			sum, size = sum+term, size+math.Abs(term)
		}
		if !(math.Abs(sum) <= 1e-4*size) {
			return nil, nil, errors.New("lens: Direct: the head is not linear, as with a soft-cap of logits, so parts do not add to them")
		}
	}
	return towards, metrics[1:], nil
}

// spread returns the mean that a norm subtracts from x, and the number by which it divides.
func spread(x []float32, centred bool, eps float64) (mean, scale float64) {
	for _, v := range x {
		mean += float64(v)
	}
	if mean /= float64(len(x)); !centred {
		mean = 0
	}
	sum := 0.
	for _, v := range x {
		sum += float64((float64(v) - mean) * (float64(v) - mean))
	}
	return mean, math.Sqrt(sum/float64(len(x)) + eps)
}
