package main

import (
	"fmt"

	"github.com/attn-go/attn/internal/app/bench"
)

// task is a row of the table.
type task struct {
	table     string // the title of its table
	name      string
	request   request // for the peers
	libraries []string
	// start prepares attn and returns its measurer.
	start func() (bench.Measurer, error)
	// share relates attn's time to a limit of the machine.
	share func(bench.Result) string
	// end, if not nil, cleans up after start.
	end func() error
}

// usual are the libraries that most work is compared with.
var usual = []string{"torch", "onnxruntime"}

// allTasks returns the rows of all tables, table by table.
func allTasks(threads int) []task {
	var tasks []task
	for _, w := range bench.Usual() {
		tasks = append(tasks, task{
			table: "Operations", name: w.Name(), request: request{Work: w}, share: shareOf, libraries: usual,
			start: func() (bench.Measurer, error) { return bench.New(w, threads), nil },
		})
	}
	tasks = append(tasks, translatorTask(threads))
	tasks = append(tasks, encodeTasks(threads)...)
	tasks = append(tasks, goTasks(threads)...)
	tasks = append(tasks, promptTasks(threads)...)
	tasks = append(tasks, generateTasks(threads)...)
	return append(tasks, loadTasks(threads)...)
}

// shareOf relates a result to the limit of that work.
func shareOf(r bench.Result) string {
	switch {
	case r.PeakReadGBps > 0:
		return fmt.Sprintf("%.0f%% of reading", 100*r.ReadShare())
	case r.Work.Triples() > 0:
		return fmt.Sprintf("%.1f G triples/s", r.GTriples())
	}
	return fmt.Sprintf("%.0f%%", 100*r.PeakShare())
}

// request is the work in the form that the peers read.
type request struct {
	bench.Work
	Hidden    int     `json:"hidden,omitempty"` // this and the following for the translator and models
	Layers    int     `json:"layers,omitempty"`
	Vocab     int     `json:"vocab,omitempty"`
	Smoothing float64 `json:"smoothing,omitempty"`
	Clip      float64 `json:"clip,omitempty"`
	Storage   string  `json:"storage,omitempty"` // this and the following for a decoder
	Bias      bool    `json:"bias,omitempty"`
	File      string  `json:"file,omitempty"` // for a tokenizer, or a library in Go
	Text      string  `json:"text,omitempty"`
	IDs       []int   `json:"ids,omitempty"` // text for the comparison of outputs, with the model in File
	Threads   int     `json:"threads"`
	Time      float64 `json:"time"` // seconds
}
