package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/score"
)

// Scores returns a line for each score: its name, formula and parameters.
func Scores() string {
	var b strings.Builder
	for _, kind := range score.Kinds() {
		var params []string
		for _, p := range kind.Params {
			text := fmt.Sprintf("score.%s [%s]", p.Name, strings.Join(p.Axes, " "))
			if p.Optional {
				text += " or nothing"
			}
			params = append(params, text)
		}
		line := fmt.Sprintf("  %-17s%-23s%s", kind.Name, kind.Formula, strings.Join(params, ", "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Scaled returns the names of the scores that have a scale.
func Scaled() []string {
	return slices.DeleteFunc(score.Kinds(), func(k score.Kind) bool { return k.Scaled == nil }).Names()
}
