package tokenizer

import (
	"slices"
	"testing"
)

// Special tokens within Options.Literal are text, and others are not.
func TestLiteral(t *testing.T) {
	tok, err := Load("../models/testdata/sentence_dense")
	if err != nil {
		t.Fatal(err)
	}
	sep, _ := tok.ID("[SEP]")
	const text = "the [SEP] cat [SEP]"
	for _, c := range []struct {
		literal []Span
		want    []int // starts of the offsets of [SEP]
	}{
		{nil, []int{4, 14}},
		{[]Span{{4, 9}}, []int{14}},
		{[]Span{{8, 15}}, nil},
		{[]Span{{9, 14}}, []int{4, 14}},
		{[]Span{{0, len(text)}}, nil},
	} {
		e, err := tok.Encode(text, Options{NoSpecial: true, Literal: c.literal})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, id := range e.IDs {
			if id == sep {
				got = append(got, e.Offsets[i].Start)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("literal %v: [SEP] at %v, want %v", c.literal, got, c.want)
		}
	}
}
