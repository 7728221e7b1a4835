// Program serve measures a running examples/serve: clients send requests one after another, for a given time. It
// prints texts per second, the median and the 99th percentile of a request's time, and the memory of the service.
//
//	go build -o /tmp/service ./examples/serve && /tmp/service all-MiniLM-L6-v2 &
//	go run ./bench/serve --clients 16 --pid $! texts.txt
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// load is what the clients send.
type load struct {
	url     string
	texts   []string
	each    int // texts in a request
	clients int
	time    time.Duration
}

func main() {
	var l load
	flag.StringVar(&l.url, "url", "http://127.0.0.1:8080/embed", "address of the service")
	flag.IntVar(&l.each, "texts", 1, "texts in a request")
	flag.IntVar(&l.clients, "clients", 16, "clients that send requests at the same time")
	flag.DurationVar(&l.time, "time", 20*time.Second, "duration")
	pid := flag.Int("pid", 0, "process of the service, to print its peak memory (Linux)")
	flag.Parse()
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = l.clients // connections are reused
	err := func() error {
		data, err := os.ReadFile(flag.Arg(0))
		if err != nil {
			return err
		}
		l.texts = strings.Split(strings.TrimSpace(string(data)), "\n")
		times, err := l.run(context.Background())
		if err != nil {
			return err
		}
		fmt.Println(l.report(times))
		if *pid != 0 {
			return memory(*pid)
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// run sends requests until the time is over, and returns their times. The first error of a request ends it.
func (l load) run(ctx context.Context) (times []time.Duration, err error) {
	if l.each < 1 || l.clients < 1 || len(l.texts) == 0 {
		return nil, errors.New("want a file of texts, and at least 1 client and 1 text in a request")
	}
	var all sync.Mutex
	var clients sync.WaitGroup
	end := time.Now().Add(l.time)
	for client := range l.clients {
		clients.Go(func() {
			for n := client; time.Now().Before(end); n += l.clients {
				took, failed := l.request(ctx, n)
				all.Lock()
				times, err = append(times, took), cmp.Or(err, failed)
				over := err != nil
				all.Unlock()
				if over {
					return
				}
			}
		})
	}
	clients.Wait()
	return times, err
}

// request sends request number n and returns its time.
func (l load) request(ctx context.Context, n int) (time.Duration, error) {
	texts := make([]string, l.each)
	for i := range texts {
		texts[i] = l.texts[(n*l.each+i)%len(l.texts)]
	}
	body, err := json.Marshal(texts)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	took := time.Since(start)
	var vectors [][]float32
	switch {
	case err != nil:
		return 0, err
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("%s: %.200s", answer.Status, data)
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) != l.each {
		return 0, fmt.Errorf("%d vectors for %d texts (%v)", len(vectors), l.each, err)
	}
	return took, nil
}

// report describes the times of requests.
func (l load) report(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration { return times[min(int(share*float64(len(times))), len(times)-1)] }
	return fmt.Sprintf("%d clients, %d texts a request: %d requests, %.0f texts/s, p50 %v, p99 %v, max %v",
		l.clients, l.each, len(times), float64(len(times)*l.each)/l.time.Seconds(),
		at(0.5).Round(10*time.Microsecond), at(0.99).Round(10*time.Microsecond), at(1).Round(10*time.Microsecond))
}

// memory prints the peak memory of a process.
func memory(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			fmt.Print("peak memory of the service: ", strings.TrimSpace(strings.TrimPrefix(line, "VmHWM:")), "\n")
		}
	}
	return nil
}
