//go:build !purego

package simd

// hasNEON is true, because every arm64 processor has NEON.
func hasNEON() bool { return true }
