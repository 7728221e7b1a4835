package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// patience is the time that a worker spins without work before it parks. Loops of a step of a decoder follow one
	// another within it: the row "generate Llama 135M float32" of bench/RESULTS.md.
	patience = time.Millisecond
	// breathing is the time after which a worker that has no work lets Go poll the network. It costs 6 µs.
	breathing = 250 * time.Microsecond
)

// worker is a goroutine that helps with loops.
type worker struct {
	state atomic.Int32 // absent to called; nothing else on its cache line is written while the worker waits
	_     [124]byte
	wake  chan struct{} // receives a value for each change from parked to called
	_     [120]byte
}

// The states of a worker. The caller of For changes waiting and parked to called + the index of its job, and absent to
// that of a worker that it starts; the worker changes the others.
const (
	absent  = iota // there is no such goroutine
	busy           // runs chunks, or looks for a job before it waits
	waiting        // reads its state until it changes
	parked         // receives from wake
	called
)

var (
	workers [255]worker
	wanted  atomic.Int32 // number of workers that the latest call of For can use
	spare   atomic.Bool  // GOMAXPROCS is larger than the number of threads, so Go has idle processors
	breath  atomic.Int64 // when a worker last parked or breathed, in nanoseconds after started
)

var started = time.Now()

// start receives the index of each worker to start. A goroutine belongs to the synctest bubble of the goroutine
// that starts it, and in a bubble time stops while a worker spins. Workers are therefore started by a goroutine
// that is older than any bubble. The channels of this package, too, are made before any bubble, because a channel
// belongs to the bubble in which it is made.
var start = make(chan int32, len(workers))

func init() {
	for i := range workers {
		workers[i].wake = make(chan struct{}, 1)
	}
	go func() {
		for i := range start {
			go workers[i].work(i)
		}
	}()
}

// summon calls up to helpers of the first n workers to job number j: those that wait, and then others, which take
// longer to come.
func summon(j, helpers, n int32) {
	for i := int32(0); i < n && helpers > 0; i++ {
		if w := &workers[i]; w.state.Load() == waiting && w.state.CompareAndSwap(waiting, called+j) {
			helpers--
		}
	}
	woken := false
	for i := int32(0); i < n && helpers > 0; i++ {
		switch w := &workers[i]; w.state.Load() {
		case parked:
			if w.state.CompareAndSwap(parked, called+j) {
				w.wake <- struct{}{}
				woken = true
				helpers--
			}
		case absent:
			if w.state.CompareAndSwap(absent, called+j) {
				start <- i
				helpers--
			}
		}
	}
	// A goroutine that is woken runs next on the processor of the one that wakes it. Other processors take it from there
	// only after a pause of 60 to 130 µs, but this goroutine, once it has yielded, at once.
	if woken {
		runtime.Gosched()
	}
}

// resize sets the number of workers that calls of For can use. Parked workers beyond it are woken, so that they end.
func resize(n, j int32) {
	for i, before := n, wanted.Swap(n); i < before; i++ {
		if w := &workers[i]; w.state.Load() == parked && w.state.CompareAndSwap(parked, called+j) {
			w.wake <- struct{}{}
		}
	}
}

// work is the loop of worker number i.
func (w *worker) work(i int32) {
	ending := true // stays true if a body ends this goroutine
	defer func() {
		if ending {
			w.state.Store(absent)
		}
	}()
	for next := int32(0); ; {
		if j := w.state.Swap(busy) - called; j >= 0 && jobs[j].join() {
			jobs[j].help(i)
		}
		for j := joinAny(next); j >= 0; j = joinAny(next) {
			jobs[j].help(i)
			next = j + 1
		}
		if !w.wait(i) {
			ending = false
			return
		}
	}
}

// joinAny joins a job and returns its number, or -1 if no job has chunks to claim. It begins at job number first, so
// that workers do not all help the same caller.
func joinAny(first int32) int32 {
	n := used.Load()
	for k := range n {
		if j := (first + k) % n; jobs[j].join() {
			return j
		}
	}
	return -1
}

// wait returns after a job has called, or has been found. It returns false if the worker must end, because GOMAXPROCS
// has been lowered.
func (w *worker) wait(i int32) bool {
	w.state.Store(waiting)
	// A job that was opened before that did not call this worker.
	for j := range used.Load() {
		if jobs[j].wants() && w.state.CompareAndSwap(waiting, busy) {
			return true
		}
	}
	end := time.Since(started) + patience
	for round := 1; ; round++ {
		now := time.Since(started)
		if last := breath.Load(); now-time.Duration(last) > breathing && !spare.Load() && breath.CompareAndSwap(last, int64(now)) {
			breathe()
		}
		for range 16 {
			pause()
			if w.state.Load() != waiting {
				return true
			}
		}
		if now > end {
			break
		}
		if round%16 == 0 { // some 40 µs: another goroutine may have work but no processor
			runtime.Gosched()
		}
	}
	if i >= wanted.Load() && w.state.CompareAndSwap(waiting, absent) {
		return false
	}
	if w.state.CompareAndSwap(waiting, parked) {
		breath.Store(int64(time.Since(started)))
		<-w.wake
	}
	return true
}
