package main

import (
	"errors"
	"slices"

	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// scoredFlags are the flags of the commands that score heads.
type scoredFlags struct {
	Model     string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data      string   `help:"Texts that the model was not trained on, one per line, with the columns that attn heads --help lists (default new dates, for a dates model)." placeholder:"FILE"`
	Method    []string `enum:"${methods}" help:"${methods_or}, or several, comma-separated (default all but random)." placeholder:"NAME" group:"Importance"`
	Normalize bool     `help:"Divide the scores of gradient, taylor and fisher by their norm over the layer." group:"Importance"`
	Limit     int      `default:"1000" help:"Use at most N sources of the data, or of each of its parts." placeholder:"N" want:"1 to 250000"`
	Seed      uint64   `default:"1" help:"Random seed." placeholder:"N"`
}

// Validate is called by the parser.
func (f *scoredFlags) Validate() error {
	gradients := func(name string) bool { return slices.Contains([]string{"gradient", "taylor", "fisher"}, name) }
	if f.Normalize && len(f.Method) > 0 && !slices.ContainsFunc(f.Method, gradients) {
		return errors.New("--normalize requires gradient, taylor or fisher")
	}
	return nil
}

// methods returns the methods that are asked for, each once.
func (f *scoredFlags) methods() ([]prune.Method, error) {
	var list []prune.Method
	for _, name := range f.Method {
		m, err := prune.ParseMethod(name)
		if err != nil {
			return nil, usage("%w", err)
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// open loads the model with its data.
func (f *scoredFlags) open(c console, allowed settingFlag, most tasks.Limits) (*tasks.Model, error) {
	open := func(dir string, o models.Options) (*tasks.Model, error) { return tasks.Open(dir, f.Data, o, most) }
	return load(c, open, f.Model, models.Options{Allowed: allowed.AllowSetting})
}
