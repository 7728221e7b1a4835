package pruning

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

func TestSplit(t *testing.T) {
	var pairs []seq2seq.Pair
	for i := range 100 {
		pairs = append(pairs, seq2seq.Pair{Source: fmt.Sprint(i % 50), Target: fmt.Sprint(i)})
	}
	parts, err := split(pairs, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]int{}
	for p, part := range [][]seq2seq.Pair{parts.Score, parts.Select, parts.Report} {
		sources, targets := train.Group(part)
		if len(sources) != 16 {
			t.Errorf("part %d has %d sources, want 16", p, len(sources))
		}
		for i, s := range sources {
			if other, twice := where[s]; twice {
				t.Errorf("source %s is in parts %d and %d", s, other, p)
			}
			where[s] = p
			if len(targets[i]) != 2 {
				t.Errorf("source %s has lost a target", s)
			}
		}
	}
	if again, _ := split(pairs, 1000, 1); !reflect.DeepEqual(again, parts) {
		t.Error("the same seed gives other parts")
	}
	if other, _ := split(pairs, 1000, 2); reflect.DeepEqual(other, parts) {
		t.Error("another seed gives the same parts")
	}
	if small, _ := split(pairs, 11, 1); len(small.Report) != 22 {
		t.Errorf("%d pairs to report on, want those of 11 sources", len(small.Report))
	}
	if _, err := split(pairs[:29], 1000, 1); err == nil || err.Error() != "29 different sources are too few to split in three, want at least 30" {
		t.Error(err)
	}
}
