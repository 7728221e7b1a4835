// Command go measures encoders of other Go libraries. It is called as peers.py is, and reads the same lines, of which it
// answers version, outputs and encode, for the model in the directory that file names, in float32. It is a separate
// module, so that attn does not depend on these libraries.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
)

// library is a library that runs BERT.
type library struct {
	module string
	form   string // what is measured
	// load returns a function that computes hidden states [B L D], for a directory in the form of Hugging Face.
	load func(dir string) (func(ids [][]int) ([]float32, error), error)
}

var libraries = map[string]library{
	"hugot":     {"github.com/knights-analytics/hugot", "backend GO with GOEXPERIMENT=simd", loadHugot},
	"cybertron": {"github.com/nlpodyssey/cybertron", "bert.Model, text by text", loadCybertron},
}

// request has the fields of a line that are read here.
type request struct {
	Op      string  `json:"op"`
	B       int     `json:"b"`
	Lq      int     `json:"lq"`
	Vocab   int     `json:"vocab"`
	File    string  `json:"file"`
	IDs     []int   `json:"ids"`
	Threads int     `json:"threads"`
	Time    float64 `json:"time"`
}

func main() {
	l, ok := libraries[os.Args[len(os.Args)-1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: go run . cybertron|hugot")
		os.Exit(2)
	}
	s := server{library: l}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := s.answer(lines.Bytes())
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			panic(err) // of strings and numbers
		}
		fmt.Println(string(text))
	}
}

// server keeps the last model, since a comparison comes back to it round after round.
type server struct {
	library
	loaded string
	run    func(ids [][]int) ([]float32, error)
}

func (s *server) answer(line []byte) (map[string]any, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	if r.Op == "version" {
		return map[string]any{"version": s.version()}, nil
	}
	runtime.GOMAXPROCS(r.Threads)
	if r.File != s.loaded {
		run, err := s.load(r.File)
		if err != nil {
			return nil, err
		}
		s.loaded, s.run = r.File, run
	}
	switch r.Op {
	case "outputs":
		out, err := s.run([][]int{r.IDs})
		return map[string]any{"outputs": out}, err
	case "encode":
		return s.measure(r)
	}
	return map[string]any{"unsupported": "no such operation here"}, nil
}

// measure returns the time of an encoding of random ids.
func (s *server) measure(r request) (map[string]any, error) {
	ids := make([][]int, r.B)
	for i := range ids {
		for range r.Lq {
			ids[i] = append(ids[i], rand.N(r.Vocab))
		}
	}
	var failed error
	one, err := bench.Measure(context.Background(), time.Duration(r.Time*float64(time.Second)), func() {
		if _, err := s.run(ids); err != nil {
			failed = err
		}
	})
	return map[string]any{"ms_median": one.Median, "ms_min": one.Min, "ms_max": one.Max, "form": s.form}, cmp.Or(failed, err)
}

// version is that of the library's module.
func (s *server) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == s.module {
			return m.Version[1:]
		}
	}
	return "unknown"
}
