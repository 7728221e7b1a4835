package train

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/seq2seq"
)

// LongestText is the number of bytes of the longest text of a pair that is used.
// Attention takes memory with the square of the length; no sentence comes near.
const LongestText = 4000

// TooLong reports whether a text of p is longer than LongestText.
func TooLong(p seq2seq.Pair) bool { return max(len(p.Source), len(p.Target)) > LongestText }

// ReadPairs reads sentence pairs, one a line: source, a tab, target, in UTF-8. Further columns are ignored, for the
// collections of manythings.org carry a licence there. White space around a text is dropped; blank lines, a byte order
// mark at the start and carriage returns before the newlines are skipped. Lines end in LF or CRLF: a carriage return
// anywhere else is an error, for a file whose lines all end in one would be a single pair.
//
// Errors: content that is not such a file gives a *seq2seq.InputError that carries name and the number of the line; an
// error of r itself is wrapped.
func ReadPairs(r io.Reader, name string) ([]seq2seq.Pair, error) {
	var pairs []seq2seq.Pair
	err := eachLine(r, name, func(_ int, line []byte) error {
		pair, err := parsePair(line)
		if pair != (seq2seq.Pair{}) {
			pairs = append(pairs, pair)
		}
		return err
	})
	if err == nil && len(pairs) == 0 {
		err = input.Errorf(name, "no pairs")
	}
	if err != nil {
		return nil, err
	}
	return pairs, nil
}

// ParsePair takes one line of such a file apart, of which a blank one is an error here.
func ParsePair(line string) (seq2seq.Pair, error) {
	if err := checkLine([]byte(line)); err != nil {
		return seq2seq.Pair{}, err
	}
	p, err := parsePair([]byte(line))
	if p == (seq2seq.Pair{}) && err == nil {
		err = errors.New("blank line, want source, tab, target")
	}
	return p, err
}

// parsePair takes one line apart. A blank line gives the zero Pair and no error.
func parsePair(line []byte) (p seq2seq.Pair, err error) {
	if line = bytes.TrimRight(line, "\r"); bytes.IndexByte(line, '\r') >= 0 {
		return p, errors.New("carriage return inside the line, want lines that end in LF or CRLF")
	}
	source, rest, found := strings.Cut(string(line), "\t")
	target, _, _ := strings.Cut(rest, "\t")
	source, target = strings.TrimSpace(source), strings.TrimSpace(target)
	switch {
	case !found && source == "":
		return p, nil
	case !found:
		return p, errors.New("no tab between source and target")
	case source == "" && target == "":
		return p, errors.New("source and target are empty")
	case source == "":
		return p, errors.New("source is empty")
	case target == "":
		return p, errors.New("target is empty")
	}
	return seq2seq.Pair{Source: source, Target: target}, nil
}

// LoadPairs reads the file of sentence pairs at path; see [ReadPairs] for the format and the errors.
func LoadPairs(path string) ([]seq2seq.Pair, error) {
	file, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadPairs(file, path)
}

// LoadTest reads pairs to measure on. Leaving some out would make the figures look better
// than they are, so a pair that is TooLong is an error.
func LoadTest(path string) ([]seq2seq.Pair, error) {
	pairs, err := LoadPairs(path)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(pairs, TooLong); i >= 0 {
		return nil, input.Errorf(path, "pair %d has a text of more than %d bytes", i+1, LongestText)
	}
	return pairs, nil
}

// Group gathers the targets of pairs that share a source: sources in order of first appearance, and references[i] all
// targets of sources[i]. A score is then counted once per source, against every translation that is known to be good.
func Group(pairs []seq2seq.Pair) (sources []string, references [][]string) {
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

// Vocabularies splits the texts of both languages into units; see seq2seq.BuildVocabulary.
func Vocabularies(pairs []seq2seq.Pair, units seq2seq.Units, size int) (source, target *seq2seq.Vocabulary) {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	return seq2seq.BuildVocabulary(sources, units, size), seq2seq.BuildVocabulary(targets, units, size)
}
