//go:build amd64 && !purego && !linux

package simd

func offersTiles() bool { return false }

func permitTiles() bool { return false }
