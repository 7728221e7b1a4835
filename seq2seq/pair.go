package seq2seq

import "github.com/attn-go/attn/internal/input"

// Pair is a text and its translation.
type Pair struct {
	Source, Target string
}

// InputError is an error in the content of an input. Name is the name of the input. Line counts from 1 and
// is 0 if the error concerns the whole input. Err is the reason.
type InputError = input.Error
