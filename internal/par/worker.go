package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// patience is the time that a worker spins without work before it parks.
const patience = time.Millisecond

var pool struct {
	// posted counts the jobs opened so far. A spinning worker reads nothing else. posted has its
	// own cache line, so that setting up a job does not move the line between processors.
	posted atomic.Uint64
	_      [64]byte

	wanted  atomic.Int32 // number of workers that the latest call of For can use
	workers atomic.Int32 // goroutines that run work: spinning, busy or parked
	parked  atomic.Int32 // workers that are blocked on wake, or about to block
}

// wake receives one token for each parked worker that should look for work. An excess token only
// wakes a worker without work. There is never a token too few; see park.
var wake = make(chan struct{}, 256)

// start receives one token for each worker to start. A goroutine belongs to the synctest bubble of the goroutine
// that starts it, and in a bubble time stops while a worker spins. Workers are therefore started by a goroutine
// that is older than any bubble. The channels of this package, too, are made before any bubble, because a channel
// belongs to the bubble in which it is made.
var start = make(chan struct{}, 256)

func init() {
	go func() {
		for range start {
			go work()
		}
	}()
}

// summon announces a job that up to helpers workers may join, and starts workers until there are
// wanted of them.
func summon(helpers, wanted int) {
	pool.posted.Add(1)
	want := int32(wanted)
	if pool.wanted.Load() != want {
		pool.wanted.Store(want)
	}
	for n := pool.workers.Load(); n < want; n = pool.workers.Load() {
		if pool.workers.CompareAndSwap(n, n+1) {
			start <- struct{}{}
		}
	}
	// A worker takes long to wake up; until then, one token per worker is enough.
	for range min(helpers, int(pool.parked.Load())-len(wake)) {
		select {
		case wake <- struct{}{}:
		default:
			return
		}
	}
}

// work is the loop of a worker. It ends when GOMAXPROCS has been lowered. If several workers
// notice this at once, too many end, and the next call starts new ones.
func work() {
	defer pool.workers.Add(-1)
	idle := time.Now()
	seen := uint64(0) // posted when there was last nothing to do
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
			// End only here, because a token that woke this worker must not be lost.
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
		if !j.join() {
			continue
		}
		func() {
			defer j.leave() // also if the body ends this goroutine
			j.claim()
		}()
		return true
	}
	return false
}

// park blocks until summon sends a token. A job posted before this worker was counted as parked
// sent no token for it, so park checks posted again.
func park(seen uint64) {
	pool.parked.Add(1)
	if pool.posted.Load() == seen {
		<-wake
	}
	pool.parked.Add(-1)
}
