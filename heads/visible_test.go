package heads

import (
	"slices"
	"testing"
)

func TestVisible(t *testing.T) {
	three, five := numbers(3), numbers(5)
	for _, c := range []struct {
		name string
		l    Layer
		want []int
	}{
		{"encoder", Layer{Kind: Encoder, Queries: three, Keys: three}, []int{3, 3, 3}},
		{"decoder", Layer{Kind: Decoder, Queries: three, Keys: three}, []int{1, 2, 3}},
		{"decoder with a cache", Layer{Kind: Decoder, Queries: three, Keys: five}, []int{3, 4, 5}},
		{"decoder with places", Layer{Kind: Decoder, Queries: three, Keys: five, QueryPlaces: []int{-1, 2, 9}, KeyPlaces: []int{0, 1, 2, 2, 7}}, []int{0, 4, 5}},
		{"cross", Layer{Kind: Cross, Queries: three, Keys: five}, []int{5, 5, 5}},
	} {
		if got := c.l.Visible(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
