package train

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/attn-go/attn/seq2seq"
)

func TestReadPairs(t *testing.T) {
	long := strings.Repeat("x", 300_000) // well past the scanner's first buffer
	for _, c := range []struct {
		name, in string
		want     []seq2seq.Pair
	}{
		{"plain", "Go.\tVa !\nRun!\tCours !\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}, {Source: "Run!", Target: "Cours !"}}},
		{"no newline at the end", "Go.\tVa !", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}}},
		{"further columns", "Go.\tVa !\tCC-BY 2.0\tmore\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}}},
		{"carriage returns", "Go.\tVa !\r\nRun!\tCours !\r\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}, {Source: "Run!", Target: "Cours !"}}},
		{"a carriage return too many", "Go.\tVa !\r\r\nRun!\tCours !\r", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}, {Source: "Run!", Target: "Cours !"}}},
		{"byte order marks", "\uFEFFGo.\tVa !\n\uFEFFRun!\tCours !\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}, {Source: "Run!", Target: "Cours !"}}},
		{"in columns", "\uFEFFGo.\t\uFEFF\uFEFFVa !\t\uFEFFCC\nRun!\t\uFEFFCours !\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}, {Source: "Run!", Target: "Cours !"}}},
		{"blank lines", "\n  \nGo.\tVa !\n\r\n\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}}},
		{"white space around", " Go. \t Va !\u00a0\n", []seq2seq.Pair{{Source: "Go.", Target: "Va !"}}},
		{"long line", long + "\t" + long, []seq2seq.Pair{{Source: long, Target: long}}},
		{"repeated pair", "a\tb\na\tb\n", []seq2seq.Pair{{Source: "a", Target: "b"}, {Source: "a", Target: "b"}}},
	} {
		got, err := ReadPairs(strings.NewReader(c.in), "pairs.tsv")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %d pairs, want %d, or they differ", c.name, len(got), len(c.want))
		}
	}
}

func TestReadPairsRefuses(t *testing.T) {
	good := strings.Repeat("a\tb\n", 16)
	for _, c := range []struct{ in, want string }{
		{good + "no tab\n", "pairs.tsv:17: no tab between source and target"},
		{"a\tb\n\n\xff\xfe\tc\n", "pairs.tsv:3: invalid UTF-8"},
		{"a\tb\xc3\n", "pairs.tsv:1: invalid UTF-8"},
		{"a\tb\tc\xc3\n", "pairs.tsv:1: invalid UTF-8"},
		{"a\tb\n\tc\n", "pairs.tsv:2: source is empty"},
		{"a\tb\nc\t \n", "pairs.tsv:2: target is empty"},
		{"a\t\tc\n", "pairs.tsv:1: target is empty"},
		{"\t\n", "pairs.tsv:1: source and target are empty"},
		{"", "pairs.tsv: no pairs"},
		{"\uFEFF", "pairs.tsv: no pairs"},
		{"a\tb\rc\td\re\tf\r", "pairs.tsv:1: carriage return inside the line, want lines that end in LF or CRLF"},
		{"a\tb\r\nc\td\re\tf\r\n", "pairs.tsv:2: carriage return inside the line, want lines that end in LF or CRLF"},
		{"a\r\tb\n", "pairs.tsv:1: carriage return inside the line, want lines that end in LF or CRLF"},
		{"\n \n", "pairs.tsv: no pairs"},
		{"a\tb\nc\t" + strings.Repeat("d", maxLine) + "\n", "pairs.tsv:2: longer than 1048576 bytes"},
		{"a\tb\nc\t" + strings.Repeat("d", 3*maxLine), "pairs.tsv:2: longer than 1048576 bytes"},
	} {
		pairs, err := ReadPairs(strings.NewReader(c.in), "pairs.tsv")
		var input *seq2seq.InputError
		if !errors.As(err, &input) || err.Error() != c.want || pairs != nil {
			t.Errorf("got %d pairs and error %v, want %s", len(pairs), err, c.want)
		}
	}
	exact := "c\t" + strings.Repeat("d", maxLine-2)
	for _, end := range []string{"", "\n", "\r\n"} {
		if _, err := ReadPairs(strings.NewReader(exact+end), "pairs.tsv"); err != nil {
			t.Errorf("a line of exactly the limit, end %q: %v", end, err)
		}
		if _, err := ReadPairs(strings.NewReader(exact+"d"+end), "pairs.tsv"); err == nil {
			t.Errorf("a line one byte past the limit, end %q: no error", end)
		}
	}
}

func TestReadPairsReaderFails(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := ReadPairs(io.MultiReader(strings.NewReader("a\tb\n"), iotest.ErrReader(broken)), "pairs.tsv")
	var input *seq2seq.InputError
	if !errors.Is(err, broken) || errors.As(err, &input) || !strings.HasPrefix(err.Error(), "pairs.tsv: ") {
		t.Errorf("got %v", err)
	}
}

func TestLoadPairs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.tsv")
	if err := os.WriteFile(path, []byte("a\tb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadPairs(path)
	if want := path + ":2: no tab between source and target"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := LoadPairs(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
}

func TestGroup(t *testing.T) {
	sources, references := Group([]seq2seq.Pair{{Source: "b", Target: "1"}, {Source: "a", Target: "2"}, {Source: "b", Target: "3"}, {Source: "c", Target: "4"}, {Source: "b", Target: "1"}})
	if want := []string{"b", "a", "c"}; !reflect.DeepEqual(sources, want) {
		t.Errorf("sources %q, want %q", sources, want)
	}
	if want := [][]string{{"1", "3", "1"}, {"2"}, {"4"}}; !reflect.DeepEqual(references, want) {
		t.Errorf("references %q, want %q", references, want)
	}
	if s, r := Group(nil); len(s) != 0 || len(r) != 0 {
		t.Errorf("no pairs give %q, %q", s, r)
	}
}

func FuzzReadPairs(f *testing.F) {
	for _, s := range []string{"a\tb\n", "\uFEFFa\tb\tc\r\n\n", "\t", "a", "\xff\t\xfe", "a\t\u00a0\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pairs, err := ReadPairs(bytes.NewReader(data), "f")
		if err != nil {
			var input *seq2seq.InputError
			if !errors.As(err, &input) || input.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Fatalf("error %v", err)
			}
			return
		}
		var again bytes.Buffer
		for _, p := range pairs {
			if p.Source == "" || p.Target == "" || !utf8.ValidString(p.Source+p.Target) || strings.ContainsAny(p.Source+p.Target, "\t\n") {
				t.Fatalf("pair %q", p)
			}
			again.WriteString(p.Source + "\t" + p.Target + "\n")
		}
		// A mark after white space is removed when the trimmed text is read again.
		marked := slices.ContainsFunc(pairs, func(p seq2seq.Pair) bool {
			return strings.HasPrefix(p.Source, "\uFEFF") || strings.HasPrefix(p.Target, "\uFEFF")
		})
		if got, err := ReadPairs(&again, "f"); !marked && (err != nil || !reflect.DeepEqual(got, pairs)) {
			t.Fatalf("read again: %q, %v, want %q", got, err, pairs)
		}
	})
}

func TestParsePair(t *testing.T) {
	for line, want := range map[string]struct {
		pair seq2seq.Pair
		err  string
	}{
		"a\tb\tc": {seq2seq.Pair{Source: "a", Target: "b"}, ""}, "": {err: "blank line, want source, tab, target"}, "a": {err: "no tab between source and target"},
		"\tb": {err: "source is empty"}, "a\t ": {err: "target is empty"},
	} {
		p, err := ParsePair(line)
		if p != want.pair || err == nil && want.err != "" || err != nil && err.Error() != want.err {
			t.Errorf("%q: %v, %v, want %v", line, p, err, want)
		}
	}
}
