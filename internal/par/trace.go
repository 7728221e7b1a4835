package par

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// Schedule is how a computation is cut into loops and chunks, and how long each takes. It shows on any machine what
// many threads can gain.
type Schedule struct {
	Threads int           // for which the work was cut
	Loops   []Loop        // in order, without those within the body of another
	Serial  time.Duration // outside of loops
}

// Loop is a call of For.
type Loop struct {
	Caller string          // the function that called For
	Chunks []time.Duration // in the order of the range

	ordered bool // a call of InOrder
}

// tracing is the running call of Trace, or nil.
var tracing atomic.Pointer[tracer]

type tracer struct {
	Schedule
	gaps   []time.Duration // before each loop, and after the last
	since  time.Time       // the end of the last loop
	inside bool            // a body is running
}

// Trace calls f several times, with work cut for the given number of threads but run by the calling goroutine alone,
// and returns the shortest time of each chunk and of each gap between loops; of calls that make different loops, the
// fastest. Meanwhile no other goroutine may call For.
func Trace(threads, times int, f func()) Schedule {
	var best *tracer
	for range times {
		t := trace(threads, f)
		switch {
		case best == nil:
			best = t
		case slices.EqualFunc(t.Loops, best.Loops, func(a, b Loop) bool { return len(a.Chunks) == len(b.Chunks) }):
			shortest(best.gaps, t.gaps)
			for i := range t.Loops {
				shortest(best.Loops[i].Chunks, t.Loops[i].Chunks)
			}
		case sum(t.gaps)+t.Time(1) < sum(best.gaps)+best.Time(1):
			best = t
		}
	}
	best.Serial = sum(best.gaps)
	return best.Schedule
}

func trace(threads int, f func()) *tracer {
	t := &tracer{Schedule: Schedule{Threads: threads}, since: time.Now()}
	if !tracing.CompareAndSwap(nil, t) {
		panic("par: Trace: another call is running")
	}
	defer tracing.Store(nil)
	f()
	t.gaps = append(t.gaps, time.Since(t.since))
	return t
}

// shortest sets each time of best to the shorter of two.
func shortest(best, list []time.Duration) {
	for i, d := range list {
		best[i] = min(best[i], d)
	}
}

// loop is For during Trace.
func (t *tracer) loop(n, chunk int, ordered bool, body func(lo, hi int)) {
	if t.inside {
		serial(n, chunk, body)
		return
	}
	gap, begin, before := time.Since(t.since), time.Now(), len(t.Loops)
	l := Loop{Caller: "a loop of one chunk", Chunks: make([]time.Duration, 0, (n-1)/chunk+1), ordered: ordered}
	if n <= chunk { // the body may call For; if it does, those calls are the loops
		body(0, n)
		if before < len(t.Loops) {
			return
		}
		l.Chunks = append(l.Chunks, time.Since(begin))
	} else {
		var caller [1]uintptr
		runtime.Callers(4, caller[:])
		frame, _ := runtime.CallersFrames(caller[:]).Next()
		l.Caller = frame.Function
		t.inside = true
		defer func() { t.inside = false }()
		for lo := 0; lo < n; lo += chunk {
			begin = time.Now()
			body(lo, min(lo+chunk, n))
			l.Chunks = append(l.Chunks, time.Since(begin))
		}
	}
	t.gaps, t.Loops, t.since = append(t.gaps, gap), append(t.Loops, l), time.Now()
}

// Span returns the time of the loop on p threads that claim its chunks. Waking and waiting take no time.
func (l *Loop) Span(p int) time.Duration {
	free := make([]time.Duration, p) // the time at which each thread has no work
	chunks := len(l.Chunks)
	ranges := ranges(p, chunks, l.ordered)
	left := make([][]time.Duration, ranges)
	for r := range left {
		left[r] = l.Chunks[begin(r, ranges, chunks):begin(r+1, ranges, chunks)]
	}
	for range chunks {
		thread := slices.Index(free, slices.Min(free))
		r := thread % ranges
		for len(left[r]) == 0 {
			r = (r + 1) % ranges
		}
		free[thread] += left[r][0]
		left[r] = left[r][1:]
	}
	return slices.Max(free)
}

// Time returns the time of the computation on p threads.
func (s *Schedule) Time(p int) time.Duration {
	t := s.Serial
	for i := range s.Loops {
		t += s.Loops[i].Span(p)
	}
	return t
}

// Speedup returns the time of one thread, with the same cut, relative to that of p threads.
func (s *Schedule) Speedup(p int) float64 { return float64(s.Time(1)) / float64(s.Time(p)) }

// Few returns the number of loops that have fewer chunks than threads.
func (s *Schedule) Few() int {
	n := 0
	for _, l := range s.Loops {
		if len(l.Chunks) < s.Threads {
			n++
		}
	}
	return n
}

func sum(list []time.Duration) (total time.Duration) {
	for _, d := range list {
		total += d
	}
	return total
}
