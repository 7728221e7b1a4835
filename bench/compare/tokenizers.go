package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/tokenizer"
)

// tokenizerTasks returns two tasks for each directory with a tokenizer.json: tokenizing the lines of a text one after
// another, and loading. Both libraries use one thread.
func tokenizerTasks(dirs []string, text string) ([]task, error) {
	data, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s is empty", text)
	}
	var tasks []task
	for _, dir := range dirs {
		path := filepath.Join(dir, "tokenizer.json")
		file, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		speed := func(bytes int64) func(bench.Result) string {
			return func(r bench.Result) string { return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e3/r.Median) }
		}
		name := filepath.Base(dir)
		tasks = append(tasks, task{
			table: "Tokenizers", name: "tokenize " + name, libraries: []string{"tokenizers"}, share: speed(int64(len(data))),
			request: request{Work: bench.Work{Op: "tokenize"}, File: path, Text: text},
			start: func() (bench.Measurer, error) {
				t, err := tokenizer.Load(dir)
				if err != nil {
					return bench.Measurer{}, err
				}
				lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
				var failed error
				m := bench.Calls(1, 0, func() {
					for _, line := range lines {
						if _, err := t.Encode(line, tokenizer.Options{}); err != nil {
							failed = err
						}
					}
				})
				return bench.Measurer{Measure: func(ctx context.Context, d time.Duration) (bench.Result, error) {
					r, err := m.Measure(ctx, d)
					return r, errors.Join(err, failed)
				}}, nil
			},
		}, task{
			table: "Tokenizers", name: "load " + name, libraries: []string{"tokenizers"}, share: speed(file.Size()),
			request: request{Work: bench.Work{Op: "tokenizer"}, File: path},
			start: func() (bench.Measurer, error) {
				if _, err := tokenizer.Load(dir); err != nil {
					return bench.Measurer{}, err
				}
				return bench.Calls(1, 0, func() { _, _ = tokenizer.Load(dir) }), nil
			},
		})
	}
	return tasks, nil
}
