package main

import "github.com/attn-go/attn/models"

// rectangles are the pairs of a step, padded with Pad.
type rectangles struct{ source, lengths, read, write []int32 }

// roundTo is the multiple to which lengths are rounded up, because a backend compiles a program for each shape.
const roundTo = 16

// newRectangles returns pairs in rectangles of n rows. Rows without a pair have weight zero, because all their targets
// are Pad.
func newRectangles(pairs []models.Example, n int) rectangles {
	// rectangle returns the rows of one kind of ids.
	rectangle := func(of func(p models.Example) []int) []int32 {
		width := 0
		for _, p := range pairs {
			width = max(width, (len(of(p))+roundTo-1)/roundTo*roundTo)
		}
		x := make([]int32, n*width)
		for i, p := range pairs {
			for j, id := range of(p) {
				x[i*width+j] = int32(id)
			}
		}
		return x
	}
	b := rectangles{
		source:  rectangle(func(p models.Example) []int { return p.IDs }),
		lengths: make([]int32, n),
		read:    rectangle(func(p models.Example) []int { return p.Reads }),
		write:   rectangle(func(p models.Example) []int { return p.Targets }),
	}
	for i := range b.lengths {
		b.lengths[i] = 1 // so that the softmax has a key
	}
	for i, p := range pairs {
		b.lengths[i] = int32(len(p.IDs))
	}
	return b
}
