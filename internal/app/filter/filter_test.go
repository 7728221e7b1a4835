package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/attn-go/attn/internal/input"
)

// upper is a filter that counts bytes and converts lines to upper case. It rejects the line "bad".
func upper() Filter[string] {
	return Filter[string]{
		Name: "in", Write: Text(func(s string) string { return s }),
		Work: func(_ context.Context, batch []*Line[string]) error {
			for _, l := range batch {
				if l.Text == "bad" {
					l.Err = errors.New("is bad")
					continue
				}
				l.Value = fmt.Sprintf("%d %s", len(l.Text), strings.ToUpper(l.Text[:min(len(l.Text), 20)]))
			}
			return nil
		},
	}
}

func run(t *testing.T, f Filter[string], in io.Reader) (string, Stats) {
	t.Helper()
	var out bytes.Buffer
	s, err := f.Run(t.Context(), in, &out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != s.Lines {
		t.Errorf("%d lines, but %d are said to be written", n, s.Lines)
	}
	return out.String(), s
}

func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"a":                        "1 A\n",
		"a\n":                      "1 A\n",
		"\n":                       "0 \n",
		"\n\n":                     "0 \n0 \n",
		"ccc\n\nbb\r\na\n":         "3 CCC\n0 \n2 BB\n1 A\n",
		"a\nbad\nbb":               "1 A\n" + `{"error":"is bad"}` + "\n2 BB\n",
		"a\n\xff\nbb":              "1 A\n" + `{"error":"invalid UTF-8"}` + "\n2 BB\n",
		"a\rb\nc\n":                `{"error":"carriage return inside the line, want lines that end in LF or CRLF"}` + "\n1 C\n",
		"0123456789\n0123456789x":  "10 0123456789\n" + `{"error":"longer than 10 bytes"}` + "\n",
		"0123456789\r\n":           "10 0123456789\n",
		"0123456789xyz\na":         `{"error":"longer than 10 bytes"}` + "\n1 A\n",
		"\uFEFFa\n\uFEFFb\uFEFF\n": "1 A\n4 B\uFEFF\n", // byte order marks
	} {
		f := upper()
		f.MaxBytes = 10
		if out, _ := run(t, f, strings.NewReader(in)); out != want {
			t.Errorf("%q becomes %q, want %q", in, out, want)
		}
		if out, _ := run(t, f, iotest.OneByteReader(strings.NewReader(in))); out != want {
			t.Errorf("%q, byte by byte, becomes %q, want %q", in, out, want)
		}
	}
}

