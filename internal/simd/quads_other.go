//go:build !(amd64 || arm64) || purego

package simd

// usesQuads reports that integers are not stored in words.
func usesQuads() bool { return false }

// Reduced returns no instructions: products in bfloat16 and int8 are not faster than in float32.
func Reduced() []string { return nil }

func quadsWidth() int { panic("simd: no quads") }

func (p *Panels) multiplyQuads(_, _ Mat, _, _, _ int, _ []float32, _ int) { panic("simd: no quads") }
