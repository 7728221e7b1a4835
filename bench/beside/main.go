// Command beside measures what continuous attention leaves to the rest of a process: the time in which a request to an
// HTTP handler is answered, how late a ticker of a millisecond is, and the pauses of the garbage collector. See
// bench/README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

func main() {
	threads := flag.Int("threads", runtime.GOMAXPROCS(0), "GOMAXPROCS")
	callers := flag.Int("callers", 1, "number of goroutines that compute")
	d := flag.Duration("time", 3*time.Second, "time of the measurement")
	ask := flag.String("ask", "", "only ask the handler at this address, and print the times; the program starts itself with it")
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	work := func() error { return measure(*callers, *d) }
	if *ask != "" {
		work = func() error { return request(*ask, *d) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}

// measure computes attention of 8 heads, 64 queries and 64 keys, beside everything else.
func measure(callers int, d time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls atomic.Int64
	for i := range callers {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		q, k, v := tensor.Randn(rng, 1, 8, 64, 64), tensor.Randn(rng, 1, 8, 64, 64), tensor.Randn(rng, 1, 8, 64, 64)
		go func() {
			tape := tensor.NewTape(tensor.Infer)
			for ctx.Err() == nil {
				tape.Reset()
				attn.Attend(tape, q, k, v, attn.Options{})
				calls.Add(1)
			}
		}()
	}
	time.Sleep(200 * time.Millisecond)
	perSecond := func(f func() error) (float64, error) {
		before, start := calls.Load(), time.Now()
		err := f()
		return float64(calls.Load()-before) / time.Since(start).Seconds(), err
	}
	alone, _ := perSecond(func() error { time.Sleep(d); return nil })
	var late []time.Duration
	ticked := make(chan bool)
	go func() {
		defer close(ticked)
		for start := time.Now(); time.Since(start) < d; {
			begin := time.Now()
			time.Sleep(time.Millisecond)
			late = append(late, time.Since(begin)-time.Millisecond)
		}
	}()
	var answers []byte
	beside, err := perSecond(func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		answers, err = exec.Command(self, "--threads", "1", "--time", d.String(), "--ask", listener.Addr().String()).Output()
		return err
	})
	if err != nil {
		return err
	}
	<-ticked
	var stats debug.GCStats
	const collections = 50
	for range collections {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	debug.ReadGCStats(&stats)
	fmt.Printf("%d threads, %d callers: %.0f calls/s, %.0f beside requests\n", runtime.GOMAXPROCS(0), callers, alone, beside)
	fmt.Printf("request: %s", answers)
	fmt.Printf("ticker, late by: %s\n", percentiles(late))
	fmt.Printf("pause of the collector: %s\n", percentiles(stats.Pause[:min(collections, len(stats.Pause))]))
	return nil
}

// request asks the handler every 3 ms and prints how long the answers take.
func request(address string, d time.Duration) error {
	var times []time.Duration
	for start := time.Now(); time.Since(start) < d; time.Sleep(3 * time.Millisecond) {
		begin := time.Now()
		r, err := http.Get("http://" + address)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	fmt.Println(percentiles(times))
	return nil
}

func percentiles(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1))].Round(time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, longest %v", at(0.5), at(0.99), at(1))
}
