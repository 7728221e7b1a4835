package par

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// newJob returns a job that is open, with a worker inside.
func newJob() *job {
	j := &job{left: make(chan struct{}, 1), body: func(lo, hi int) {}}
	j.busy.Store(true)
	j.helpers.Store(2)
	j.open.Store(true)
	j.inside.Store(1)
	return j
}

// soon returns when ready reports true, and fails the test if it does not within some seconds.
func soon(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ready(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A job that ends lets no worker in, stays in use while one is inside, and is then as new: whatever a body panicked with
// is raised once, unless the body has ended the goroutine.
func TestFinish(t *testing.T) {
	for _, ending := range []bool{false, true} {
		j := newJob()
		j.failure = &failure{value: "a body panicked"}
		if !j.join() {
			t.Error("a worker may not enter an open job")
		}
		j.leave()
		done := make(chan any, 1)
		go func() {
			defer func() { done <- recover() }()
			j.finish(ending)
		}()
		soon(t, "the owner does not wait", j.waiting.Load)
		if j.join() || j.wants() {
			t.Error("a worker may enter a job that ends")
		}
		select {
		case <-done:
			t.Fatal("finish returned while a worker was inside")
		case <-time.After(10 * time.Millisecond):
		}
		if !j.busy.Load() || j.body == nil || j.failure == nil {
			t.Error("the entry is free while a worker is inside")
		}
		j.leave()
		var raised, want any
		if !ending {
			want = "a body panicked"
		}
		select {
		case raised = <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the owner was not woken")
		}
		if raised != want {
			t.Errorf("ending %t: panic with %v, want %v", ending, raised, want)
		}
		if j.busy.Load() || j.body != nil || j.failure != nil || j.waiting.Load() || len(j.left) != 0 {
			t.Errorf("ending %t: the entry is not as new", ending)
		}
	}
}

// An owner that waits is woken exactly once, also if the last worker leaves just before it blocks: it neither sleeps on, nor
// is a wake-up left behind for the next loop.
func TestLeaveWakesTheOwnerOnce(t *testing.T) {
	rounds := int64(200_000)
	if testing.Short() {
		rounds = 20_000
	}
	j := newJob()
	var turn, slept atomic.Int64
	go func() {
		for r := int64(1); r <= rounds; r++ {
			Await(func() bool { return turn.Load() >= r })
			j.leave()
		}
	}()
	go func() {
		for r := int64(1); r <= rounds; r++ {
			j.inside.Store(1)
			turn.Store(r)
			j.sleep()
			slept.Store(r)
		}
	}()
	for before := int64(-1); slept.Load() < rounds; time.Sleep(100 * time.Millisecond) {
		if now := slept.Load(); now == before && now > 0 {
			soon(t, fmt.Sprintf("round %d: the owner sleeps with %d workers inside", now, j.inside.Load()), func() bool { return slept.Load() > now })
		} else {
			before = now
		}
	}
	if j.inside.Load() != 0 || j.waiting.Load() || len(j.left) != 0 {
		t.Errorf("%d workers are inside, waiting %t, %d wake-ups are left behind", j.inside.Load(), j.waiting.Load(), len(j.left))
	}
}

// A worker that left before the owner said that it waits does not wake it, and the owner no longer says so; one that left
// after that does.
func TestWakes(t *testing.T) {
	for _, c := range []struct {
		inside         int32
		waiting, wakes bool
		after          bool // whether the owner still says that it waits
	}{{1, true, true, true}, {0, true, false, false}, {0, false, true, false}} {
		j := newJob()
		j.inside.Store(c.inside)
		j.waiting.Store(c.waiting)
		if got := j.wakes(); got != c.wakes || j.waiting.Load() != c.after {
			t.Errorf("%+v: wakes %t, waiting %t", c, got, j.waiting.Load())
		}
	}
}

// Workers that leave before the owner has lost its patience do not wake it.
func TestCloseWithoutSleep(t *testing.T) {
	j := newJob()
	j.leave()
	j.close()
	if j.open.Load() || j.waiting.Load() || len(j.left) != 0 {
		t.Error("the owner has slept, want it not to")
	}
}
