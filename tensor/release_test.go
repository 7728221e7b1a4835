package tensor

import (
	"math/rand/v2"
	"testing"
)

// Release returns the numbers of its argument, wherever its memory was. Tensors made before the mark keep their
// numbers, and memory does not grow with the number of layers.
func TestRelease(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 13, 1021, 300_007, 1_200_011} {
		tape := NewTape(Infer)
		first := Add(tape, Randn(rng, n), Randn(rng, n))
		want := append([]float32(nil), first.Data()...)
		begin := tape.Mark()
		x := first
		sum := append([]float32(nil), want...)
		for range 20 {
			tape.Make(n) // an intermediate tensor, made before the result
			x = Shift(tape, Scale(tape, x, 2), 1)
			tape.Make(7)
			x = tape.Release(begin, x)
			for i, v := range sum {
				sum[i] = 2*v + 1
			}
		}
		for i, v := range x.Data() {
			if v != sum[i] || first.Data()[i] != want[i] {
				t.Fatalf("%d elements: element %d is %v, want %v; before the mark %v, want %v", n, i, v, sum[i], first.Data()[i], want[i])
			}
		}
		held := 0
		for _, b := range tape.floats.slabs {
			held += len(b)
		}
		for _, l := range tape.floats.large {
			held += len(l.slice)
		}
		if most := 2*firstSlab + 12*n; held > most {
			t.Errorf("%d elements: the tape holds %d floats, want at most %d", n, held, most)
		}
		part := tape.Release(begin, Slice(tape, x, 0, n/2, n)) // a part of a tensor
		for i, v := range part.Data() {
			if v != sum[n/2+i] {
				t.Fatalf("%d elements: element %d of a part is %v, want %v", n, i, v, sum[n/2+i])
			}
		}
	}
	tape, x := NewTape(Eval), Randn(rng, 3)
	if y := Scale(tape, x.Param(), 2); tape.Release(tape.Mark(), y) != y {
		t.Error("a tape that records does not return what it was given")
	}
	var none *Tape
	if none.Release(none.Mark(), x) != x {
		t.Error("no tape does not return what it was given")
	}
}

// Of the tensors made since a mark, only the result of Release is valid afterwards, even if the tape was released in
// parts or several times. Tensors made before the mark stay valid.
func TestUseAfterRelease(t *testing.T) {
	tape := NewTape(Infer)
	made := func() *Tensor { return Scale(tape, Full(1, 3), 2) }
	before := made()
	outer := tape.Mark()
	early := made()
	inner := tape.Mark()
	inside, result := made(), made()
	kept := tape.Release(inner, result)
	check := func(when string, live, lost []*Tensor) {
		t.Helper()
		for i, x := range live {
			if err := Catch(func() { x.Data() }); err != nil {
				t.Errorf("%s: tensor %d that is to be valid: %v", when, i, err)
			}
		}
		for i, x := range lost {
			if Catch(func() { x.Data() }) == nil {
				t.Errorf("%s: tensor %d that was taken back can be used", when, i)
			}
		}
	}
	check("within", []*Tensor{before, early, kept}, []*Tensor{inside, result})
	again := tape.Release(inner, made())
	check("released twice", []*Tensor{before, early, again}, []*Tensor{inside, result, kept})
	last := tape.Release(outer, again)
	check("outside", []*Tensor{before, last}, []*Tensor{early, inside, result, kept, again})
	if Catch(func() { tape.Release(inner, last) }) == nil {
		t.Error("a mark from within what was taken back can be released")
	}
	if Catch(func() { NewTape(Infer).Release(outer, last) }) == nil {
		t.Error("a mark of another tape can be released")
	}
	tape.Reset()
	check("reset", nil, []*Tensor{before, last, early, kept, again})
	if Catch(func() { tape.Release(outer, made()) }) == nil {
		t.Error("a mark from before Reset can be released")
	}
}

// Memory of tensors is not used twice, whatever is released in which order, and recent results stay where they are.
func TestReleaseAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		tape := NewTape(Infer)
		number := float32(0)
		made := func() *Tensor {
			x := tape.Make(rng.IntN(1 + 1<<rng.IntN(14)))
			number++
			for i := range x.data {
				x.data[i] = number
			}
			return x
		}
		type level struct {
			mark  Mark
			alive []*Tensor
			first []float32 // of each tensor in alive
		}
		levels := []*level{{mark: tape.Mark()}}
		add := func(x *Tensor) {
			l := levels[len(levels)-1]
			l.alive = append(l.alive, x)
			if l.first = append(l.first, 0); len(x.data) > 0 {
				l.first[len(l.first)-1] = x.data[0]
			}
		}
		for range 300 {
			switch l := levels[len(levels)-1]; {
			case rng.IntN(3) > 0 || len(l.alive) == 0:
				add(made())
			case rng.IntN(2) == 0 && len(levels) < 4:
				levels = append(levels, &level{mark: tape.Mark()})
			default:
				i := rng.IntN(len(l.alive))
				if rng.IntN(2) == 0 {
					i = len(l.alive) - 1
				}
				x, again := l.alive[i], rng.IntN(2) == 0 || len(levels) == 1
				y := tape.Release(l.mark, x)
				if *l = (level{mark: l.mark}); !again {
					levels = levels[:len(levels)-1]
				}
				add(y)
			}
			for _, l := range levels {
				for i, x := range l.alive {
					for _, v := range x.data {
						if v != l.first[i] {
							t.Fatalf("a tensor of %v has %v", l.first[i], v)
						}
					}
				}
			}
		}
	}
	tape := NewTape(Infer)
	begin := tape.Mark()
	for range 10 {
		tape.Make(50)
		y := tape.Make(100)
		tape.Make(7)
		if z := tape.Release(begin, y); &z.data[0] != &y.data[0] {
			t.Error("a recent tensor was moved")
		}
	}
}
