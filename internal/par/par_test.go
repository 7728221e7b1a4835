package par

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// withProcs runs f as a subtest for several numbers of processors.
func withProcs(t *testing.T, f func(t *testing.T)) {
	for _, procs := range []int{1, 2, 4, 7} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			f(t)
		})
	}
}

func TestForCoversTheRangeInFixedChunks(t *testing.T) {
	withProcs(t, func(t *testing.T) {
		for _, n := range []int{-1, 0, 1, 2, 3, 7, 16, 17, 100, 1009} {
			for _, chunk := range []int{1, 2, 3, 16, 100, 2000} {
				seen := make([]int32, max(n, 0))
				For(n, chunk, func(lo, hi int) {
					if lo%chunk != 0 || hi != min(lo+chunk, n) || lo >= hi {
						t.Errorf("n=%d chunk=%d: body(%d, %d)", n, chunk, lo, hi)
					}
					for i := lo; i < hi; i++ {
						atomic.AddInt32(&seen[i], 1)
					}
				})
				for i, times := range seen {
					if times != 1 {
						t.Fatalf("n=%d chunk=%d: index %d ran %d times", n, chunk, i, times)
					}
				}
			}
		}
	})
}

// Threads claim chunks of short loops at the same moments. A thread that finds nothing left must not keep another from the
// chunk that it has just claimed.
func TestForRunsEachChunkOnce(t *testing.T) {
	var times [7]atomic.Int32
	for i := range int32(50_000) {
		For(len(times), 1, func(lo, hi int) { times[lo].Add(1) })
		for c := range times {
			if n := times[c].Load(); n != i+1 {
				t.Fatalf("after %d loops, chunk %d has run %d times", i+1, c, n)
			}
		}
	}
}

func TestForNested(t *testing.T) {
	withProcs(t, func(t *testing.T) {
		var total atomic.Int64
		For(13, 1, func(lo, hi int) {
			For(11, 2, func(lo, hi int) {
				For(7, 3, func(lo, hi int) { total.Add(int64(hi - lo)) })
			})
		})
		// The middle loop makes 6 calls for its 11 indices.
		if want := int64(13 * 6 * 7); total.Load() != want {
			t.Errorf("inner bodies covered %d indices, want %d", total.Load(), want)
		}
	})
}

