package main

import (
	"context"
	"fmt"
	"time"

	"github.com/attn-go/attn/internal/bench"
)

// task is a row of the table.
type task struct {
	name, goal string
	request    request // for the peers
	libraries  []string
	// start prepares our side and returns what measures it.
	start func() (func(context.Context, time.Duration) (bench.Result, error), error)
	// share says how good our time is by itself.
	share func(bench.Result) string
	// end removes what start has made, if not nil.
	end func() error
}

// goals are what this library wants to reach, by the name of the work.
var goals = map[string]string{
	"gemm 512×512×512":                          "≥ 90% of peak",
	"gemm 1024×1024×1024":                       "≥ 90% of peak",
	"sdpa B1 H12 L512 E64":                      "≥ 83%, 1.2× ORT, 1.5× PyTorch",
	"sdpa B1 H12 L1024 E64":                     "≥ 83%, 1.2× ORT, 1.5× PyTorch",
	"sdpa B1 H16 L1024 E128":                    "≥ 87%",
	"sdpa B1 H16 L2048 E128":                    "≥ 87%",
	"sdpa B1 H12 L1024 E64 causal":              "≥ 76%, 2× PyTorch",
	"sdpa B1 H12 L2048 E64 causal":              "≥ 80%, 2× PyTorch",
	"sdpa B8 H12 L64 E64":                       "≥ 65%",
	"sdpa B8 H12 L128 E64":                      "≥ 75%",
	"sdpa B64 H6 Lq12 Lk10 E50":                 "2× ORT, 3× PyTorch",
	"sdpa B8 H12 L512 E64":                      "what masks are held against",
	"sdpa B8 H12 L512 E64 padding mask":         "≥ 90% of the share without",
	"sdpa B8 H12 L512 E64 bool mask":            "≥ 90% of the share without",
	"sdpa B1 H12 L512 E64 dropout 0.1":          "≥ 60%, 3× PyTorch",
	"sdpa B1 H12 L512 E64 weights":              "≥ 60%, 3× PyTorch",
	"sdpa-train B1 H12 L512 E64":                "≥ 70%, 1.5× PyTorch",
	"sdpa-train B1 H16 L1024 E128":              "≥ 70%, 1.5× PyTorch",
	"mha width 128 B32 H8 L64":                  "2× ORT, 3× PyTorch",
	"mha width 768 B8 H12 L128":                 "1.2× the better one",
	"mha width 768 B1 H12 L512":                 "1.2× the better one",
	"mha-train width 768 B8 H12 L128":           "1.5× PyTorch",
	"mha-train width 768 B1 H12 L512":           "1.5× PyTorch",
	"additive B8 H1 L512 E128 hidden 128":       "20× PyTorch",
	"additive-train B8 H1 L512 E128 hidden 128": "15× PyTorch",
	"gaussian B8 H1 L512 E128":                  "10× PyTorch",
	"gaussian-train B8 H1 L512 E128":            "10× PyTorch",
	"decode B1 H32 G8 Lq1 Lk8192 E128":          "≥ 80% of reading",
	"decode B1 H32 G8 Lq1 Lk8192 E128 bfloat16": "≥ 75% of reading",
	"decode B1 H32 G8 Lq1 Lk8192 E128 int8":     "≥ 65% of reading",
	translatorName:                              "1.5× PyTorch",
}

// usual are the libraries that most work is measured beside.
var usual = []string{"torch", "onnxruntime"}

// allTasks returns the rows in the order of the tables, of which there is one for each group
// of libraries.
func allTasks(threads int) []task {
	var tasks []task
	for _, w := range bench.Usual() {
		tasks = append(tasks, task{
			name: w.Name(), goal: goals[w.Name()], request: newRequest(w), share: shareOf, libraries: usual,
			start: func() (func(context.Context, time.Duration) (bench.Result, error), error) {
				return bench.New(w, threads).Measure, nil
			},
		})
	}
	tasks = append(tasks, encodeTasks(threads)...)
	tasks = append(tasks, translatorTask(threads))
	tasks = append(tasks, generateTasks(threads)...)
	return append(tasks, loadTasks(threads)...)
}

// shareOf returns the share of what bounds the work.
func shareOf(r bench.Result) string {
	switch {
	case r.PeakReadGBps > 0:
		return fmt.Sprintf("%.0f%% of reading", 100*r.ReadShare())
	case r.Work.Triples() > 0:
		return fmt.Sprintf("%.1f G triples/s", r.GTriples())
	}
	return fmt.Sprintf("%.0f%%", 100*r.PeakShare())
}

// request is work as the peers read it.
type request struct {
	Op        string  `json:"op"`
	B         int     `json:"b"`
	H         int     `json:"h"`
	G         int     `json:"g"`
	Lq        int     `json:"lq"`
	Lk        int     `json:"lk"`
	E         int     `json:"e"`
	V         int     `json:"v"`
	Width     int     `json:"width"`
	Causal    bool    `json:"causal"`
	Mask      string  `json:"mask"`
	Dropout   float64 `json:"dropout"`
	Weights   bool    `json:"weights"`
	Hidden    int     `json:"hidden,omitempty"` // these for the translator and models
	Layers    int     `json:"layers,omitempty"`
	Vocab     int     `json:"vocab,omitempty"`
	Smoothing float64 `json:"smoothing,omitempty"`
	Clip      float64 `json:"clip,omitempty"`
	Storage   string  `json:"storage,omitempty"` // these for a decoder
	Bias      bool    `json:"bias,omitempty"`
	File      string  `json:"file,omitempty"` // these for a tokenizer
	Text      string  `json:"text,omitempty"`
	IDs       []int   `json:"ids,omitempty"` // of the text whose logits are compared, with the decoder in File
	Threads   int     `json:"threads"`
	Time      float64 `json:"time"` // seconds
}

func newRequest(w bench.Work) request {
	return request{
		Op: w.Op, B: w.B, H: w.H, G: w.G, Lq: w.Lq, Lk: w.Lk, E: w.E, V: w.V, Width: w.Width,
		Causal: w.Causal, Mask: w.Mask, Dropout: w.Dropout, Weights: w.Weights,
	}
}
