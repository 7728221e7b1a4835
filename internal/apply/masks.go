package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
)

// Masks are the masks that flags name.
type Masks struct {
	Causal    bool
	Window    []int // one width for both sides, or the widths before and after; nil for no window
	Offset    *int  // of Causal and Window; nil for Lk − Lq
	Sink      *int  // with Window, the number of first keys that every query sees
	Documents []int // ends of the documents of a sequence
}

// Check returns an error for flags that contradict each other.
func (m Masks) Check() error {
	switch {
	case len(m.Window) > 2:
		return fmt.Errorf("--window %s, want one number or two", joined(m.Window))
	case m.Causal && len(m.Window) == 2 && m.Window[1] != 0:
		return fmt.Errorf("--window %s: with --causal, no key after the query is attended to", joined(m.Window))
	case !slices.IsSorted(m.Documents):
		return fmt.Errorf("--documents %s, want cumulative lengths in ascending order", joined(m.Documents))
	}
	return nil
}

// joined returns a list of numbers in the form of the command line.
func joined(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// Mask returns all masks together.
func (m Masks) Mask() attn.Mask {
	var documents attn.Mask
	if m.Documents != nil {
		documents = mask.Documents(m.Documents)
	}
	left, right := -1, -1
	if m.Window != nil {
		left, right = m.Window[0], m.Window[len(m.Window)-1]
	}
	if m.Causal {
		right = 0
	}
	switch {
	case left < 0 && right < 0:
		return documents
	case m.Sink != nil:
		return attn.And(documents, mask.WindowWithSinks(left, right, *m.Sink))
	case m.Offset != nil:
		return attn.And(documents, mask.WindowAt(left, right, *m.Offset))
	}
	return attn.And(documents, mask.Window(left, right))
}