// A hundred thousand lines of all kinds: one result for each line, in order, in batches of similar lengths, with
// memory that does not grow with the input.
func TestManyLines(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	megabyte := strings.Repeat("x", 1<<20)
	line := func(i int) (text, want string) {
		switch {
		case i%10_007 == 5:
			return megabyte, fmt.Sprintf("%d %s\n", 1<<20, strings.Repeat("X", 20))
		case i%10_007 == 6:
			return megabyte + "y", `{"error":"longer than 1048576 bytes"}` + "\n"
		case i%13 == 0:
			return "", "0 \n"
		case i%17 == 0:
			return "bad", `{"error":"is bad"}` + "\n"
		case i%19 == 0:
			return "sch\xf6n", `{"error":"invalid UTF-8"}` + "\n"
		}
		text = fmt.Sprintf("%d %s", i, strings.Repeat("w", rng.IntN(60)))
		return text, fmt.Sprintf("%d %s\n", len(text), strings.ToUpper(text[:min(len(text), 20)]))
	}
	in, w := io.Pipe()
	want := make(chan string, 1<<13)
	go func() {
		for i := range n {
			text, becomes := line(i)
			want <- becomes
			io.WriteString(w, text+"\n")
		}
		w.Close()
	}()
	f := upper()
	work, uneven, batches := f.Work, 0, 0
	f.Work = func(ctx context.Context, batch []*Line[string]) error {
		batches++
		if len(batch) > 64 {
			t.Errorf("a batch of %d lines", len(batch))
		}
		if !slices.IsSortedFunc(batch, func(a, b *Line[string]) int { return len(a.Text) - len(b.Text) }) {
			uneven++
		}
		return work(ctx, batch)
	}
	out, written := io.Pipe()
	var stats Stats
	ended := make(chan error, 1)
	go func() {
		var err error
		stats, err = f.Run(t.Context(), in, written)
		written.Close()
		ended <- err
	}()
	var before, after runtime.MemStats
	var largest uint64
	got := make([]byte, 0, 64)
	one := make([]byte, 1<<16)
	lines := 0
	for {
		k, err := out.Read(one)
		for _, b := range one[:k] {
			if got = append(got, b); b != '\n' {
				continue
			}
			if line := <-want; string(got) != line {
				t.Fatalf("line %d is %.60q, want %.60q", lines+1, got, line)
			}
			got = got[:0]
			if lines++; lines%20_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				if lines == 20_000 {
					before = after
				}
				largest = max(largest, after.HeapAlloc)
			}
		}
		if err == io.EOF {
			break
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if lines != n || stats.Lines != n || stats.Rejected == 0 {
		t.Errorf("%d lines, %+v, want %d", lines, stats, n)
	}
	if uneven > 0 || batches < n/2/64 {
		t.Errorf("%d batches, %d of which are not sorted", batches, uneven)
	}
	if largest > before.HeapAlloc+64<<20 {
		t.Errorf("memory grows from %d to %d MB", before.HeapAlloc>>20, largest>>20)
	}
}

// Lines that nobody takes are read ahead up to about a window, even if they are as long as allowed.
func TestReadAhead(t *testing.T) {
	const longest = 1 << 20
	ctx, cancel := context.WithCancel(t.Context())
	in, w := io.Pipe()
	var lines atomic.Int64
	go func() {
		for line := strings.Repeat("x", longest) + "\n"; ; lines.Add(1) {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}()
	s := read(ctx, in, longest, false)
	n := int64(0)
	for before := int64(-1); n == 0 || n != before; n = lines.Load() {
		before = n
		time.Sleep(100 * time.Millisecond)
	}
	if most := int64(windowBytes/longest + 2); n > most { // a line beyond the window, and one that waits for room
		t.Errorf("%d lines are read ahead, want at most %d", n, most)
	}
	cancel()
	in.Close()
	for range s.parts { // until the reader has ended
	}
	if s.end == nil {
		t.Error("the reader ends without an error")
	}
}

// Work rejects lines, and batches have lines of similar length in bytes; results keep the order of the input.
func TestBatches(t *testing.T) {
	f := Filter[int]{Name: "in", Batch: 3, Write: Text(func(n int) string { return fmt.Sprint(n) })}
	var batches []string
	f.Work = func(_ context.Context, batch []*Line[int]) error {
		var texts []string
		for _, l := range batch {
			texts = append(texts, l.Text)
			if l.Value = len(l.Text); l.Value == 0 {
				l.Err = errors.New("no x")
			}
		}
		batches = append(batches, strings.Join(texts, " "))
		return nil
	}
	var out strings.Builder
	in := "xxxxx\n\nxx\nx\nxxxxxxxx\nxx\nxxxx\n"
	if _, err := f.Run(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if want := []string{" x xx", "xx xxxx xxxxx", "xxxxxxxx"}; !slices.Equal(batches, want) {
		t.Errorf("batches %q, want %q", batches, want)
	}
	if want := "5\n{\"error\":\"no x\"}\n2\n1\n8\n2\n4\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	f.Strict = true
	if _, err := f.Run(t.Context(), strings.NewReader(in), io.Discard); err == nil || err.Error() != "in:2: no x" {
		t.Errorf("strict: %v", err)
	}
}

// Results are written while later lines are being processed, so an interruption keeps them.
func TestWrittenEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := upper()
	work := f.Work
	f.Work = func(ctx context.Context, batch []*Line[string]) error {
		if slices.ContainsFunc(batch, func(l *Line[string]) bool { return l.Number > 500 }) {
			cancel()
			return ctx.Err()
		}
		return work(ctx, batch)
	}
	var out strings.Builder
	s, err := f.Run(ctx, strings.NewReader(strings.Repeat("a\n", 1000)), &out)
	if !errors.Is(err, context.Canceled) || s.Lines < leastLines || out.String() != strings.Repeat("1 A\n", s.Lines) {
		t.Errorf("%d lines written, %v", s.Lines, err)
	}
}

func TestStrict(t *testing.T) {
	var out bytes.Buffer
	f := upper()
	f.Strict = true
	f.MaxBytes = 100
	s, err := f.Run(t.Context(), strings.NewReader("a\nbb\nbad\nc\n"), &out)
	if got := new(input.Error); !errors.As(err, &got) || err.Error() != "in:3: is bad" || got.Line != 3 {
		t.Errorf("error %v", err)
	}
	if out.String() != "1 A\n2 BB\n" || s.Lines != 2 {
		t.Errorf("%q and %+v before the error", out.String(), s)
	}
	// A line without end does not block the run.
	zeros := func() io.Reader {
		return io.MultiReader(strings.NewReader("a\n"), iotest.DataErrReader(endless{}))
	}
	out.Reset()
	if _, err = f.Run(t.Context(), zeros(), &out); err == nil || err.Error() != "in:2: longer than 100 bytes" || out.String() != "1 A\n" {
		t.Errorf("error %v after %q", err, out.String())
	}
}

// endless is a line without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// An interactive user gets an answer after each line, and Ctrl-C works while the input is idle.
func TestAnswersAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, typed := io.Pipe()
	out, written := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := upper().Run(ctx, in, written)
		ended <- err
	}()
	b := make([]byte, 100)
	for _, line := range []string{"one", "three", ""} {
		io.WriteString(typed, line+"\n")
		n, err := out.Read(b)
		if want := fmt.Sprintf("%d %s\n", len(line), strings.ToUpper(line)); err != nil || string(b[:n]) != want {
			t.Fatalf("%q becomes %q, want %q; %v", line, b[:n], want, err)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("does not end")
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	f := upper()
	var out bytes.Buffer
	if _, err := f.Run(t.Context(), io.MultiReader(strings.NewReader("a\nbb\n"), iotest.ErrReader(broken)), &out); !errors.Is(err, broken) {
		t.Errorf("an input that breaks: %v", err)
	}
	if out.String() != "1 A\n2 BB\n" {
		t.Errorf("%q before the input breaks", out.String())
	}
	f.Work = func(context.Context, []*Line[string]) error { return broken }
	if _, err := f.Run(t.Context(), strings.NewReader("a"), io.Discard); !errors.Is(err, broken) {
		t.Errorf("work that breaks: %v", err)
	}
	r, w := io.Pipe()
	r.CloseWithError(broken)
	if _, err := upper().Run(t.Context(), strings.NewReader("a\n"), w); !errors.Is(err, broken) {
		t.Errorf("an output that is closed: %v", err)
	}
}

func TestWrites(t *testing.T) {
	type value struct {
		A string `json:"a"`
		N int    `json:"n"`
	}
	good := &Line[value]{Value: value{"<x>\t\\y\n", 3}}
	bad := &Line[value]{Err: errors.New("a\tb")}
	tsv := TSV(2, func(v value) []string { return []string{v.A, fmt.Sprint(v.N)} })
	text := Text(func(v value) string { return v.A + "\r\nz" })
	for _, c := range []struct {
		write func(io.Writer, *Line[value]) error
		line  *Line[value]
		want  string
	}{
		{JSON[value], good, `{"a":"<x>\t\\y\n","n":3}`}, {JSON[value], bad, `{"error":"a\tb"}`},
		{tsv, good, `<x>\t\\y\n` + "\t3\t"}, {tsv, bad, "\t\t" + `a\tb`},
		{text, good, "<x>\t\\y  z"}, {text, bad, `{"error":"a\tb"}`},
	} {
		var b strings.Builder
		if err := c.write(&b, c.line); err != nil || b.String() != c.want+"\n" {
			t.Errorf("written is %q, want %q; %v", b.String(), c.want, err)
		}
	}
}

func TestFirst(t *testing.T) {
	for in, want := range map[string]string{"a\nb": "a <nil>", "": " EOF", "\n": " <nil>", "\xff": " in:1: invalid UTF-8", "abcdef\na": " in:1: longer than 5 bytes"} {
		text, err := First(t.Context(), strings.NewReader(in), "in", 5)
		if got := fmt.Sprint(text, " ", err); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if text, err := First(t.Context(), endless{}, "in", 5); text != "" || err == nil {
		t.Errorf("a line without an end: %q, %v", text, err)
	}
}

// A panic becomes the error of the line that causes it, wherever it happens, and of no other line.
func TestPanic(t *testing.T) {
	bad := func(l *Line[string], where string) {
		if l.Err == nil && l.Text == where {
			var none []int
			_ = none[len(l.Text)]
		}
	}
	for _, where := range []string{"work", "write"} {
		f := upper()
		work, write := f.Work, f.Write
		f.Work = func(ctx context.Context, batch []*Line[string]) error {
			for _, l := range batch {
				if l.Value != "" {
					t.Errorf("%s: line %d is worked on with %q", where, l.Number, l.Value)
				}
			}
			if err := work(ctx, batch); where != "work" {
				return err
			}
			for _, l := range batch {
				bad(l, where)
			}
			return nil
		}
		f.Write = func(w io.Writer, l *Line[string]) error {
			if where != "write" {
				return write(w, l)
			}
			err := write(w, l)
			bad(l, where) // partial output is discarded
			return err
		}
		var rejected []int
		f.Rejected = func(e *input.Error) { rejected = append(rejected, e.Line) }
		out, s := run(t, f, strings.NewReader("a\n"+where+"\nbad\nbb\n"))
		lines := strings.Split(out, "\n")
		message := `{"error":"internal error: runtime error: index out of range [` +
			fmt.Sprint(len(where)) + `] with length 0 (filter_test.go:`
		if !strings.HasPrefix(lines[1], message) ||
			!slices.Equal(slices.Delete(lines, 1, 2), []string{"1 A", `{"error":"is bad"}`, "2 BB", ""}) {
			t.Errorf("%s: lines are %q", where, lines)
		}
		if s.Rejected != 2 || !slices.Equal(rejected, []int{2, 3}) {
			t.Errorf("%s: %d lines rejected: %v", where, s.Rejected, rejected)
		}
		f.Strict = true
		var e *input.Error
		if _, err := f.Run(t.Context(), strings.NewReader("a\n"+where), io.Discard); !errors.As(err, &e) || e.Line != 2 {
			t.Errorf("%s: strict: %v", where, err)
		}
		if err := f.Texts(t.Context(), []string{"a", where}, io.Discard); !errors.As(err, &e) || e.Line != 2 {
			t.Errorf("%s: texts: %v", where, err)
		}
	}
}
