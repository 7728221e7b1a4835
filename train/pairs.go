package train

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/seq2seq"
)

// LongestText is the limit on the length of a text of a pair, in bytes. Attention needs memory
// proportional to the square of the length; sentences are far shorter.
const LongestText = 4000

// TooLong reports whether a text of p is longer than LongestText.
func TooLong(p seq2seq.Pair) bool { return max(len(p.Source), len(p.Target)) > LongestText }

// ReadPairs reads sentence pairs, one per line: source, a tab, target, in UTF-8. It ignores further columns, because the
// collections of manythings.org have a licence there. It trims white space around a text, and skips blank lines, byte
// order marks at the start of a line or column, and carriage returns before newlines. Lines end in LF or CRLF: a carriage return
// anywhere else is an error, because a file with lines ending in CR would be read as a single pair.
//
// Errors: invalid content gives a *seq2seq.InputError with name and the line number; an error of r itself is
// wrapped.
func ReadPairs(r io.Reader, name string) ([]seq2seq.Pair, error) {
	var pairs []seq2seq.Pair
	err := input.EachLine(r, name, maxLine, func(_ int, line string) error {
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

// ParsePair splits one line of such a file. A blank line is an error.
func ParsePair(line string) (seq2seq.Pair, error) {
	l := input.ParseLine(line, maxLine)
	if l.Err != nil {
		return seq2seq.Pair{}, l.Err
	}
	p, err := parsePair(l.Text)
	if p == (seq2seq.Pair{}) && err == nil {
		err = errors.New("blank line, want source, tab, target")
	}
	return p, err
}

// parsePair splits one line. A blank line gives the zero Pair and no error.
func parsePair(line string) (p seq2seq.Pair, err error) {
	source, rest, found := strings.Cut(line, "\t")
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

// LoadTest reads test pairs. A pair that is TooLong is an error, because omitting pairs would make
// results look better than they are.
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

// Group collects the targets of pairs that share a source: sources are in order of first appearance, and references[i] has
// all targets of sources[i]. A score then counts each source once, against all of its known translations.
func Group(pairs []seq2seq.Pair) (sources []string, references [][]string) {
	for _, group := range stats.GroupBy(pairs, func(p seq2seq.Pair) string { return p.Source }) {
		var targets []string
		for _, i := range group {
			targets = append(targets, pairs[i].Target)
		}
		sources, references = append(sources, pairs[group[0]].Source), append(references, targets)
	}
	return sources, references
}

// Vocabularies builds the vocabularies of both languages; see seq2seq.BuildVocabulary.
func Vocabularies(pairs []seq2seq.Pair, units seq2seq.Units, size int) (source, target *seq2seq.Vocabulary) {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	return seq2seq.BuildVocabulary(sources, units, size), seq2seq.BuildVocabulary(targets, units, size)
}
