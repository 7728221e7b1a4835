package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// directoryTasks are the tasks of a decoder in a directory, beside transformers and llama.cpp: prompts, and tokens of a text
// after one of length read. A state cannot take tokens back, so the text grows.
func directoryTasks(dir string, threads int) ([]task, error) {
	d, err := models.Describe(dir, models.Options{})
	if err != nil {
		return nil, err
	}
	var tasks []task
	add := func(op string, before, tokens int, format tensor.Format, share func(bench.Result) string) {
		name := fmt.Sprintf("%s %s L%d %s", op, filepath.Base(dir), before+tokens, format)
		tasks = append(tasks, task{
			table: "Decoders in directories", name: name, libraries: []string{"transformers", "llama.cpp"}, share: share,
			request: request{Work: bench.Work{Op: op, B: 1, Lk: max(before, tokens)}, File: dir, Storage: format.String(), Vocab: d.Sizes.Vocabulary},
			start: func() (bench.Measurer, error) {
				m, err := models.Load(dir, models.Options{Format: format})
				if err != nil {
					return nil, err
				}
				tape, cache := tensor.NewTape(tensor.Infer), new(models.Cache)
				step := func(n int) {
					ids := make([]int, n)
					for i := range ids {
						ids[i] = rand.N(d.Sizes.Vocabulary)
					}
					tape.Reset()
					h := m.Hidden(tape, models.Batch{IDs: [][]int{ids}}, models.Run{State: cache})
					m.Head().Logits(tape, tensor.Slice(tape, h, 1, n-1, n))
				}
				begin := func() {
					fresh, err := models.NewCache(m, 1, attn.CacheConfig{})
					if err != nil {
						panic(err) // m is a decoder
					}
					*cache = *fresh
				}
				if begin(); before > 0 {
					step(before)
					return bench.Calls(threads, 0, func() { step(tokens) }), nil
				}
				return bench.Calls(threads, 0, func() { begin(); step(tokens) }), nil
			},
		})
	}
	for _, format := range []tensor.Format{tensor.Float32, tensor.BFloat16} {
		for _, n := range []int{64, 624} {
			add("prompt", 0, n, format, func(r bench.Result) string { return fmt.Sprintf("%.0f tokens/s", 1000*float64(n)/r.Median) })
		}
		add("generate", read, 1, format, func(r bench.Result) string { return fmt.Sprintf("%.1f tokens/s", 1000/r.Median) })
	}
	return tasks, nil
}
