package shards

import (
	"strconv"

	"github.com/attn-go/attn/internal/app/flags"
)

// Variables are the environment variables in which schedulers pass the number of a task, from 0.
var Variables = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// Numbers returns which of n shards to process: the given number, or the number in the first of Variables that is set,
// or all. lookup is os.LookupEnv.
//
// Errors: *flags.Error if there is no such shard.
func Numbers(given *int, n int, lookup func(string) (string, bool)) (list []int, err error) {
	if given != nil {
		if *given < 0 || *given >= n {
			return nil, flags.Errorf("--shard %d, want 0 to %d", *given, n-1)
		}
		return []int{*given}, nil
	}
	for _, name := range Variables {
		text, ok := lookup(name)
		if !ok {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= n {
			return nil, flags.Errorf("%s is %q, want the number of a shard, 0 to %d", name, text, n-1)
		}
		return []int{i}, nil
	}
	for i := range n {
		list = append(list, i)
	}
	return list, nil
}
