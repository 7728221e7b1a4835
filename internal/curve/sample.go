package curve

import (
	"fmt"
	"strings"
)

// Sample is an output of the last checkpoint.
type Sample struct {
	Source  string `json:"source"` // empty if there is no sample
	Written string `json:"written"`
	Heads   string `json:"heads"` // SVG of its attention; empty if there is none
	Title   string `json:"title"` // of Heads
}

// LossNote explains why training loss and validation loss differ.
func LossNote(dropout, smoothing float32) string {
	var with []string
	if dropout > 0 {
		with = append(with, fmt.Sprintf("dropout %g", dropout))
	}
	if smoothing > 0 {
		with = append(with, fmt.Sprintf("label smoothing %g", smoothing))
	}
	training, validation := "", ""
	if with != nil {
		training = ", with " + strings.Join(with, " and ")
		validation = [...]string{" without it", " without either"}[len(with)-1]
	}
	return fmt.Sprintf("Training loss is a mean over the steps before each point%s; validation loss is measured at the end of an epoch%s, so it can be lower.", training, validation)
}
