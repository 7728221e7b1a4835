package pruning

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/stats"
)

// Fewest is the minimum number of sources in a part.
const Fewest = 10

// Deal splits examples into three parts of at most limit sources each, without splitting the
// examples of a source. Importance is measured on the first, methods and numbers of heads are
// chosen on the second, and the report comes from the third, which no choice has used. Results on
// the data used for choosing would be too good (Michel et al. 2019 lose 13.6 BLEU with one head
// of a layer on the data that chose it, and 18.9 on others). The same examples and seed give the
// same parts.
//
// If there are too few examples, it returns an error that calls them name.
func Deal[E any](examples []E, source func(E) string, limit int, seed uint64, name string) (parts [3][]E, err error) {
	all := stats.GroupBy(examples, source)
	each := min(len(all)/3, limit)
	if each < Fewest {
		return parts, fmt.Errorf("%d different %s are too few to split in three, want at least %d", len(all), name, 3*Fewest)
	}
	order := rand.New(rand.NewPCG(seed, 3)).Perm(len(all))
	for i := range parts {
		for _, g := range order[i*each : (i+1)*each] {
			parts[i] = append(parts[i], stats.Pick(examples, all[g])...)
		}
	}
	return parts, nil
}
