package seq2seq

import "github.com/attn-go/attn/internal/input"

// Pair is a text and its translation.
type Pair struct {
	Source, Target string
}

// InputError says what is wrong with the content of an input: its Name, the Line, counted from 1 and 0 when the input
// as a whole is meant, and Err, the reason.
type InputError = input.Error
