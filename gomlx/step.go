package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" //lint:ignore ST1001 formulas read as formulas
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/exceptions"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// AdamW's constants, the same as in train.Trainer.
const beta1, beta2, epsilon = 0.9, 0.98, 1e-8

// engine runs training steps on a backend, with the parameters on its devices.
type engine struct {
	trainer *train.Trainer
	config  models.TranslatorConfig
	devices int
	lengths []lengths // of the compiled programs, see cut
	store   *model.Store
	exec    *model.Exec
	batch   *distributed.ShardingSpec // for tensors with an axis of pairs
	same    *distributed.ShardingSpec // for tensors that all devices share
}

// scope is the scope of the variables, which have the names of train.Trainer.State.
const scope = "/state/"

// newEngine returns an engine with the parameters and moments of a run. Each batch is divided among the devices.
func newEngine(backend compute.Backend, devices int, s *train.Session) (*engine, error) {
	config, _ := s.Model.TranslatorConfig()
	e := &engine{
		trainer: s.Trainer, config: config, devices: devices, store: model.NewStore(),
		lengths: cut(s.Trainer.Batches(0)), // the same when the run is resumed in another epoch
	}
	for name, x := range s.Trainer.State() {
		if _, err := e.store.CreateVariable(scope+name, tensors.FromFlatDataAndDimensions(x.Data(), x.Shape()...)); err != nil {
			return nil, err
		}
	}
	var err error
	if e.exec, err = model.NewExec(backend, e.store, e.graph); err != nil {
		return nil, err
	}
	e.exec.SetMaxCache(len(e.lengths))
	if devices == 1 {
		return e, nil
	}
	mesh, err := distributed.NewDeviceMesh([]int{devices}, []string{"pairs"})
	if err != nil {
		return nil, err
	}
	if e.batch, err = distributed.BuildSpec(mesh).S("pairs").Done(); err != nil {
		return nil, err
	}
	e.same = distributed.NewReplicatedShardingSpec(mesh)
	e.exec.AutoSharding(mesh).
		WithInputShardingSpecs(e.batch, e.batch, e.batch, e.batch, e.same).
		WithOutputShardingSpecs(e.same)
	return e, e.exec.SetDefaultShardingSpec(e.same)
}

// compile compiles the programs of all lengths, and reports each on w.
func (e *engine) compile(ctx context.Context, w io.Writer) error {
	n := e.rows()
	for i, l := range e.lengths {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		fmt.Fprintf(w, "compiling program %d of %d: %d pairs of %d and %d tokens", i+1, len(e.lengths), n, l.source, l.target)
		ids := func(axes ...int) shapes.Shape {
			return shapes.Make(dtypes.Int32, append([]int{n / e.devices}, axes...)...)
		}
		in := []shapes.Shape{
			ids(l.source), ids(), ids(l.target), ids(l.target), shapes.Make(dtypes.Float32, 3), RNGStateShape,
		}
		if _, err := e.exec.Compile(slices.Repeat(in, e.devices)...); err != nil {
			return err
		}
		fmt.Fprintf(w, " (%.1f s)\n", time.Since(start).Seconds())
	}
	return nil
}

// rows returns the number of rows of every batch.
func (e *engine) rows() int {
	return (e.trainer.Settings.Batch + e.devices - 1) / e.devices * e.devices
}

// graph builds a training step: forward, backward and AdamW. It returns the loss and the norm of the gradient.
//
//	source [B Ls], lengths [B], read and write [B Lt]: int32
//	rates [3]: learning rate, 1−β₁ⁿ, 1−β₂ⁿ; seed [3] uint64 of dropout
func (e *engine) graph(_ *model.Scope, in []*Node) []*Node {
	source, lengths, read, write, rates, random := in[0], in[1], in[2], in[3], in[4], in[5]
	g := source.Graph()
	var names []string
	var params []*Node
	known := map[string]*Node{}
	n := &network{config: e.config, dropout: func(x *Node) *Node {
		if e.config.Dropout == 0 {
			return x
		}
		var uniform *Node
		random, uniform = RandomUniform(random, x.Shape())
		keep := GreaterOrEqual(uniform, Scalar(g, x.DType(), e.config.Dropout))
		return DivScalar(Where(keep, x, ZerosLike(x)), 1-e.config.Dropout)
	}}
	n.param = func(name string) *Node {
		if known[name] == nil {
			known[name] = e.variable("param." + name).NodeValue(g)
			names, params = append(names, name), append(params, known[name])
		}
		return known[name]
	}
	loss := crossEntropy(n.logits(source, lengths, read), write, float64(e.trainer.Settings.Smoothing))

	grads := Gradient(loss, params...)
	squares := ScalarZero(g, dtypes.Float32)
	for _, d := range grads {
		squares = Add(squares, ReduceAllSum(Square(d)))
	}
	norm := Sqrt(squares)
	factor := ScalarOne(g, dtypes.Float32)
	if clip := e.trainer.Settings.Clip; clip > 0 {
		factor = Min(factor, Div(Scalar(g, dtypes.Float32, clip), AddScalar(norm, 1e-6)))
	}
	rate := func(i int) *Node { return Reshape(Slice(rates, AxisElem(i))) }
	for i, name := range names {
		d := Mul(grads[i], factor)
		first, second := e.variable("adamw."+name+".m"), e.variable("adamw."+name+".v")
		m := Add(MulScalar(first.NodeValue(g), beta1), MulScalar(d, 1-beta1))
		v := Add(MulScalar(second.NodeValue(g), beta2), MulScalar(Square(d), 1-beta2))
		change := Div(Mul(rate(0), Div(m, rate(1))), AddScalar(Sqrt(Div(v, rate(2))), epsilon))
		first.SetNodeValue(m)
		second.SetNodeValue(v)
		e.variable("param." + name).SetNodeValue(Sub(params[i], change))
	}
	return []*Node{loss, norm}
}

