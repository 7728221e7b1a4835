package shards

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
)

// stream is a cheap filter: it counts bytes, and rejects lines with "bad".
func stream(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
	f := filter.Filter[int]{Name: name, Write: filter.Text(func(n int) string { return fmt.Sprint(n, " bytes") })}
	f.Work = func(_ context.Context, batch []*filter.Line[int]) error {
		for _, l := range batch {
			if l.Value = len(l.Text); strings.Contains(l.Text, "bad") {
				l.Err = errors.New("is bad")
			}
		}
		return nil
	}
	return f.Run(ctx, in, out)
}

// corpus writes files and returns a pattern that matches them, and the output of stream for all lines.
func corpus(t *testing.T, contents ...string) (pattern, want string) {
	t.Helper()
	dir := t.TempDir()
	var all strings.Builder
	for i, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			all.WriteString("\n")
		}
	}
	var out bytes.Buffer
	if _, err := stream(t.Context(), strings.NewReader(all.String()), "", &out); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "*.txt"), out.String()
}

func newJob(t *testing.T, pattern string, n int) *Job {
	t.Helper()
	plan, err := NewPlan([]string{pattern})
	if err != nil {
		t.Fatal(err)
	}
	return &Job{
		Identity: Identity{Version: "v1", Command: []string{"count"}, Model: strings.Repeat("ab", 32)},
		Kernels:  "generic", Plan: plan, Dir: filepath.Join(t.TempDir(), "out"), Shards: n, Load: func() (Stream, error) { return stream, nil },
	}
}

