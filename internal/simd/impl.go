package simd

// An implementation is one way to compute what this package offers.
type implementation uint8

const (
	generic implementation = iota
	avx2                   // needs FMA and BMI2 as well
	avx512                 // needs F, BW, DQ and VL
)

// impls lists the implementations this machine has, the best first. It is a
// list so that tests can run on each of them.
var impls = detect()

// active is the implementation in use. Only tests change it.
var active = impls[0]

func (i implementation) String() string {
	return [...]string{"generic", "avx2", "avx512"}[i]
}

// Implementation returns the name of the implementation in use: "generic",
// "avx2" or "avx512".
func Implementation() string { return active.String() }

// Each calls f for each implementation that this machine has, with that one in
// use. It is for tests of the packages above; nothing else may compute meanwhile.
func Each(f func(name string)) {
	best := active
	defer func() { active = best }()
	for _, active = range impls {
		f(active.String())
	}
}
