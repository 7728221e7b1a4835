// Package onnx writes layers as ONNX files, which ONNX Runtime and others run with the
// same result.
//
//	m, err := onnx.FromMultiHead(layer, onnx.Options{Lengths: true})
//	if err != nil {
//		return err
//	}
//	err = m.Save("layer.onnx")
//
// With opset 23, attention is the operator Attention wherever that says the same. What it
// cannot express (additive and Gaussian scores, sinks, a soft-cap in front of the mask) and
// everything with opset 17 is written out as products and a softmax. Both keep attn's rule
// that a query which attends to no key gets zeros.
//
// A model of other layers is put together on a Graph, whose methods are the layers of
// packages nn and attn. What cannot be expressed is an error that names the layer.
//
// One rule of attn does not survive: a key that is hidden must hold finite numbers, because
// a weight of 0 times NaN is NaN in ONNX.
//
// Source: https://onnx.ai/onnx/repo-docs/IR.html, and for the operators
// https://onnx.ai/onnx/operators.
package onnx