// variable returns a variable by its name in train.Trainer.State.
func (e *engine) variable(name string) *model.Variable { return e.store.GetVariable(scope + name) }

// crossEntropy is nn.CrossEntropy: the mean over the targets [B L] that are not Pad.
func crossEntropy(logits, targets *Node, smoothing float64) *Node {
	classes := logits.Shape().Dim(-1)
	logp := LogSoftmax(logits, -1)
	chosen := ReduceSum(Mul(OneHot(targets, classes, dtypes.Float32), logp), -1)
	loss := Add(MulScalar(chosen, smoothing-1), MulScalar(ReduceSum(logp, -1), -smoothing/float64(classes)))
	counts := ConvertDType(NotEqual(targets, Scalar(targets.Graph(), dtypes.Int32, seq2seq.Pad)), dtypes.Float32)
	return Div(ReduceAllSum(Mul(loss, counts)), ReduceAllSum(counts))
}

// Step implements train.Engine.
func (e *engine) Step(number int, lr float64, batch []models.Example) (loss, norm float32, err error) {
	// GoMLX panics about invalid graphs.
	failed := exceptions.TryCatch[error](func() { loss, norm, err = e.step(number, lr, batch) })
	return loss, norm, errors.Join(failed, err)
}

func (e *engine) step(number int, lr float64, batch []models.Example) (loss, norm float32, err error) {
	state, err := RNGStateFromSeed(int64(e.trainer.Settings.Seed<<32) + int64(number))
	if err != nil {
		return 0, 0, err
	}
	rates := []float32{
		float32(lr), float32(1 - math.Pow(beta1, float64(number))), float32(1 - math.Pow(beta2, float64(number))),
	}
	n := e.rows()
	at := slices.IndexFunc(e.lengths, lengthsOf(batch).within)
	b := newRectangles(batch, n, e.lengths[at])
	matrix := func(x []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, n, len(x)/n) }
	in := []*tensors.Tensor{
		matrix(b.source), tensors.FromFlatDataAndDimensions(b.lengths, n), matrix(b.read), matrix(b.write),
		tensors.FromFlatDataAndDimensions(rates, len(rates)), state,
	}
	results := make([]float32, 2)
	if e.batch == nil {
		args := make([]any, len(in))
		for i, x := range in {
			args[i] = x
		}
		out, err := e.exec.Call(args...)
		if err != nil {
			return 0, 0, err
		}
		for i, x := range out {
			results[i] = tensors.ToScalar[float32](x)
		}
		return results[0], results[1], nil
	}
	args := make([]any, len(in))
	for i, x := range in {
		spec := e.batch
		if i >= 4 {
			spec = e.same
		}
		if args[i], err = dtensor.ShardTensor(spec, x); err != nil {
			return 0, 0, err
		}
	}
	out, err := e.exec.DistributedExec(args...)
	if err != nil {
		return 0, 0, err
	}
	for i, x := range out {
		results[i] = tensors.ToScalar[float32](x.Shards()[0])
	}
	return results[0], results[1], nil
}

// Read implements train.Engine.
func (e *engine) Read() error {
	for name, x := range e.trainer.State() {
		value, err := e.variable(name).Value()
		if err != nil {
			return err
		}
		values, err := tensors.CopyFlatData[float32](value)
		if err != nil {
			return err
		}
		copy(x.Data(), values)
	}
	return nil
}
