package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
)

// ByLoss is what attn prune has found about a pretrained model, in the form in which it is
// written as JSON. Losses are in nats for each thing to be predicted.
type ByLoss struct {
	Version   string       `json:"version"`
	Started   string       `json:"started"` // UTC
	Model     string       `json:"model"`   // directory
	Task      string       `json:"task"`
	Data      TextData     `json:"data"`
	Goal      string       `json:"goal"`
	Normalize bool         `json:"normalize"`
	Empty     bool         `json:"empty_layers"`
	Orders    int          `json:"orders"`
	Seed      uint64       `json:"seed"`
	Layers    []Layer      `json:"layers"`
	Heads     int          `json:"heads"`
	Scores    []Scores     `json:"scores"`
	Tried     []Tried      `json:"tried"`
	Chosen    int          `json:"chosen"`  // of Tried
	Removed   []heads.Head `json:"removed"` // in the order in which they went
	Left      int          `json:"left"`
	Before    Number       `json:"before"` // losses on the reporting part
	After     Number       `json:"after"`
	Random    Spread       `json:"random"` // losses with as many heads in random orders
	Out       string       `json:"out"`    // directory of the pruned model
}

// TextData are the texts of an experiment, in three parts.
type TextData struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Score  int    `json:"score"` // texts
	Select int    `json:"select"`
	Report int    `json:"report"`
}

// Tried is what a method came to on the selecting part.
type Tried struct {
	Method  string `json:"method"`
	Removed int    `json:"removed"`
	Step    int    `json:"step"` // heads that went at a time, 0 for all at once
	Loss    Number `json:"loss"`
}

// Summary writes what people want to know first.
func (r *ByLoss) Summary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s are left, after %s\n", r.Left, Counted(r.Heads, "head", "heads"), r.Tried[r.Chosen].Method)
	fmt.Fprintf(&b, "loss of the %s on %s: %.4g, before %.4g nats\n", r.Task, Counted(r.Data.Report, "text", "texts"), float64(r.After), float64(r.Before))
	if r.Random.Mean.Known() {
		fmt.Fprintf(&b, "with as many heads in %s: %.4g to %.4g, mean %.4g\n",
			Counted(r.Orders, "random order", "random orders"), float64(r.Random.Min), float64(r.Random.Max), float64(r.Random.Mean))
	}
	for _, l := range r.Layers {
		var marks strings.Builder
		for h := range l.Heads {
			if slices.Contains(l.Kept, h) {
				marks.WriteString("█")
			} else {
				marks.WriteString("·")
			}
		}
		fmt.Fprintf(&b, "%-20s %s\n", l.Name, &marks)
	}
	fmt.Fprintf(&b, "%s has the model in the shapes of the original: the weights of removed heads are zero\n", r.Out)
	_, err := io.WriteString(w, b.String())
	return err
}
