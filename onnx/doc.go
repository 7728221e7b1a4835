// Package onnx writes layers as ONNX files, which ONNX Runtime and other runtimes run with the same result.
//
//	m, err := onnx.FromMultiHead(layer, onnx.Options{Lengths: true})
//	if err != nil {
//		return err
//	}
//	err = m.Save("layer.onnx")
//
// With opset 23, attention becomes the operator Attention if that computes the same result. Otherwise it is written
// out as products and a softmax: always with opset 17, and for additive and Gaussian scores, sinks, and a soft-cap
// before the mask. Both keep attn's rule that a query which attends to no key gets zeros.
//
// A linear.Layer becomes the operator LinearAttention of opset 27, or that of ONNX Runtime; see FromLinear.
//
// For a model of several layers, Build passes a Graph, whose methods are the layers of packages nn and attn. A layer that
// ONNX cannot express gives an error with its name.
//
// One of attn's rules does not apply: hidden keys must be finite numbers, because in ONNX a weight of 0 times NaN is
// NaN.
//
// Source: https://onnx.ai/onnx/repo-docs/IR.html, and for the operators https://onnx.ai/onnx/operators.
package onnx
