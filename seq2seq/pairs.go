package seq2seq

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
)

// maxLine is the longest line of a pairs file in bytes. No sentence comes near; a longer line means that the file is
// something else, and it is better to say so than to train on a piece of it.
const maxLine = 1 << 20

// Pair is a text and its translation.
type Pair struct {
	Source, Target string
}

// InputError says what is wrong with the content of an input: its Name, the Line, counted from 1 and 0 when the input
// as a whole is meant, and Err, the reason.
type InputError = input.Error

// ReadPairs reads sentence pairs, one a line: source, a tab, target, in UTF-8. Further columns are ignored, for the
// collections of manythings.org carry a licence there. White space around a text is dropped; blank lines, a byte order
// mark at the start and carriage returns before the newlines are skipped. Lines end in LF or CRLF: a carriage return
// anywhere else is an error, for a file whose lines all end in one would be a single pair.
//
// Errors: content that is not such a file gives an *InputError that carries name and the number of the line; an error
// of r itself is wrapped.
func ReadPairs(r io.Reader, name string) ([]Pair, error) {
	lines := bufio.NewScanner(r)
	// The scanner wants its newline in the buffer too, and gives up when the buffer is full.
	lines.Buffer(make([]byte, 0, 64<<10), maxLine+2)
	var pairs []Pair
	number := 0
	for lines.Scan() {
		number++
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		pair, reason := parsePair(line)
		if reason != "" {
			return nil, &input.Error{Name: name, Line: number, Err: errors.New(reason)}
		}
		if pair != (Pair{}) {
			pairs = append(pairs, pair)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &input.Error{Name: name, Line: number + 1, Err: fmt.Errorf("line longer than %d bytes", maxLine)}
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(pairs) == 0 {
		return nil, input.Errorf(name, "no pairs")
	}
	return pairs, nil
}

// ParsePair takes one line of such a file apart, of which a blank one is an error here.
func ParsePair(line string) (Pair, error) {
	p, reason := parsePair([]byte(line))
	if p == (Pair{}) && reason == "" {
		reason = "blank line, want source, tab, target"
	}
	if reason != "" {
		return Pair{}, errors.New(reason)
	}
	return p, nil
}

// parsePair takes one line apart. A blank line gives the zero Pair and no reason.
func parsePair(line []byte) (Pair, string) {
	if len(line) > maxLine {
		return Pair{}, fmt.Sprintf("line longer than %d bytes", maxLine)
	}
	if !utf8.Valid(line) {
		return Pair{}, "invalid UTF-8"
	}
	if line = bytes.TrimRight(line, "\r"); bytes.IndexByte(line, '\r') >= 0 {
		return Pair{}, "carriage return inside the line, want lines that end in LF or CRLF"
	}
	source, rest, found := strings.Cut(string(line), "\t")
	source = strings.TrimSpace(source)
	if !found {
		if source == "" {
			return Pair{}, ""
		}
		return Pair{}, "no tab between source and target"
	}
	target, _, _ := strings.Cut(rest, "\t")
	target = strings.TrimSpace(target)
	switch {
	case source == "" && target == "":
		return Pair{}, "source and target are empty"
	case source == "":
		return Pair{}, "source is empty"
	case target == "":
		return Pair{}, "target is empty"
	}
	return Pair{Source: source, Target: target}, ""
}

// LoadPairs reads the file of sentence pairs at path; see [ReadPairs] for the format and the errors.
func LoadPairs(path string) ([]Pair, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, input.Errorf(path, "is a folder, want a file")
	}
	return ReadPairs(file, path)
}

// Group gathers the targets of pairs that share a source: sources in order of first appearance, and references[i] all
// targets of sources[i]. A score is then counted once per source, against every translation that is known to be good.
func Group(pairs []Pair) (sources []string, references [][]string) {
	at := make(map[string]int, len(pairs))
	for _, p := range pairs {
		i, seen := at[p.Source]
		if !seen {
			i = len(sources)
			at[p.Source] = i
			sources = append(sources, p.Source)
			references = append(references, nil)
		}
		references[i] = append(references[i], p.Target)
	}
	return sources, references
}
