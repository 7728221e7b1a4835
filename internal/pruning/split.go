package pruning

import (
	"fmt"
	"math/rand/v2"
)

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

// Deal deals examples into three parts, those with the same source into the same part, of at
// most limit sources each: importance is measured on the first, methods and numbers of heads
// are chosen on the second, and what is reported comes from the third, which no choice has
// seen. To report on data that chose would flatter (Michel et al. 2019 lose 13.6 BLEU with
// one head of a layer on the data that chose it, and 18.9 on others). The same examples and
// seed give the same parts.
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
