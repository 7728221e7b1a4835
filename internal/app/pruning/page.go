package pruning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/train"
)

// KeptFile lists the heads that are left of a model that a Page has pruned, for --keep.
const KeptFile = "heads.txt"

// Page is the model of a page, which can write it without some heads.
type Page struct {
	recording.Model
	Out     string   // directory to write, which must not exist
	Allowed []string // see models.Options
}

var _ view.Pruner = Page{}

// PrunesTo implements view.Pruner.
func (p Page) PrunesTo() string { return p.Out }

// Prune writes the model without some heads, by the name of the layer, in the forms of attn prune. It loads it again, and
// checks that the output for a record is that of the model without these heads, within rounding.
//
// Errors: a directory that exists; heads that cannot be removed. After any other error, the directory does not exist.
func (p Page) Prune(ctx context.Context, r *heads.Record, off map[string][]int) (y view.Pruned, err error) {
	if err = os.MkdirAll(filepath.Dir(p.Out), 0o755); err == nil {
		err = os.Mkdir(p.Out, 0o755)
	}
	if errors.Is(err, fs.ErrExist) {
		return y, fmt.Errorf("%s already exists: start attn view with a new directory", quote.Shell(p.Out))
	} else if err != nil {
		return y, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(p.Out)
		}
	}()
	m := &tasks.Model{Dir: p.Model.Model.Dir}
	if m.Recipe, err = train.ReadRecipe(m.Dir); err == nil {
		m.Model, err = models.Load(m.Dir, models.Options{Trainable: true, Allowed: p.Allowed})
	}
	if err != nil {
		return y, err
	}
	var list strings.Builder
	kept, removed, all, empty := map[string][]int{}, 0, 0, ""
	for _, l := range m.HeadLayers() {
		kept[l.Name] = nil
		kind, layer := heads.Place(l.Name)
		for h := range l.Heads {
			gone, group := slices.Contains(off[l.Name], h), h/l.Group*l.Group
			if gone != slices.Contains(off[l.Name], group) {
				return y, fmt.Errorf("heads %d to %d of %s share keys and values: switch all of them off, or none", group, group+l.Group-1, l.Name)
			}
			if gone {
				removed++
				continue
			}
			kept[l.Name] = append(kept[l.Name], h)
			fmt.Fprintf(&list, "%s.%d.%d\n", kind, layer, h)
		}
		if all += l.Heads; l.Heads > 0 && kept[l.Name] == nil {
			empty = " --empty-layers"
		}
	}
	f, err := formsOf(m, m.Model, kept)
	if err != nil {
		return y, err
	}
	if err := atomicfile.Save(p.Out, with(f.files, KeptFile, []byte(list.String()))); err != nil {
		return y, err
	}
	small, err := models.Load(p.Out, models.Options{Trainable: true, Allowed: p.Allowed})
	if err != nil {
		return y, err
	}
	y = view.Pruned{Dir: p.Out, Note: f.noCompact, Sizes: []view.OutputRow{
		{Label: "heads", Before: float64(all), After: float64(all - removed)},
		{Label: "parameters", Before: float64(nn.Count(m.Model)), After: float64(nn.Count(small))},
	}}
	if y.Output, err = p.Against(ctx, r, off, small); err != nil {
		return y, err
	}
	data := " --data FILE"
	if m.Recipe != nil && m.Recipe.Data == "" {
		data = ""
	}
	y.Command = fmt.Sprintf("attn prune --model %s%s --keep %s%s --out %s", quote.Shell(m.Dir), data, quote.Shell(filepath.Join(p.Out, KeptFile)), empty, quote.Shell(p.Out+"-measured"))
	return y, nil
}
