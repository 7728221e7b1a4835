package pruning

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/seq2seq"
)

// Parts are three parts of the data that share no source: importance is measured
// on the first, methods and numbers of heads are chosen on the second, and what
// is reported comes from the third, which no choice has seen. To report on data
// that chose would flatter (Michel et al. 2019 lose 13.6 BLEU with one head of a
// layer on the data that chose it, and 18.9 on others).
type Parts struct {
	Score, Select, Report []seq2seq.Pair
}

// Unseen returns the pairs whose sources are in neither of the parts that are
// measured on.
func (p Parts) Unseen(pairs []seq2seq.Pair) []seq2seq.Pair {
	measured := map[string]bool{}
	for _, part := range [][]seq2seq.Pair{p.Select, p.Report} {
		for _, pair := range part {
			measured[pair.Source] = true
		}
	}
	var rest []seq2seq.Pair
	for _, pair := range pairs {
		if !measured[pair.Source] {
			rest = append(rest, pair)
		}
	}
	return rest
}

// Sources returns how many sources the parts have.
func (p Parts) Sources() (n [3]int) {
	for i, part := range [][]seq2seq.Pair{p.Score, p.Select, p.Report} {
		n[i] = Groups(part, sourceOf)
	}
	return n
}

func sourceOf(p seq2seq.Pair) string { return p.Source }

// Groups returns how many different sources examples have.
func Groups[E any](examples []E, source func(E) string) int {
	seen := map[string]bool{}
	for _, e := range examples {
		seen[source(e)] = true
	}
	return len(seen)
}

// Fewest is the least number of sources of a part.
const Fewest = 10

// Split deals the sources of pairs, with all their targets, into three parts of
// at most limit sources each. The same pairs and seed give the same parts.
//
// It returns an error if there are too few.
func Split(pairs []seq2seq.Pair, limit int, seed uint64) (Parts, error) {
	parts, err := Deal(pairs, sourceOf, limit, seed, "sources")
	return Parts{Score: parts[0], Select: parts[1], Report: parts[2]}, err
}

// Deal deals examples into three parts, those with the same source into the same part, of at
// most limit sources each. The same examples and seed give the same parts.
//
// It returns an error if there are too few, which calls them by their name.
func Deal[E any](examples []E, source func(E) string, limit int, seed uint64, name string) (parts [3][]E, err error) {
	var groups [][]E
	at := map[string]int{}
	for _, e := range examples {
		i, known := at[source(e)]
		if !known {
			i = len(groups)
			at[source(e)], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], e)
	}
	each := min(len(groups)/3, limit)
	if each < Fewest {
		return parts, fmt.Errorf("%d different %s are too few to split in three, want at least %d", len(groups), name, 3*Fewest)
	}
	order := rand.New(rand.NewPCG(seed, 3)).Perm(len(groups))
	for i := range parts {
		for _, g := range order[i*each : (i+1)*each] {
			parts[i] = append(parts[i], groups[g]...)
		}
	}
	return parts, nil
}

// FirstSources returns the pairs of the first n sources.
func FirstSources(pairs []seq2seq.Pair, n int) []seq2seq.Pair {
	seen := map[string]bool{}
	var list []seq2seq.Pair
	for _, p := range pairs {
		if len(seen) == n && !seen[p.Source] {
			continue
		}
		seen[p.Source] = true
		list = append(list, p)
	}
	return list
}
