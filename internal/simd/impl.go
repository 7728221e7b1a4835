package simd

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

//go:generate go -C _asm run . -dir ..

// An implementation is one way to compute what this package offers. The table in
// _asm says which there are. Assembly is what makes this package worth its name:
// on a Xeon of 2024, a matrix product runs some 20 times faster than as compiled
// Go, exp 30 times.
type implementation uint8

func (i implementation) String() string { return names[i] }

// A candidate is an implementation that a machine may have.
type candidate struct {
	implementation
	has func() bool // whether this one has it
}

// A shape says how wide the kernels of an implementation are.
type shape struct {
	lanes    int // floats in a vector; the width of a panel is a multiple
	panel    int // columns of a panel of B
	additive int // keys next to one another in a panel of additive scores
}

// vectorLanes returns how many floats a vector has, of which the width of a panel is a
// multiple.
func vectorLanes() int { return shapes[active].lanes }

func panelWidth() int { return shapes[active].panel }

// additiveWidth returns how many keys stand next to one another in a panel, and
// how many a kernel computes at a time.
func additiveWidth() int { return shapes[active].additive }

// impls lists the implementations this machine has, the best first. It is a
// list so that tests can run on each of them.
var impls = detect()

func detect() []implementation {
	var has []implementation
	for _, c := range candidates {
		if c.has() {
			has = append(has, c.implementation)
		}
	}
	return append(has, generic)
}

// active is the implementation in use. Only tests change it.
var active = initial()

// initial returns the implementation to begin with. It ends the program if that
// is not to be had: nobody would notice that another one had taken its place.
// Nobody can recover from a panic at this time either, and one line says more.
func initial() implementation {
	name := os.Getenv("ATTN_SIMD")
	i, err := choose(name, impls)
	if err == nil && name == amx.String() && !permitTiles() {
		err = errors.New(`attn: ATTN_SIMD is "amx", but the system does not let this program use tile units`)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return i
}

// choose returns the implementation of the given name, or the best one if there is no name.
func choose(name string, has []implementation) (implementation, error) {
	if name == "" {
		return has[0], nil
	}
	var known []string
	for _, i := range has {
		if i.String() == name {
			return i, nil
		}
		known = append(known, i.String())
	}
	return generic, fmt.Errorf("attn: ATTN_SIMD is %q, want one that this program has on this machine: %s",
		name, strings.Join(known, ", "))
}

// Implementation returns the name of the implementation in use: "generic",
// "avx2", "avx512", "amx" or "neon". Where the system does not grant tile units, "amx" is
// "avx512".
func Implementation() string {
	if active == amx && !hasTiles() {
		return avx512.String()
	}
	return active.String()
}

// Each calls f for each implementation that this machine has, with that one in
// use. It is for tests of the packages above; nothing else may compute meanwhile.
func Each(f func(name string)) {
	best := active
	head, layer := minHeadTile, minLayerTile
	defer func() { active, minHeadTile, minLayerTile = best, head, layer }()
	minHeadTile, minLayerTile = 1, 1
	for _, active = range impls {
		f(active.String())
	}
}
