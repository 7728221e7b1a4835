//go:build !(amd64 || arm64) || purego

package simd

// eachQuads calls f once: there are no kernels for integers.
func eachQuads(f func(kernel string)) { f("no kernel") }
