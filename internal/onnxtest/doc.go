// Package onnxtest runs ONNX models for tests. It is independent of the package that writes them: it parses the
// protobuf wire format and computes each operator by its definition, in float64 and one element at a time.
package onnxtest
