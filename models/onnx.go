package models

import (
	"fmt"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/tensor"
)

// ONNX returns an encoder, or a translator of attn train, as an ONNX model. The operator set version is 17 or 23; 0 means
// onnx.DefaultOpset.
//
// Inputs and outputs of an encoder of B texts, padded to L tokens, are named as transformers names them:
//
//	input_ids               [B L]    Int64
//	attention_mask          [B L]    Int64, 1 for a token and 0 for padding
//	token_type_ids          [B L]    Int64, if the model distinguishes types
//	last_hidden_state       [B L D]  Float32, arbitrary at padding
//	logits                  as at the Task of the head, if the model has one
//	start_logits, end_logits [B L]   in place of logits, for AnswerSpan
//
// Those of a translator; the caller passes each present.X as past.X of the next step, and a step encodes the source if it
// is the first:
//
//	source          [batch source]   Int64, token ids followed by EOS, then padding (Pad)
//	source_lengths  [batch]          Int64, numbers of ids including EOS
//	target          [batch target]   Int64, the tokens that follow those read so far, BOS
//	                                 first; one at a time for a GRU
//	past.X                           the state before this step; in the first step zeros,
//	                                 with 0 elements along the axes "read" and "encoded"
//	logits          [batch target N] Float32, for the token after each token of target
//	present.X                        the state after this step
//
// The metadata of a translator contain the config and the vocabularies as JSON: "config", "source_vocabulary" and
// "target_vocabulary".
//
// Aliasing: the parameters are read when the ONNX model is written.
//
// Errors: a *FormatError for another model, or one with a layer that package onnx does not support; an unsupported version;
// a model loaded without Options.Trainable.
func (m *Model) ONNX(opset int) (*onnx.Model, error) {
	if n, ok := m.Network.(interface{ graph() graphs }); ok {
		return m.translatorONNX(opset, n.graph())
	}
	return m.encoderONNX(opset, func(g *onnx.Graph, hidden, mask onnx.Value) {
		if h := m.Head(); h != nil {
			h.addTo(g, hidden, mask, m.Sizes().Vocabulary)
		}
	})
}

// ONNX returns the model and the pooling as an ONNX model: Model.ONNX with the output "sentence_embedding" [B Width]
// instead of logits. The tokens of the Prompt, if there is one, belong to its input.
//
// Errors: as for Model.ONNX; layers of another package; a prompt that the directory excludes from the pooling.
func (e *Embedder) ONNX(opset int) (*onnx.Model, error) {
	if err := e.checkPrompt(); err != nil {
		return nil, &FormatError{e.Model.Dir, err}
	}
	return e.Model.encoderONNX(opset, func(g *onnx.Graph, hidden, mask onnx.Value) {
		parts := make([]onnx.Value, len(e.Poolings))
		for i, p := range e.Poolings {
			parts[i] = p.graph(g, hidden, mask)
		}
		y := layerGraph(g.In("sentence"), inTurn(e.Layers), g.Node("Concat", parts, onnx.Int("axis", 1)))
		g.Output("sentence_embedding", y, onnx.Float32, onnx.Named("batch_size"), onnx.Sized(e.width))
	})
}

// encoderONNX returns an encoder as an ONNX model. add adds outputs that are computed from hidden states [B L D] and the
// attention mask [B L].
func (m *Model) encoderONNX(opset int, add func(g *onnx.Graph, hidden, mask onnx.Value)) (*onnx.Model, error) {
	s, ok := m.Network.(*stack)
	if !ok || s.sizes.Kind != heads.Encoder {
		return nil, &FormatError{m.Dir, fmt.Errorf("is a %s model, which cannot be exported to ONNX, want BERT, CamemBERT, DistilBERT, "+
			"ELECTRA, ModernBERT, MPNet, RoBERTa, XLM-RoBERTa or a translator of attn train", m.Family.Name)}
	}
	return m.draw("encoder", opset, func(g *onnx.Graph) {
		input := func(name string) onnx.Value { return g.Input(name, onnx.Int64, tokenAxes()...) }
		ids, mask := input("input_ids"), input("attention_mask")
		at := g.Count(g.Int(0), g.Length(ids, 1))
		if s.place != nil {
			at = s.place.graph(g, ids, mask)
		}
		var types onnx.Value
		if s.sizes.Types > 1 {
			types = input("token_type_ids")
		}
		seen := g.Node("Cast", []onnx.Value{mask}, onnx.Int("to", int(onnx.Bool)))
		visible := onnx.Attention{Mask: g.Node("Unsqueeze", []onnx.Value{seen, g.Ints(1, 2)})}
		hidden := s.graph(g, ids, types, at, visible)
		g.Output("last_hidden_state", hidden, onnx.Float32, tokenAxes(s.sizes.Width)...)
		add(g, hidden, mask)
	})
}

// draw returns an ONNX model with the graph that build adds.
func (m *Model) draw(name string, opset int, build func(*onnx.Graph)) (*onnx.Model, error) {
	if err := m.wantTrainable("ONNX"); err != nil {
		return nil, err
	}
	model, err := onnx.New(name, opset)
	if err == nil {
		err = tensor.Catch(func() { build(model.Graph()) })
	}
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	if err := model.Err(); err != nil {
		return nil, &FormatError{m.Dir, err}
	}
	return model, nil
}

// tokenAxes returns the axes of numbers for each token.
func tokenAxes(sizes ...int) []onnx.Axis {
	axes := []onnx.Axis{onnx.Named("batch_size"), onnx.Named("sequence_length")}
	for _, n := range sizes {
		axes = append(axes, onnx.Sized(n))
	}
	return axes
}

// addTo adds the logits to a graph as outputs.
func (h *TaskHead) addTo(g *onnx.Graph, hidden, mask onnx.Value, vocabulary int) {
	classes := len(h.Labels)
	if h.Labels == nil {
		classes = vocabulary
	}
	if h.Pool != nil {
		hidden = h.Pool.graph(g, hidden, mask)
	}
	logits := layerGraph(g.In("head"), h.Layer, hidden)
	switch {
	case h.Task == AnswerSpan:
		for i, label := range h.Labels {
			one := g.Node("Gather", []onnx.Value{logits, g.Int(i)}, onnx.Int("axis", 2))
			g.Output(label+"_logits", one, onnx.Float32, tokenAxes()...)
		}
	case h.Task.PerToken():
		g.Output("logits", logits, onnx.Float32, tokenAxes(classes)...)
	default:
		g.Output("logits", logits, onnx.Float32, onnx.Named("batch_size"), onnx.Sized(classes))
	}
}
