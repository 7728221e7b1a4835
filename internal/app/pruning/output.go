package pruning

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/train"
)

// The files of the directory beside the pruned model. The results of an earlier run stay until the new
// models replace them.
const (
	ReportFile     = "pruning.json"    // the report as JSON
	PageFile       = "report.html"     // the report as a page
	UnfinishedFile = "unfinished.json" // the results so far, until the report is complete
	MaskedDir      = "masked"          // the model in the shapes of the original
)

// Vacant returns a *flags.Error if a run would overwrite a model, or a report, in a directory. With force,
// only a run of attn train is an error.
func Vacant(dir string, force bool) error {
	has := func(name ...string) bool { return atomicfile.Exists(filepath.Join(append([]string{dir}, name...)...)) }
	switch {
	case has(train.TrainingFile):
		return flags.Errorf("--out %s contains a run of attn train; choose another directory", quote.Shell(dir))
	case force:
		return nil
	case has(models.WeightsFile) || has(MaskedDir, models.WeightsFile):
		return flags.Errorf("--out %s already contains a model; use --force to overwrite it", quote.Shell(dir))
	}
	for _, name := range append(models.TranslatorFiles(), train.RecipeFile, ReportFile) {
		if has(name) {
			return flags.Errorf("%s already exists; use --force to overwrite it", quote.Shell(filepath.Join(dir, name)))
		}
	}
	return nil
}

// Output is the directory of a pruned model, which is locked against other processes.
type Output struct {
	Unfinished bool // the directory has UnfinishedFile
	dir        string
	store      *atomicfile.Dir
}

// Open creates a directory if necessary, and locks it. Close must be called.
//
// Errors: a directory, or its folder for the masked form, that cannot be written.
func Open(dir string) (*Output, error) {
	folders := []string{dir}
	if masked := filepath.Join(dir, MaskedDir); atomicfile.Exists(masked) {
		folders = append(folders, masked)
	}
	for _, folder := range folders {
		if err := atomicfile.Writable(folder); err != nil {
			return nil, err
		}
	}
	store, err := atomicfile.Lock(dir)
	if err != nil {
		return nil, err
	}
	return &Output{dir: dir, store: store}, nil
}

// Close unlocks the directory.
func (o *Output) Close() { o.store.Unlock() }

func (o *Output) saveUnfinished(r *reports.Report) error {
	return o.store.Replace([]atomicfile.File{atomicfile.JSON(UnfinishedFile, r)})
}

// write writes the forms of a model. The same step removes the report on an earlier model, so that a report
// always belongs to the model beside it.
func (o *Output) write(f forms) error {
	gone := f.gone
	for _, name := range []string{models.WeightsFile + ".index.json", ReportFile, PageFile} {
		gone = append(gone, name, filepath.Join(MaskedDir, name))
	}
	return o.store.Replace(f.files, existing(o.dir, gone)...)
}

// existing returns the names in directories that exist.
func existing(dir string, names []string) (list []string) {
	for _, name := range names {
		if atomicfile.Exists(filepath.Join(dir, filepath.Dir(name))) {
			list = append(list, name)
		}
	}
	return list
}

// keep writes the forms of a model. It then loads them, and checks that their outputs on the examples of a
// probe are those of the model within rounding.
func (o *Output) keep(ctx context.Context, f forms, left, examples *probe.Probe, r *reports.Report) error {
	if err := o.write(f); err != nil {
		return err
	}
	dirs := []string{o.dir}
	if f.compact {
		dirs = append(dirs, filepath.Join(o.dir, MaskedDir))
	}
	reference, err := probe.NewReference(ctx, left.On(examples))
	if err != nil {
		return err
	}
	largest := 0.
	for _, dir := range dirs {
		difference, err := compare(ctx, dir, examples, reference)
		if err != nil {
			return err
		}
		largest = max(largest, difference)
	}
	r.Result.Difference = reports.Number(largest)
	r.Result.Masked, r.Result.Loads, r.Result.NoCompact = dirs[len(dirs)-1], f.loads, f.noCompact
	if f.compact {
		r.Result.Compact = o.dir
	}
	return nil
}

// compare loads a model and returns the largest difference between its outputs and a reference. A difference
// that is more than rounding is an error.
func compare(ctx context.Context, dir string, examples *probe.Probe, reference *probe.Reference) (float64, error) {
	m, err := models.Load(dir, models.Options{Trainable: true, Allowed: examples.Model().Allowed()})
	if err != nil {
		return 0, err
	}
	again, err := examples.Of(m)
	if err != nil {
		return 0, err
	}
	largest, scale, err := reference.Difference(ctx, again)
	if err != nil {
		return 0, err
	}
	const rounding = 1e-4 // relative to the largest absolute logit
	if limit := rounding * max(scale, 1); !(largest <= limit) {
		return 0, &CheckError{fmt.Sprintf("the compact and the masked model differ by %g in an output, more than %g", largest, limit)}
	}
	return largest, nil
}

// Publish writes the report, and a page and charts of it. page, svg and png are paths; without page, the
// page is PageFile, and "" omits a chart. UnfinishedFile is removed.
func (o *Output) Publish(r *reports.Report, page, svg, png string) error {
	r.Result.Page = cmp.Or(page, filepath.Join(o.dir, PageFile))
	var others []atomicfile.File
	for _, f := range []atomicfile.File{
		{Path: page, Write: r.HTML},
		{Path: svg, Write: r.Chart().SVG},
		{Path: png, Write: func(w io.Writer) error { return r.Chart().PNG(w, 2) }},
	} {
		if f.Path != "" {
			others = append(others, f)
		}
	}
	if err := atomicfile.WriteAll(others...); err != nil {
		return err
	}
	files := []atomicfile.File{atomicfile.JSON(ReportFile, r)}
	if page == "" {
		files = append(files, atomicfile.File{Path: PageFile, Write: r.HTML})
	}
	return o.store.Replace(files, UnfinishedFile)
}
