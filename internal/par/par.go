// Package par runs loops on all processors.
//
// For cuts a range into chunks of a fixed size and lets the caller and a pool
// of workers claim them one by one. Where the chunks begin and end depends on
// the arguments alone, so a computation that keeps to its own chunk gives the
// same bits on one thread and on a hundred.
//
// Waking an idle processor costs on the order of 100 µs on a virtual machine,
// which is longer than most of the loops here take. So a worker that runs out
// of work spins, and parks only after about a millisecond without any: a chain
// of short loops, as a training step is, pays for the wake-up once. The price
// is a processor kept busy for that millisecond; a spinning worker yields to
// other goroutines all the time.
//
// Nobody waits for a worker that may be busy elsewhere. The caller claims
// chunks like any worker until none is left, and then waits only for chunks
// that somebody is running, so For may be called from many goroutines and from
// within a body.
package par

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
)

// For calls body(lo, hi) for consecutive ranges that cover [0, n), each chunk
// long but for the last, which may be shorter. The calls may run at the same
// time and in any order; For returns when all have returned. A range of one
// chunk, or any range when GOMAXPROCS is 1, runs on the calling goroutine.
//
// No call of body may wait for another: they may run one after the other.
//
// If a body panics, no further chunk is started, and when those under way have
// stopped For panics with the same value; with several, one of them.
//
// For does not allocate. It panics if chunk is less than 1.
func For(n, chunk int, body func(lo, hi int)) {
	if chunk < 1 {
		panic(fmt.Sprintf("par: For: chunk=%d, want at least 1", chunk))
	}
	if n <= 0 {
		return
	}
	if n <= chunk {
		body(0, n)
		return
	}
	procs, chunks := runtime.GOMAXPROCS(0), (n-1)/chunk+1
	var j *job
	if procs > 1 {
		j = acquire()
	}
	if j == nil {
		for lo := 0; lo < n; lo += chunk {
			body(lo, min(lo+chunk, n))
		}
		return
	}
	helpers := min(procs, chunks) - 1
	j.n, j.chunk, j.chunks, j.body = n, chunk, int64(chunks), body
	j.next.Store(0)
	j.helpers.Store(int32(helpers))
	j.open.Store(true)
	ending := true // unless claim returns, a body is ending this very goroutine
	defer func() { j.finish(ending) }()
	summon(helpers, procs-1)
	j.claim()
	ending = false
}

// A job is one call of For in progress. Jobs live in a fixed table and are used
// again and again. The fields without atomics are written by the owner while
// the job is closed and nobody is inside, and read between enter and leave.
type job struct {
	busy    atomic.Bool  // some call of For owns this entry of the table
	open    atomic.Bool  // there may be chunks to claim
	waiting atomic.Bool  // the owner is about to block until inside drops to 0
	helpers atomic.Int32 // how many workers may be inside
	inside  atomic.Int32 // how many workers are inside, or are checking whether they may be
	next    atomic.Int64 // the next chunk to claim
	failed  atomic.Bool

	n, chunk int
	chunks   int64
	body     func(lo, hi int)
	failure  *failure      // written by whoever turns failed to true
	left     chan struct{} // tells a waiting owner to read inside again

	_ [64]byte // keeps the counters of neighbours off this cache line
}

// failure is what a body panicked with.
type failure struct{ value any }

// errGoexit stands for the panic value of a body that ended its goroutine.
var errGoexit = errors.New("par: For: body called runtime.Goexit")

// jobs bounds how many calls of For can share the workers at a time. A call
// that finds no entry free runs alone, which is slower and just as right.
var jobs [32]job

func init() {
	for i := range jobs {
		jobs[i].left = make(chan struct{}, 1)
	}
}

// finish waits for the workers, hands the job back and, unless the goroutine is
// ending anyway, passes on what a body panicked with.
func (j *job) finish(ending bool) {
	j.close()
	f := j.failure
	j.body, j.failure = nil, nil
	j.busy.Store(false)
	if f != nil && !ending {
		panic(f.value)
	}
}

// acquire returns a free entry of the table, or nil.
func acquire() *job {
	for i := range jobs {
		j := &jobs[i]
		if !j.busy.Load() && j.busy.CompareAndSwap(false, true) {
			j.failed.Store(false)
			return j
		}
	}
	return nil
}

// claim runs chunks until none is left, or until some body has panicked.
func (j *job) claim() {
	normal := false
	defer func() {
		if normal {
			return
		}
		f := &failure{value: recover()}
		if f.value == nil {
			f.value = errGoexit
		}
		if j.failed.CompareAndSwap(false, true) {
			j.failure = f
		}
		j.next.Store(j.chunks)
	}()
	for {
		c := j.next.Add(1) - 1
		if c >= j.chunks {
			break
		}
		lo := int(c) * j.chunk
		j.body(lo, min(lo+j.chunk, j.n))
	}
	normal = true
}

// enter reports whether the caller, a worker, may claim chunks of j; if so it
// has to leave. Counting itself in before it reads open is what makes this
// safe: the owner closes the job first and counts afterwards.
func (j *job) enter() bool {
	if !j.open.Load() {
		return false
	}
	if j.inside.Add(1) <= j.helpers.Load() && j.open.Load() && j.next.Load() < j.chunks {
		return true
	}
	j.leave()
	return false
}

func (j *job) leave() {
	if j.inside.Add(-1) == 0 && j.waiting.Load() {
		select {
		case j.left <- struct{}{}:
		default: // the owner has a token it has not taken yet
		}
	}
}

// close ends the claiming and returns when no worker is inside.
func (j *job) close() {
	j.open.Store(false)
	for range 2000 {
		if j.inside.Load() == 0 {
			return
		}
	}
	for range 100 {
		if j.inside.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
	j.waiting.Store(true)
	for j.inside.Load() != 0 {
		<-j.left
	}
	j.waiting.Store(false)
}