func (j *Job) all(t *testing.T) {
	t.Helper()
	for i := range j.Shards {
		if _, err := j.Run(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
}

// For any files and number of shards, all shards together equal the output of a single run.
func TestShardsAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	random := make([]string, 17)
	for i := range random {
		var b strings.Builder
		for range rng.IntN(40) {
			b.WriteString(strings.Repeat("w", rng.IntN(30)*rng.IntN(30)) + "\n")
		}
		if rng.IntN(2) == 0 {
			b.WriteString("bad, no end")
		}
		random[i] = b.String()
	}
	for name, contents := range map[string][]string{
		"random": random, "one": {"a\nbb\nccc\n"}, "no end": {"a\nbb\nccc"}, "blank": {"\n\n\n\n"}, "empty": {"", "a\n", "", "b", ""},
		"long": {strings.Repeat("x", 100_000) + "\n" + "y\n"}, "crlf": {"a\r\nbb\r\n"},
	} {
		pattern, want := corpus(t, contents...)
		shards := []int{1, 2, 3, 7}
		if name == "random" || name == "long" { // fewer lines than shards, or lines longer than shards
			shards = append(shards, 100)
		}
		if testing.Short() {
			shards = shards[1:3]
		}
		for _, n := range shards {
			j := newJob(t, pattern, n)
			j.all(t)
			var out bytes.Buffer
			sum, err := Merge(j.Dir, &out)
			if err != nil {
				t.Fatalf("%s, %d shards: %v", name, n, err)
			}
			if out.String() != want {
				t.Errorf("%s, %d shards: %d lines, which are not those of one run, %d", name, n, strings.Count(out.String(), "\n"), strings.Count(want, "\n"))
			}
			if sum.Shards != n || sum.Lines != int64(strings.Count(want, "\n")) || sum.Rejected != strings.Count(want, "error") {
				t.Errorf("%s, %d shards: %+v", name, n, sum)
			}
		}
	}
}

// Shards have nearly equal numbers of bytes.
func TestShardsAreEven(t *testing.T) {
	pattern, _ := corpus(t, strings.Repeat("0123456789\n", 4000), strings.Repeat("abcd\n", 1000))
	j := newJob(t, pattern, 13)
	for i := range j.Shards {
		pieces, err := j.Plan.pieces(i, j.Shards)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, p := range pieces {
			size += p.To - p.From
		}
		if want := int64(49_000 / 13); size < want-11 || size > want+11 {
			t.Errorf("shard %d has %d bytes, want about %d", i, size, want)
		}
	}
}

func TestDone(t *testing.T) {
	pattern, _ := corpus(t, "a\nbb\nbad\nccc\n", "d\n")
	j := newJob(t, pattern, 2)
	m, err := j.Run(t.Context(), 1)
	if err != nil || m.Output.Lines == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := j.Run(t.Context(), 1); !errors.Is(err, ErrDone) {
		t.Errorf("a second time: %v", err)
	}
	check := func(want string, change func(*Job)) {
		t.Helper()
		other := *j
		change(&other)
		_, err := other.Run(t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, want)
		}
		if strings.HasPrefix(want, "no shard") == errors.As(err, new(*flags.Error)) {
			t.Errorf("%v: only the error of another job is one of usage", err)
		}
		if again, err := readManifest(filepath.Join(j.Dir, folder(1, 2))); err != nil || again.Output != m.Output {
			t.Errorf("what was there has changed: %v", err)
		}
	}
	check("was made with model abababababab, not cd; want another --output", func(j *Job) { j.Model = "cd" })
	check("was made by count, not count --json; want another", func(j *Job) { j.Command = []string{"count", "--json"} })
	check("was made by attn v1, not v2; want another", func(j *Job) { j.Version = "v2" })
	check("shard-00001-of-00002, want a division into 3 shards", func(j *Job) { j.Shards = 3 })
	check("no shard 1 of 1, want 0 to 0", func(j *Job) { j.Shards = 1 })
	// The same names and sizes, but different text.
	files, _ := filepath.Glob(pattern)
	if err := os.WriteFile(files[1], []byte("e\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("was made from another input", func(*Job) {})
	os.WriteFile(files[1], []byte("d\nee\n"), 0o644)
	check("was made from another input", func(o *Job) { o.Plan = newJob(t, pattern, 2).Plan })
}

// A shard that fails or is interrupted leaves no files, and can be run again.
func TestUnfinished(t *testing.T) {
	pattern, want := corpus(t, "a\nbb\nccc\n")
	j := newJob(t, pattern, 1)
	broken := errors.New("broken")
	j.stream = func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
		io.WriteString(out, "1 bytes\n")
		return filter.Stats{Lines: 1}, broken
	}
	if _, err := j.Run(t.Context(), 0); err != broken {
		t.Errorf("error %v", err)
	}
	j.stream = func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
		io.Copy(io.Discard, in)
		io.WriteString(out, "1 bytes\n")
		return filter.Stats{Lines: 1}, nil
	}
	if _, err := j.Run(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "3 lines of input gave 1 lines of output") {
		t.Errorf("lines are lost: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j.stream = stream
	if _, err := j.Run(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(j.Dir, folder(0, 1))); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	var out bytes.Buffer
	if _, err := Merge(j.Dir, &out); err == nil || !strings.Contains(err.Error(), "lacks 1 of 1 shards: 0") {
		t.Errorf("merged: %v", err)
	}
	j.all(t)
	if _, err := Merge(j.Dir, &out); err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Of two workers on the same shard, only one computes it.
func TestTwoWorkers(t *testing.T) {
	pattern, want := corpus(t, strings.Repeat("a\nbb\n", 100))
	j := newJob(t, pattern, 1)
	var wait sync.WaitGroup
	made := make([]error, 8)
	for i := range made {
		wait.Go(func() {
			mine := *j
			_, made[i] = mine.Run(t.Context(), 0)
		})
	}
	wait.Wait()
	done := 0
	for _, err := range made {
		if err == nil {
			done++
		} else if !errors.Is(err, ErrDone) && !errors.Is(err, atomicfile.ErrInUse) {
			t.Error(err)
		}
	}
	var out bytes.Buffer
	if _, err := Merge(j.Dir, &out); err != nil || out.String() != want || done != 1 {
		t.Errorf("made %d times, %v", done, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	pattern, _ := corpus(t, strings.Repeat("a\nbb\n", 20), strings.Repeat("dddd\n", 20), strings.Repeat("eeeee\n", 20))
	for want, change := range map[string]func(t *testing.T, j *Job){
		"lacks 2 of 5 shards: 1 3": func(t *testing.T, j *Job) {
			os.RemoveAll(filepath.Join(j.Dir, folder(1, 5)))
			os.Remove(filepath.Join(j.Dir, folder(3, 5), ManifestFile))
		},
		"is not what its manifest says: 1 lines and 8 bytes, want ": func(t *testing.T, j *Job) {
			os.WriteFile(filepath.Join(j.Dir, folder(2, 5), OutputFile), []byte("9 bytes\n"), 0o644)
		},
		"contains both": func(t *testing.T, j *Job) { os.Mkdir(filepath.Join(j.Dir, folder(0, 4)), 0o755) },
		"contains shard 1 of 5": func(t *testing.T, j *Job) {
			os.RemoveAll(filepath.Join(j.Dir, folder(0, 5)))
			os.CopyFS(filepath.Join(j.Dir, folder(0, 5)), os.DirFS(filepath.Join(j.Dir, folder(1, 5))))
		},
		"is not the manifest": func(t *testing.T, j *Job) {
			os.WriteFile(filepath.Join(j.Dir, folder(0, 5), ManifestFile), []byte("{"), 0o644)
		},
		"was made by attn v2, not v1": func(t *testing.T, j *Job) {
			os.RemoveAll(filepath.Join(j.Dir, folder(4, 5)))
			j.Version = "v2"
			if _, err := j.Run(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
		},
		"was made from another input than shard-00000-of-00005": func(t *testing.T, j *Job) {
			os.RemoveAll(filepath.Join(j.Dir, folder(4, 5)))
			j.Plan.files = j.Plan.files[:2]
			if _, err := j.Run(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
		},
		"but the shards before end": func(t *testing.T, j *Job) {
			m, err := readManifest(filepath.Join(j.Dir, folder(3, 5)))
			if err != nil || len(m.Input.Pieces) == 0 {
				t.Fatal(m, err)
			}
			m.Input.Pieces = nil
			atomicfile.WriteAll(atomicfile.JSON(filepath.Join(j.Dir, folder(3, 5), ManifestFile), m))
		},
		"do not cover the whole input": func(t *testing.T, j *Job) {
			m, err := readManifest(filepath.Join(j.Dir, folder(4, 5)))
			if err != nil || len(m.Input.Pieces) == 0 {
				t.Fatal(m, err)
			}
			m.Input.Pieces = nil
			atomicfile.WriteAll(atomicfile.JSON(filepath.Join(j.Dir, folder(4, 5), ManifestFile), m))
		},
		"contains no shards": func(t *testing.T, j *Job) { os.RemoveAll(j.Dir); os.Mkdir(j.Dir, 0o755) },
	} {
		j := newJob(t, pattern, 5)
		j.all(t)
		change(t, j)
		var out bytes.Buffer
		_, err := Merge(j.Dir, &out)
		if !errors.As(err, new(*input.Error)) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, want)
		}
		if errors.As(err, new(*flags.Error)) {
			t.Errorf("%v: not an error of usage", err)
		}
		if out.Len() > 0 {
			t.Errorf("%s: %q is written", want, out.String())
		}
	}
}

// The sums are a JSON object with the identity of the job.
func TestMergeSums(t *testing.T) {
	pattern, _ := corpus(t, "a\nbb\n")
	j := newJob(t, pattern, 2)
	j.stream = func(_ context.Context, in io.Reader, _ string, out io.Writer) (s filter.Stats, err error) {
		for lines := bufio.NewScanner(in); lines.Scan(); s.Lines++ {
			fmt.Fprintf(out, `{"length":%d}`+"\n", len(lines.Text()))
		}
		return s, nil
	}
	j.all(t)
	var out bytes.Buffer
	sum, err := MergeSums(j.Dir, &out)
	var got struct {
		Version string
		Lines   int
		Sums    map[string]float64
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	if err != nil || sum.Lines != 2 || got.Lines != 2 || got.Sums["length"] != 3 || !strings.Contains(out.String(), j.Model) {
		t.Errorf("%+v, %v; %s", sum, err, out.Bytes())
	}
	out.Reset()
	if _, err := MergeSums(t.TempDir(), &out); err == nil || out.Len() > 0 {
		t.Errorf("an empty directory: %v, %q", err, out.Bytes())
	}
}

// The weights belong to the identity of a job unless its results do not depend on them. The path of the model does not.
func TestIdentity(t *testing.T) {
	id := func(dir, weights string, depends bool) Identity {
		t.Helper()
		for name, text := range map[string]string{"config.json": "{}", "model.safetensors": weights} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		id, err := NewIdentity("v1", []string{"embed", "--model=" + dir}, dir, depends)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first, same, other := id(t.TempDir(), "a", true), id(t.TempDir(), "a", true), id(t.TempDir(), "b", true)
	if !reflect.DeepEqual(first, same) || first.Model == other.Model || !slices.Equal(first.Command, []string{"embed", "--model", "MODEL"}) {
		t.Errorf("identities %v, %v and %v", first, same, other)
	}
	if a, b := id(t.TempDir(), "a", false), id(t.TempDir(), "b", false); a.Model != b.Model || a.Model == first.Model {
		t.Errorf("identities without weights: %v and %v", a, b)
	}
	if _, err := NewIdentity("v1", nil, filepath.Join(t.TempDir(), "none"), true); !errors.As(err, new(*input.Error)) {
		t.Errorf("a missing directory: %v", err)
	}
}

// A file that several patterns match, even by different paths, is read once.
func TestPlanHasEachFileOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	os.WriteFile("a.txt", []byte("a\n"), 0o644)
	once, err := NewPlan([]string{"a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := NewPlan([]string{"./*.txt", "a.txt", ".//a.txt"})
	if err != nil || !slices.Equal(twice.files, once.files) {
		t.Errorf("files %v, %v, want %v", twice.files, err, once.files)
	}
}

func TestPlanRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "", "b.txt.gz": "x"} {
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
	}
	os.Mkdir(filepath.Join(dir, "c.d"), 0o755)
	for pattern, want := range map[string]string{
		"*.tsv": "nothing matches", "[": "is not a pattern", "*.gz": "is compressed, want files of lines", "*.d": "is not a regular file", "a*": "the input is empty",
	} {
		if _, err := NewPlan([]string{filepath.Join(dir, pattern)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
}
