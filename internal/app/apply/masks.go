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
	Causal    bool  `help:"Query i attends to key j only if j ≤ i + offset." group:"Masks"`
	Window    []int `help:"Query i attends only to keys at most N away from i + offset, or at most N before and M after it." placeholder:"N" group:"Masks" want:"at least 0"`
	Offset    *int  `help:"Offset of --causal and --window (default Lk − Lq)." placeholder:"N" group:"Masks" needs:"causal|window"`
	Sink      *int  `help:"With --window, every query also attends to the first N keys." placeholder:"N" group:"Masks" want:"at least 0" needs:"window" excludes:"offset"`
	Documents []int `help:"Ends of the documents packed into a sequence (exclusive); a query attends only to keys of the same document." placeholder:"N" group:"Masks" want:"at least 0"`
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
