//go:build !purego

package simd

// dotRows is how many rows dots takes, and dotColumns how many columns.
const dotRows = 4

func dotColumns() int { return vectorLanes() }
