package stats

import (
	"reflect"
	"strings"
	"testing"
)

func TestGroupBy(t *testing.T) {
	first := func(s string) string { return s[:1] }
	got, want := GroupBy(strings.Fields("b1 a1 b2 c1 a2 b3"), first), [][]int{{0, 2, 5}, {1, 4}, {3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	if got := GroupBy(nil, first); got != nil {
		t.Errorf("groups of nothing: %v", got)
	}
}
