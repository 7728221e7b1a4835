// Package beside measures what continuous attention leaves to the rest of a process. See bench/README.md.
package beside

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// address is set in the environment of the process that sends requests: a client in the process that computes would be
// slower itself.
const address = "ATTN_BESIDE"

func TestMain(m *testing.M) {
	url := os.Getenv(address)
	if url == "" {
		os.Exit(m.Run())
	}
	if err := request(url, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkBeside runs attention of 8 heads, 64 queries and 64 keys, beside nothing, requests to an HTTP handler, a
// ticker of a millisecond and garbage collections. It reports the calls of attention per second, and the times in which
// requests are answered, by which the ticker is late, and for which the collector stops the process.
func BenchmarkBeside(b *testing.B) {
	for _, callers := range []int{1, 4} {
		for _, beside := range []struct {
			name    string
			measure func(b *testing.B) []time.Duration
		}{{"nothing", nothing}, {"requests", requests}, {"ticker", ticker}, {"collector", collector}} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, beside.name), func(b *testing.B) {
				calls := compute(b, callers)
				before, start := calls.Load(), time.Now()
				times := beside.measure(b)
				b.ReportMetric(float64(calls.Load()-before)/time.Since(start).Seconds(), "calls/s")
				b.ReportMetric(0, "ns/op") // contains pauses
				slices.Sort(times)
				for share, unit := range map[float64]string{0.5: "p50-ms", 0.99: "p99-ms", 1: "max-ms"} {
					if len(times) > 0 {
						b.ReportMetric(1000*times[int(share*float64(len(times)-1))].Seconds(), unit)
					}
				}
			})
		}
	}
}

// compute computes in goroutines, until the benchmark ends, and counts the calls.
func compute(b *testing.B, callers int) *atomic.Int64 {
	calls := new(atomic.Int64)
	for i := range callers {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		q, k, v := tensor.Randn(rng, 1, 8, 64, 64), tensor.Randn(rng, 1, 8, 64, 64), tensor.Randn(rng, 1, 8, 64, 64)
		go func() {
			tape := tensor.NewTape(tensor.Infer)
			for b.Context().Err() == nil {
				tape.Reset()
				attn.Attend(tape, q, k, v, attn.Options{})
				calls.Add(1)
			}
		}()
	}
	time.Sleep(200 * time.Millisecond)
	return calls
}

func nothing(b *testing.B) []time.Duration {
	for b.Loop() {
		time.Sleep(3 * time.Millisecond)
	}
	return nil
}

func requests(b *testing.B) (times []time.Duration) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	client := exec.Command(self, fmt.Sprint(b.N))
	client.Env = append(os.Environ(), address+"="+server.URL, "GOMAXPROCS=1")
	client.Stderr = os.Stderr
	out, err := client.Output()
	if err == nil {
		err = json.Unmarshal(out, &times)
	}
	if err != nil {
		b.Fatal(err)
	}
	return times
}

// request sends n requests, one every 3 ms, and prints in how many nanoseconds they are answered.
func request(url, n string, out io.Writer) error {
	var count int
	if _, err := fmt.Sscan(n, &count); err != nil {
		return err
	}
	times := make([]time.Duration, count)
	for i := range times {
		time.Sleep(3 * time.Millisecond)
		begin := time.Now()
		r, err := http.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if err != nil {
			return err
		}
		times[i] = time.Since(begin)
	}
	return json.NewEncoder(out).Encode(times)
}

func ticker(b *testing.B) (late []time.Duration) {
	for b.Loop() {
		begin := time.Now()
		time.Sleep(time.Millisecond)
		late = append(late, time.Since(begin)-time.Millisecond)
	}
	return late
}

func collector(b *testing.B) (pauses []time.Duration) {
	for b.Loop() {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		var stats debug.GCStats
		debug.ReadGCStats(&stats)
		pauses = append(pauses, stats.Pause[0])
	}
	return pauses
}
