//go:build !(amd64 || arm64) || purego

package simd

// Reduced returns no instructions: products in bfloat16 and int8 are not faster than in float32.
func Reduced() []string { return nil }

// usesQuads reports that no kernel multiplies integers.
func usesQuads() bool { return false }

func quadsWidth() int { return genericQuads }

func (p *Panels) multiplyQuads(c, a Mat, m, j0, j1 int, bias []float32, _ int) {
	p.multiplyQuadsGeneric(c, a, m, j0, j1, bias)
}