// With more goroutines than jobs in the table, some calls run alone.
func TestForConcurrent(t *testing.T) {
	withProcs(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for g := range 3 * len(jobs) {
			wg.Go(func() {
				for round := range 50 {
					var total atomic.Int64
					n := 1 + (g*31+round*17)%200
					For(n, 3, func(lo, hi int) { total.Add(int64(hi - lo)) })
					if total.Load() != int64(n) {
						t.Errorf("covered %d of %d", total.Load(), n)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestForPassesOnPanics(t *testing.T) {
	boom := errors.New("boom")
	withProcs(t, func(t *testing.T) {
		for bad := range 20 {
			var running atomic.Int32
			got := func() (r any) {
				defer func() { r = recover() }()
				For(20, 1, func(lo, hi int) {
					running.Add(1)
					defer running.Add(-1)
					if lo == bad {
						panic(boom)
					}
					time.Sleep(10 * time.Microsecond)
				})
				return nil
			}()
			if got != boom {
				t.Fatalf("recovered %v, want %v", got, boom)
			}
			if n := running.Load(); n != 0 {
				t.Fatalf("%d bodies still run after For has panicked", n)
			}
		}
		// The pool still works.
		var total atomic.Int64
		For(100, 1, func(lo, hi int) { total.Add(1) })
		if total.Load() != 100 {
			t.Errorf("after the panics: covered %d of 100", total.Load())
		}
	})
}

func TestForSurvivesGoexit(t *testing.T) {
	withProcs(t, func(t *testing.T) {
		var wg sync.WaitGroup
		wg.Go(func() {
			// If the body ends a worker, For panics.
			defer func() {
				if r := recover(); r != nil && r != errGoexit {
					t.Errorf("recovered %v", r)
				}
			}()
			For(50, 1, func(lo, hi int) {
				time.Sleep(time.Microsecond)
				runtime.Goexit()
			})
		})
		wg.Wait()
		for i := range jobs {
			if jobs[i].busy.Load() {
				t.Errorf("job %d is still taken", i)
			}
		}
	})
}

func TestForRejectsBadChunk(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()), "par: For: chunk=0, want at least 1"; got != want {
			t.Errorf("panicked with %q, want %q", got, want)
		}
	}()
	For(10, 0, func(lo, hi int) {})
}

// The bodies wait for each other here. This is not allowed, but shows that as many goroutines run them. The caller
// wakes only two of the workers, which wake the others.
func TestForUsesParkedWorkers(t *testing.T) {
	for _, procs := range []int{2, 3, 8} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		for range 20 {
			waitUntilParked()
			all := make(chan struct{})
			var arrived atomic.Int32
			timeout := time.AfterFunc(10*time.Second, func() { panic("par: some goroutines did not come") })
			For(procs, 1, func(lo, hi int) {
				if int(arrived.Add(1)) == procs {
					close(all)
				}
				<-all
			})
			timeout.Stop()
		}
	}
}

// waitUntilParked returns when no worker spins: an idle process takes no processor time.
func waitUntilParked() {
	for i := range workers {
		for s := workers[i].state.Load(); s != parked && s != absent; s = workers[i].state.Load() {
			time.Sleep(patience)
		}
	}
}

// present returns the number of workers.
func present() int {
	n := 0
	for i := range workers {
		if workers[i].state.Load() != absent {
			n++
		}
	}
	return n
}

func TestWorkersFollowGOMAXPROCS(t *testing.T) {
	waitFor := func(want int) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for {
			For(64, 1, func(lo, hi int) { time.Sleep(10 * time.Microsecond) })
			if n := present(); n == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d workers, want %d", present(), want)
			}
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(6))
	waitFor(5)
	runtime.GOMAXPROCS(3)
	waitFor(2)
	runtime.GOMAXPROCS(5)
	waitFor(4)
}

// The test uses a fresh process, in which the first call of For is in a bubble. There time stops, at the start
// of the year 2000, unless all goroutines of the bubble wait.
func TestWorkersBelongToNoBubble(t *testing.T) {
	const child = "ATTN_TEST_BUBBLE"
	if os.Getenv(child) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorkersBelongToNoBubble$")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, procs := range []int{2, 5, 3, 6} {
			runtime.GOMAXPROCS(procs)
			var outside atomic.Int32
			for workers := -1; outside.Load() == 0 || workers != procs-1; workers = present() {
				For(8, 1, func(lo, hi int) {
					if !time.Now().Equal(start) { // on a worker; the caller then waits for it
						outside.Add(1)
						burn(time.Millisecond)
					}
				})
			}
			if d := time.Since(start); d != 0 {
				t.Fatalf("with %d processors, %v passed in the bubble during For", procs, d)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ctx.Done() // makes a channel of the bubble
		shared, _ := Share(ctx)
		if err := shared.Err(); err != nil {
			t.Errorf("error %v before the end", err)
		}
		cancel()
		synctest.Wait()
		var ended atomic.Int32 // as seen by workers
		for ended.Load() == 0 {
			For(8, 1, func(lo, hi int) {
				if err := shared.Err(); err != context.Canceled {
					t.Errorf("error %v after the end", err)
				}
				if !time.Now().Equal(start) {
					ended.Add(1)
					burn(time.Millisecond)
				}
			})
		}
		time.Sleep(time.Hour)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("after an hour, %v passed", d)
		}
	})
}

func TestForDoesNotAllocate(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var total atomic.Int64
	body := func(lo, hi int) { total.Add(int64(hi - lo)) }
	For(10, 1, body)
	if n := testing.AllocsPerRun(100, func() { For(10, 1, body) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// burn keeps a processor busy for about d without touching memory.
func burn(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	body := func(lo, hi int) {}
	for b.Loop() {
		For(2, 1, body)
	}
}

// BenchmarkTwoChunks measures the overlap of two chunks of a given length: the ideal is a speedup
// of 2.
func BenchmarkTwoChunks(b *testing.B) {
	for _, d := range []time.Duration{20 * time.Microsecond, 50 * time.Microsecond, 200 * time.Microsecond} {
		b.Run(d.String(), func(b *testing.B) {
			body := func(lo, hi int) { burn(d) }
			for b.Loop() {
				For(2, 1, body)
			}
			b.ReportMetric(float64(2*d)*float64(b.N)/float64(b.Elapsed()), "speedup")
		})
	}
}
