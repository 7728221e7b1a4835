package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	_ "github.com/gomlx/compute/gobackend" // backend GO
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/options"

	"github.com/attn-go/attn/models"
)

// onnxName is the file that hugot reads, with products written out because GoMLX lacks the operator Attention.
const onnxName, opset = "model.onnx", 17

// loadHugot runs a model on hugot's backend in Go, GoMLX, from an ONNX file that attn writes. It passes ids, which the
// pipelines of hugot make of texts.
func loadHugot(dir string) (func(ids [][]int) ([]float32, error), error) {
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		return nil, err
	}
	file, err := m.ONNX(opset)
	if err == nil {
		err = file.Save(filepath.Join(dir, onnxName))
	}
	if err != nil {
		return nil, err
	}
	defer os.Remove(filepath.Join(dir, onnxName))
	ctx, o := context.Background(), options.Defaults()
	o.Backend = "GO"
	model, err := backends.LoadModel(ctx, dir, onnxName, o, false)
	if err != nil {
		return nil, err
	}
	p := &backends.BasePipeline{Runtime: o.Backend, Model: model, SessionContext: ctx}
	return func(ids [][]int) (out []float32, err error) {
		b := backends.NewBatch(len(ids))
		b.MaxSequenceLength = len(ids[0])
		for _, text := range ids {
			x := backends.TokenizedInput{TypeIDs: make([]uint32, len(text)), MaxAttentionIndex: len(text) - 1}
			for _, id := range text {
				x.TokenIDs, x.AttentionMask = append(x.TokenIDs, uint32(id)), append(x.AttentionMask, 1)
			}
			b.Input = append(b.Input, x)
		}
		if err := backends.CreateInputTensors(b, model, o.Backend); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.Destroy()) }()
		if err := backends.RunSessionOnBatch(ctx, b, p); err != nil {
			return nil, err
		}
		for _, text := range b.OutputValues[0].([][][]float32) {
			for _, token := range text {
				out = append(out, token...)
			}
		}
		return out, nil
	}, nil
}
