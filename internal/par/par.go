// Package par runs loops on all processors.
//
// For divides a range into chunks of a fixed size. The caller and a pool of workers claim chunks
// one by one. The bounds of the chunks depend only on the arguments, so a computation that stays
// within its chunk gives the same bits with any number of threads.
//
// Each thread begins with its own chunks, at the same part of every loop: the rows that a thread writes in one loop
// are in its caches when it reads them in the next. It then claims chunks of the others.
//
// Waking an idle processor takes on the order of 100 µs on a virtual machine, longer than most
// loops here. A worker without work therefore spins, and parks only after about a millisecond. A
// chain of short loops, such as a training step, then pays for the wake-up only once. Meanwhile the
// worker reads a word that others do not use, asks Go's scheduler rarely, and lets it poll the
// network at times. There are never more threads than processors, so no worker takes the place of
// one that has work.
//
// For never waits for a worker that may be busy elsewhere. The caller claims chunks like any
// worker until none is left, and then waits only for chunks in progress. For may therefore be
// called from many goroutines and from within a body.
//
// Workers belong to no bubble of testing/synctest, even if For is called in one. A body must not use a channel, timer
// or context of its caller: a worker that receives from a channel of a bubble ends the program. Share makes a context
// that it may check.
package par

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// For calls body(lo, hi) for consecutive ranges that cover [0, n). Each range has length chunk,
// except the last, which may be shorter. The calls may run concurrently and in any order; For
// returns after all calls have returned. If there is only one chunk, or if GOMAXPROCS is 1, body
// runs on the calling goroutine.
//
// A call of body may wait for another only by Await, for work that the other has begun: they may run one after the other.
//
// If a body panics, no further chunk is started. When the running chunks have finished, For
// panics with the same value; if several bodies panicked, with one of their values.
//
// For does not allocate. It panics if chunk is less than 1.
func For(n, chunk int, body func(lo, hi int)) { run(n, chunk, false, body) }

// InOrder is For for chunks that threads claim in their order, because the first take longest or the last need their
// results.
func InOrder(n, chunk int, body func(lo, hi int)) { run(n, chunk, true, body) }

// run is For or InOrder.
func run(n, chunk int, ordered bool, body func(lo, hi int)) {
	if chunk < 1 {
		panic(fmt.Sprintf("par: For: chunk=%d, want at least 1", chunk))
	}
	if n <= 0 {
		return
	}
	if t := tracing.Load(); t != nil {
		t.loop(n, chunk, ordered, body)
		return
	}
	if n <= chunk {
		body(0, n)
		return
	}
	threads, chunks := Threads(), (n-1)/chunk+1
	var j *job
	if threads > 1 {
		j = acquire()
	}
	if j == nil {
		serial(n, chunk, body)
		return
	}
	helpers := int32(min(threads, chunks) - 1)
	j.n, j.chunk, j.body = n, chunk, body
	j.ranges = ranges(threads, chunks, ordered)
	for r := range j.ranges {
		j.next[r].Store(int64(begin(r, j.ranges, chunks)))
		j.ends[r] = int64(begin(r+1, j.ranges, chunks))
	}
	j.none.Store(false)
	j.helpers.Store(helpers)
	j.open.Store(true)
	if now := time.Since(started); now-j.yielded > breathing {
		j.yielded = now
		runtime.Gosched() // for goroutines and timers of this processor
	}
	ending := true // stays true if a body ends this goroutine
	defer func() { j.finish(ending) }()
	others := int32(min(threads-1, len(workers)))
	if wanted.Load() != others {
		resize(others, j.number)
		spare.Store(runtime.GOMAXPROCS(0) > threads)
	}
	summon(j.number, helpers, others)
	j.claim(0)
	ending = false
}

// serial runs all chunks on the calling goroutine.
func serial(n, chunk int, body func(lo, hi int)) {
	for lo := 0; lo < n; lo += chunk {
		body(lo, min(lo+chunk, n))
	}
}

// Threads returns the number of threads that share a loop, for which work is cut: GOMAXPROCS, but no more than there
// are processors, because threads that wait for a processor make the others wait.
func Threads() int {
	if t := tracing.Load(); t != nil {
		return t.Threads
	}
	return min(runtime.GOMAXPROCS(0), Usable)
}

