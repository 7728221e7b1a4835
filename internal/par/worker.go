package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// patience is how long a worker spins without finding work before it parks.
const patience = time.Millisecond

var pool struct {
	// posted counts the jobs that were ever opened. It is all that a spinning
	// worker reads, and alone on its cache line: while a job is set up, the
	// memory it is in must not go back and forth between processors.
	posted atomic.Uint64
	_      [64]byte

	wanted  atomic.Int32 // workers that the latest call of For could use
	workers atomic.Int32 // goroutines that run work: spinning, busy or parked
	parked  atomic.Int32 // workers that are blocked on wake, or about to be
}

// wake carries one token for each parked worker that should search for work. A
// token too many makes a worker search in vain, one too few cannot be: see park.
var wake = make(chan struct{}, 256)

// summon tells the workers that a job is open for helpers of them, and makes
// sure that there are as many as wanted.
func summon(helpers, wanted int) {
	pool.posted.Add(1)
	want := int32(wanted)
	if pool.wanted.Load() != want {
		pool.wanted.Store(want)
	}
	for n := pool.workers.Load(); n < want; n = pool.workers.Load() {
		if pool.workers.CompareAndSwap(n, n+1) {
			go work()
		}
	}
	// A worker takes long to wake up; meanwhile one token is enough for it.
	for range min(helpers, int(pool.parked.Load())-len(wake)) {
		select {
		case wake <- struct{}{}:
		default:
			return
		}
	}
}

// work is the life of a worker. It ends when GOMAXPROCS has been lowered; if
// several notice at once, too many end and the next call starts new ones.
func work() {
	defer pool.workers.Add(-1)
	idle := time.Now()
	seen := uint64(0) // what posted was when there was nothing to do
	for spins := 1; ; spins++ {
		if posted := pool.posted.Load(); posted != seen {
			if help() {
				for help() {
				}
				idle, spins = time.Now(), 0
			}
			seen = posted
			continue
		}
		if spins%1024 != 0 {
			continue
		}
		runtime.Gosched()
		if time.Since(idle) > patience {
			// Only here, and not as soon as there are too many: a token that
			// this worker was woken by must not be lost.
			if pool.workers.Load() > pool.wanted.Load() {
				return
			}
			park(seen)
			idle = time.Now()
		}
	}
}

// help runs chunks of one open job and reports whether it found any.
func help() bool {
	for i := range jobs {
		j := &jobs[i]
		if !j.enter() {
			continue
		}
		func() {
			defer j.leave() // also when the body ends this goroutine
			j.claim()
		}()
		return true
	}
	return false
}

// park blocks until summon sends a token. A job that was posted before this
// worker counted as parked sent no token for it, so it looks once more.
func park(seen uint64) {
	pool.parked.Add(1)
	if pool.posted.Load() == seen {
		<-wake
	}
	pool.parked.Add(-1)
}
