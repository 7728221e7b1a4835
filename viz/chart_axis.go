package viz

import (
	"fmt"
	"math"
)

// Axis describes an axis. The zero value is a linear axis that shows all numbers.
type Axis struct {
	// Low and High are the limits; if they are equal, they are computed from the numbers.
	// Everything outside them is cut off.
	Low, High float64
	// Log makes the axis logarithmic. Numbers ≤ 0 have no place on it and interrupt their line.
	Log bool
}

// check rejects invalid limits.
func (a Axis) check(name string) error {
	switch {
	case a.Low == a.High && a.Low == 0:
		return nil
	case !finite(a.Low) || !finite(a.High) || a.Low >= a.High:
		return fmt.Errorf("viz: the %s axis goes from %g to %g, want increasing numbers", name, a.Low, a.High)
	case a.Log && a.Low <= 0:
		return fmt.Errorf("viz: the %s axis goes from %g on a logarithmic scale, want more than 0", name, a.Low)
	}
	return nil
}

// limited reports whether the limits are given.
func (a Axis) limited() bool { return a.Low != a.High }

// position returns the position of a number on the axis, or NaN if it has none.
func (a Axis) position(v float64) float64 {
	switch {
	case !finite(v) || a.Log && v <= 0:
		return math.NaN()
	case a.Log:
		return math.Log10(v)
	}
	return v
}

// open returns the range of the axis, given the range of the numbers' positions.
func (a Axis) open(s span, room float64) span {
	if a.limited() {
		return span{a.position(a.Low), a.position(a.High)}
	}
	if a.Log && !s.empty() {
		if s.low == s.high {
			return span{s.low - 0.5, s.high + 0.5}
		}
		room *= s.high - s.low
		return span{s.low - room, s.high + room}
	}
	return s.opened(room)
}

// ticks returns about n positions in a range and their labels.
func (a Axis) ticks(s span, n int) (places []float64, texts []string) {
	if !a.Log {
		return s.ticks(n)
	}
	low, high := math.Ceil(s.low-1e-9), math.Floor(s.high+1e-9)
	if decades := high - low; decades < 1 { // the numbers are within one or two powers of ten
		for d := math.Floor(s.low); d <= s.high; d++ {
			for _, times := range []float64{1, 2, 5} {
				if at := d + math.Log10(times); at >= s.low-1e-9 && at <= s.high+1e-9 {
					places = append(places, at)
				}
			}
		}
		if len(places) < 2 { // too close for such steps: label the ends
			places = []float64{s.low, s.high}
		}
	} else {
		for d, step := low, math.Ceil((decades+1)/float64(max(n, 2))); d <= high; d += step {
			places = append(places, d)
		}
	}
	for _, at := range places {
		texts = append(texts, plain(math.Pow(10, at)))
	}
	return places, texts
}

// clip returns the pieces of a line that are inside a rectangle. The pieces of a closed line, which is the outline of an
// area, are one outline.
func clip(line []point, closed bool, r rectangle) [][]point {
	pieces := [][]point{line}
	for _, side := range []struct{ x, y, limit float64 }{{1, 0, r.x}, {-1, 0, -(r.x + r.w)}, {0, 1, r.y}, {0, -1, -(r.y + r.h)}} {
		depth := func(p point) float64 { return side.x*p.x + side.y*p.y - side.limit } // inside if ≥ 0
		var kept [][]point
		for _, line := range pieces {
			var piece []point
			for i, b := range line {
				a := line[(i+len(line)-1)%len(line)]
				from, to := depth(a), depth(b)
				if (closed || i > 0) && (from >= 0) != (to >= 0) {
					t := from / (from - to)
					cut := point{a.x + t*(b.x-a.x), a.y + t*(b.y-a.y)}
					if side.x != 0 { // exactly, however far away the point outside is
						cut.x = side.x * side.limit
					} else {
						cut.y = side.y * side.limit
					}
					piece = append(piece, cut)
				}
				if to >= 0 {
					piece = append(piece, b)
				} else if !closed && piece != nil {
					kept, piece = append(kept, piece), nil
				}
			}
			if piece != nil {
				kept = append(kept, piece)
			}
		}
		pieces = kept
	}
	return pieces
}

// has reports whether a point is in the rectangle or at most slightly outside.
func (r rectangle) has(p point) bool {
	const slack = 0.01
	return p.x >= r.x-slack && p.x <= r.x+r.w+slack && p.y >= r.y-slack && p.y <= r.y+r.h+slack
}
