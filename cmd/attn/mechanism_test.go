package main

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"mask", "mask", 0}, {"valid_len", "valid_lens", 1}, {"msak", "mask", 2},
		{"bais", "bias", 2}, {"kitten", "sitting", 3}, {"score.wq", "score.wk", 1},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
