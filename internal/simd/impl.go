package simd

import (
	"fmt"
	"os"
	"strings"
)

//go:generate go -C _asm run . -dir ..

// An implementation is one way to compute the functions of this package. The table in _asm defines
// all implementations. On a Xeon of 2024, assembly runs a matrix product about 20 times as fast as
// compiled Go, and exp 30 times.
type implementation uint8

func (i implementation) String() string { return names[i] }

// A candidate is an implementation that the machine may support.
type candidate struct {
	implementation
	has func() bool // whether the machine supports it
}

// A shape is the widths of an implementation's kernels.
type shape struct {
	lanes    int // floats in a vector; panel widths are multiples of it
	panel    int // columns of a panel of B
	additive int // keys that are adjacent in a panel of additive scores
	state    int // columns of a state that a kernel computes together
}

// vectorLanes returns the number of floats in a vector. Panel widths are multiples of it.
func vectorLanes() int { return shapes[active].lanes }

func panelWidth() int { return shapes[active].panel }

// additiveWidth returns the number of keys that are adjacent in a panel, which a kernel computes
// together.
func additiveWidth() int { return shapes[active].additive }

func stateWidth() int { return shapes[active].state }

// impls lists the implementations that this machine supports, the best first. It is a list so that
// tests can run on each of them.
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

// initial returns the implementation to start with. It ends the program if the requested one is not
// available, because nobody would notice a silent replacement. It does not panic: at this time a
// panic cannot be recovered, and one line is easier to read than a stack trace.
func initial() implementation {
	name := os.Getenv("ATTN_SIMD")
	i, err := choose(name, impls)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return i
}

// choose returns the implementation with the given name, or the best one if name is empty.
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

// Implementation returns the name of the implementation in use: "generic", "avx2", "avx512",
// "neon" or "wasm".
func Implementation() string { return active.String() }

// Each calls f once for each implementation that this machine supports, with that implementation
// active. It is for tests of packages that import this one; nothing else may compute meanwhile.
func Each(f func(name string)) {
	best := active
	defer func() { active = best }()
	for _, active = range impls {
		f(active.String())
	}
}
