package par

import (
	"runtime"
	"sync/atomic"
	"time"
)

// patience is how long a worker spins without finding work before it parks.
const patience = time.Millisecond

var pool struct {
	wanted  atomic.Int32 // workers that the latest call of For would use
	workers atomic.Int32 // goroutines that run work, spinning, busy or parked
	_       [64]byte     // parked is written while others spin on wanted
	parked  atomic.Int32 // workers that are blocked on wake, or about to be
}

// wake carries one token for each parked worker that should look for work. A
// token too many makes a worker look in vain, one too few cannot be: see park.
var wake = make(chan struct{}, 256)

// summon makes sure that helpers workers exist and that they are awake.
func summon(helpers int) {
	want := int32(runtime.GOMAXPROCS(0) - 1)
	if pool.wanted.Load() != want {
		pool.wanted.Store(want)
	}
	for n := pool.workers.Load(); n < want; n = pool.workers.Load() {
		if pool.workers.CompareAndSwap(n, n+1) {
			go work()
		}
	}
	for range min(helpers, int(pool.parked.Load())) {
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
	for spins := 1; ; spins++ {
		if help() {
			idle, spins = time.Now(), 0
			continue
		}
		pause()
		if spins%64 != 0 {
			continue
		}
		runtime.Gosched()
		if time.Since(idle) > patience {
			// Only here, and not as soon as there are too many: a token that
			// this worker was woken by must not be lost.
			if pool.workers.Load() > pool.wanted.Load() {
				return
			}
			park()
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

// park blocks until summon sends a token. A job that opened before this worker
// counted as parked got no token for it, so it looks once more in between.
func park() {
	pool.parked.Add(1)
	for i := range jobs {
		if jobs[i].open.Load() {
			pool.parked.Add(-1)
			return
		}
	}
	<-wake
	pool.parked.Add(-1)
}

// pause passes a few nanoseconds without touching memory that others use.
func pause() {
	for i := range 8 {
		_ = i
	}
}