// job is one call of For in progress. Jobs are reused entries of a fixed table. The owner writes
// the fields without atomics while the job is closed and no worker is inside; workers read them
// between enter and leave.
type job struct {
	busy    atomic.Bool  // a call of For uses this entry of the table
	open    atomic.Bool  // there may be chunks to claim
	waiting atomic.Bool  // the owner is about to block until the last worker leaves
	helpers atomic.Int32 // maximum number of workers inside
	inside  atomic.Int32 // number of workers that are inside or are checking whether they may enter
	none    atomic.Bool  // all chunks have been claimed, or a body has panicked
	failed  atomic.Bool

	number   int32 // in jobs
	n, chunk int
	body     func(lo, hi int)
	yielded  time.Duration // when the owner last let other goroutines run
	failure  *failure      // written by the goroutine that sets failed
	left     chan struct{} // receives a value for each change of waiting from true to false by a worker

	ranges int
	ends   [mostRanges]int64   // of the chunks of each range
	next   [mostRanges]counter // the chunk of each range to claim next

	_ [64]byte // keeps the counters of neighbouring jobs off this cache line
}

// mostRanges is the largest number of ranges of chunks. More threads share them. A range for each thread keeps the rows
// that it writes in its caches for the next loop: the row "generate Llama 135M float32" of bench/RESULTS.md.
const mostRanges = 16

// ranges returns the number of ranges of chunks, each of which is claimed in order.
func ranges(threads, chunks int, ordered bool) int {
	if ordered {
		return 1
	}
	return min(threads, chunks, mostRanges)
}

// begin returns the first chunk of range r.
func begin(r, ranges, chunks int) int { return r * chunks / ranges }

// counter is a number on its own cache line.
type counter struct {
	atomic.Int64
	_ [120]byte
}

// failure is the panic value of a body.
type failure struct{ value any }

// errGoexit is the panic value for a body that ended its goroutine.
var errGoexit = errors.New("par: For: body called runtime.Goexit")

// jobs limits the number of calls of For that can share the workers at a time. A call without a
// free entry runs alone, which is slower but gives the same result.
var jobs [32]job

// used is the number of entries of jobs that have been used. Workers skip the others.
var used atomic.Int32

func init() {
	for i := range jobs {
		jobs[i].number, jobs[i].left = int32(i), make(chan struct{}, 1)
	}
}

// finish waits for the workers and frees the job. Unless the goroutine is ending anyway, it
// panics if a body panicked.
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
			for n := used.Load(); n <= j.number && !used.CompareAndSwap(n, j.number+1); n = used.Load() {
			}
			return j
		}
	}
	return nil
}

// claim runs chunks until none is left or some body has panicked. It begins with the range of a thread.
func (j *job) claim(thread int) {
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
		j.none.Store(true)
	}()
	for i := range j.ranges {
		r := (thread + i) % j.ranges
		for c := j.next[r].Add(1) - 1; c < j.ends[r] && !j.failed.Load(); c = j.next[r].Add(1) - 1 {
			lo := int(c) * j.chunk
			j.body(lo, min(lo+j.chunk, j.n))
		}
	}
	j.none.Store(true)
	normal = true
}

// join reports whether the calling worker may claim chunks of j. If so, the worker must call
// leave later. The order makes this safe: join increments inside before it reads open, and the
// owner closes the job before it reads inside.
func (j *job) join() bool {
	if !j.wants() {
		return false
	}
	if j.inside.Add(1) <= j.helpers.Load() && j.open.Load() && !j.none.Load() {
		return true
	}
	j.leave()
	return false
}

// wants reports whether join will probably return true.
func (j *job) wants() bool {
	return j.open.Load() && !j.none.Load() && j.inside.Load() < j.helpers.Load()
}

// help runs chunks of a job that worker number i has joined.
func (j *job) help(i int32) {
	defer j.leave() // also if the body ends this goroutine
	j.claim(int(i) + 1)
}

// leave ends what join began. The last worker to leave wakes the owner, if it waits.
func (j *job) leave() {
	if j.inside.Add(-1) == 0 && j.waiting.CompareAndSwap(true, false) {
		j.left <- struct{}{}
		runtime.Gosched() // to the owner, see summon
	}
}

// close stops further claims and returns when no worker is inside. It counts rounds instead of reading the clock, which
// does not advance in a bubble.
func (j *job) close() {
	j.open.Store(false)
	for i := 1; i <= 10000; i++ { // about as long as a worker's patience
		if j.inside.Load() == 0 {
			return
		}
		if pause(); i%64 == 0 {
			runtime.Gosched()
		}
	}
	j.sleep()
}

// sleep blocks until no worker is inside.
func (j *job) sleep() {
	for j.inside.Load() != 0 {
		j.waiting.Store(true)
		if j.wakes() {
			<-j.left
		}
	}
}

// wakes reports whether a worker wakes the owner, which says that it waits: not if the last one left before it said so.
func (j *job) wakes() bool { return j.inside.Load() != 0 || !j.waiting.CompareAndSwap(true, false) }
