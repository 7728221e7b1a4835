package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The numbers must never change, because models are retrained from their seeds.
func TestDraw(t *testing.T) {
	const key = 0x0123456789abcdef
	for i, want := range map[int]uint32{
		0: 0xb2c058e4, 1: 0x157a3807, 2: 0xd573529b, 3: 0x2f90b72e, 15: 0x380e8b5c,
		16: 0xd7ebcca1, 17: 0x2ab8c4e3, 1 << 20: 0xf3af7ad1,
	} {
		if got := Draw(key, i); got != want {
			t.Errorf("draw %d is %#x, want %#x", i, got, want)
		}
	}
}

func TestDropout(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, n := range lengths {
			key, first, keep := r.Uint64(), r.IntN(1<<20), r.Float32()
			// Thresholds at the ends of the range, and equal to a draw, which is then kept.
			for _, threshold := range []uint32{0, 1, 1 << 30, 1 << 31, 3 << 30, math.MaxUint32, Draw(key, first+n/2)} {
				dst, x, y := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
				if n > 3 {
					y.x[n-1], y.x[n/2] = float32(math.NaN()), float32(math.Inf(1))
				}
				want, sum := make([]float32, n), clone(x.x)
				for i, v := range y.x {
					if Draw(key, first+i) >= threshold {
						want[i] = keep * v
						sum[i] += float32(keep * v)
					}
				}
				Dropout(dst.x, y.x, key, first, threshold, keep)
				if !same(dst.x, want) || !dst.intact() {
					t.Fatalf("Dropout: wrong at length %d with threshold %#x", n, threshold)
				}
				DropoutAdd(dst.x, x.x, y.x, key, first, threshold, keep)
				if !same(dst.x, sum) || !dst.intact() {
					t.Fatalf("DropoutAdd: wrong at length %d with threshold %#x", n, threshold)
				}
				DropoutAdd(x.x, x.x, y.x, key, first, threshold, keep)
				Dropout(y.x, y.x, key, first, threshold, keep)
				if !same(x.x, sum) || !same(y.x, want) || !x.intact() || !y.intact() {
					t.Fatalf("wrong in place at length %d with threshold %#x", n, threshold)
				}
			}
		}
	})
}

func TestPowerDropRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		d := Drops{Key: r.Uint64(), First: r.IntN(1 << 20), Step: 1 + r.IntN(1<<10), Keep: 1 + r.Float32()}
		draw := Draw(d.Key, d.First+n/2)
		// Thresholds equal to a draw, which is then kept, and near it: in both halves, odd and
		// even.
		for _, d.Threshold = range []uint32{0, 1 << 30, 1 << 31, 1<<31 + 1, 3 << 30, draw - 1, draw, draw + 1, draw ^ 1<<31, math.MaxUint32} {
			got := newStrip(r, rows, stride, n)
			want, sums := clone(got.x), make([]float32, rows)
			shift, sum := newGuarded(r, rows), newGuarded(r, rows)
			PowerRows(want, stride, n, 0.5, shift.x, sums)
			dropped := make([]float32, len(want))
			DropoutRows(dropped, want, stride, rows, n, d)
			for i := range rows {
				row := want[i*stride:][:n]
				Dropout(row, row, d.Key, d.First+i*d.Step, d.Threshold, d.Keep)
				if !same(dropped[i*stride:][:n], row) {
					t.Fatalf("DropoutRows: row %d of %d of %d differs with threshold %#x", i, rows, n, d.Threshold)
				}
			}
			PowerDropRows(got.x, stride, n, 0.5, shift.x, sum.x, d)
			if !same(got.x, want) || !same(sum.x, sums) || !sum.intact() || !intactStrip(got, stride, n) {
				t.Fatalf("%d rows of %d differ with threshold %#x", rows, n, d.Threshold)
			}
			// Rows whose elements have consecutive numbers: the elements between them may change.
			inOne := d
			inOne.Step = stride
			x := newStrip(r, rows, stride, n)
			want = clone(x.x)
			PowerRows(want, stride, n, 0.5, shift.x, sums)
			PowerDropRows(x.x, stride, n, 0.5, shift.x, sum.x, inOne)
			for i := range rows {
				row := want[i*stride:][:n]
				Dropout(row, row, d.Key, d.First+i*stride, d.Threshold, d.Keep)
				if !same(x.x[i*stride:][:n], row) || !same(sum.x, sums) || !sum.intact() || !intactStrip(x, stride, stride) {
					t.Fatalf("row %d of %d consecutive rows of %d differs with threshold %#x", i, rows, n, d.Threshold)
				}
			}
		}
	})
}
