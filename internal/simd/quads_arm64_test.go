//go:build !purego

package simd

// eachQuads calls f with and, if this processor has it, without the dot-product extension.
func eachQuads(f func(kernel string)) {
	defer func(has bool) { hasQuads = has }(hasQuads)
	if hasQuads {
		f("dot-product extension")
	}
	hasQuads = false
	f("no dot-product extension")
}
