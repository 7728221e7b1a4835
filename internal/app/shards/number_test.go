package shards

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/flags"
)

func TestNumbers(t *testing.T) {
	const kubernetes, slurm = "JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"
	number := func(i int) *int { return &i }
	for _, c := range []struct {
		given *int
		env   map[string]string
		want  string
	}{
		{nil, nil, "[0 1 2]"},
		{number(2), nil, "[2]"},
		{number(0), map[string]string{slurm: "1"}, "[0]"},
		{nil, map[string]string{slurm: "1"}, "[1]"},
		{nil, map[string]string{slurm: "1", kubernetes: "2"}, "[2]"},
		{number(3), nil, "--shard 3, want 0 to 2"},
		{number(-1), nil, "--shard -1, want 0 to 2"},
		{nil, map[string]string{slurm: "3"}, `SLURM_ARRAY_TASK_ID is "3", want the number of a shard, 0 to 2`},
		{nil, map[string]string{kubernetes: "", slurm: "1"}, `JOB_COMPLETION_INDEX is "", want the number of a shard, 0 to 2`},
	} {
		list, err := Numbers(c.given, 3, func(name string) (string, bool) {
			text, ok := c.env[name]
			return text, ok
		})
		got := fmt.Sprint(list)
		if err != nil {
			got = err.Error()
			if !errors.As(err, new(*flags.Error)) {
				t.Errorf("%s is no *flags.Error", got)
			}
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c, got, c.want)
		}
	}
}

// The model is loaded once, for the first shard that is not done.
func TestLoadsOnce(t *testing.T) {
	pattern, _ := corpus(t, "a\nb\nc\nd\n")
	j := newJob(t, pattern, 3)
	if _, err := j.Run(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	again, loaded := *j, 0
	again.stream = nil
	again.Load = func() (Stream, error) { loaded++; return stream, nil }
	for i, want := range []int{1, 1, 1} {
		_, err := again.Run(t.Context(), []int{0, 1, 2}[i])
		if done := errors.Is(err, ErrDone); err != nil && !done || done != (i == 1) || loaded != want {
			t.Errorf("shard %d: %v, loaded %d times", i, err, loaded)
		}
	}
	again.stream, again.Dir = nil, t.TempDir()
	again.Load = func() (Stream, error) { return nil, errors.New("no model") }
	if _, err := again.Run(t.Context(), 0); err == nil || err.Error() != "no model" {
		t.Errorf("error %v, want no model", err)
	}
}

func TestText(t *testing.T) {
	m := &Manifest{Shard: 1, Shards: 3, Output: Output{Lines: 40}, Rejected: 2, Seconds: 1.26}
	if got, want := m.String(), "shard 1 of 3: 40 lines, 2 rejected, 1.3s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	all := Merged{Shards: 3, Lines: 100, Rejected: 4, Seconds: 61.4, Kernels: []string{"avx2"}}
	if got, want := all.String(), "3 shards: 100 lines, 4 rejected, 1m1s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	all.Kernels = append(all.Kernels, "neon")
	if got := all.String(); !strings.HasSuffix(got, "1m1s\ncomputed with kernels avx2, neon: the last digits may differ between them") {
		t.Error(got)
	}
}
