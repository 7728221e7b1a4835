package heads

// Measures are numbers that tell what kind of head it is, each a mean over the
// queries. docs/heads.md has their formulas and sources.
type Measures struct {
	Entropy     float64 // in nats
	Bound       float64 // the entropy of looking everywhere alike
	Distance    float64 // mean |i-j| of what is looked at, in tokens
	Confidence  float64 // the largest weight
	Previous    float64 // weight of the token before
	Same        float64 // weight of the token itself
	Next        float64 // weight of the token behind
	First       float64 // weight of the first token
	Last        float64 // weight of the last token
	Special     float64 // weight of special tokens
	Punctuation float64 // weight of punctuation
	Induction   float64 // weight of the tokens that followed earlier equal ones
}

// Measure returns the measures of a head. special lists the tokens that are marks.
func (l *Layer) Measure(h int, special []string) Measures {
	panic("not written yet")
}
