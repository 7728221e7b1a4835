package train

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// RecipeFile is the name of the recipe in a run's directory.
const RecipeFile = "recipe.json"

// Recipe has all settings of a run. It is saved in the run's directory, so that resuming needs
// nothing else.
type Recipe struct {
	Data      string                  `json:"data,omitempty"`  // file of pairs; empty for the built-in dates
	Valid     string                  `json:"valid,omitempty"` // file of test pairs; empty: a part of Data
	Limit     int                     `json:"limit,omitempty"` // number of pairs of Data to use; 0 for all
	Units     seq2seq.Units           `json:"units"`
	VocabSize int                     `json:"vocab_size"` // upper limit for each language
	Network   models.TranslatorConfig `json:"network"`    // without the sizes of the vocabularies
	Training  Settings                `json:"training"`
	// Pruned has the number of dates that each pruning of the model has used.
	Pruned []int `json:"pruned,omitempty"`
}

// The numbers of built-in pairs.
const (
	datesTrain = 10_000
	datesTest  = 1_000
)

// DatesRecipe learns the built-in dates in well under a minute on two cores.
func DatesRecipe() Recipe {
	return Recipe{
		Units: seq2seq.Chars, VocabSize: 1000,
		Network: models.TranslatorConfig{
			Arch: models.Transformer, Score: "scaled", Width: 64, Heads: 4, Layers: 1, Hidden: 128, Dropout: 0.05,
		},
		Training: Settings{Epochs: 16, Batch: 32, LR: 0.003, Warmup: 400, Clip: 1, Seed: 1},
	}
}

// PairsRecipe suits tens of thousands of short sentences. The caller must set Data.
func PairsRecipe() Recipe {
	return Recipe{
		Units: seq2seq.BPE, VocabSize: 4000,
		Network: models.TranslatorConfig{
			Arch: models.Transformer, Score: "scaled", Width: 128, Heads: 4, Layers: 2, Hidden: 512, Dropout: 0.1,
		},
		Training: Settings{
			Epochs: 10, Batch: 32, LR: 0.002, Warmup: 400, Clip: 1, Smoothing: 0.1, MaxLength: 200, Seed: 1,
		},
	}
}

// Recurrent returns the recipe with the classic recurrent translator of one layer: its attention
// has no projections, and it has no feed-forward layers.
func (r Recipe) Recurrent() Recipe {
	r.Network.Arch, r.Network.Heads, r.Network.Hidden, r.Network.Layers = models.GRU, 0, 0, 1
	return r
}

// Validate returns an error unless the recipe is valid.
func (r Recipe) Validate() error {
	network := r.Network
	network.SourceVocab, network.TargetVocab = r.VocabSize, r.VocabSize
	switch {
	case r.Limit < 0:
		return fmt.Errorf("limit %d, want at least 1", r.Limit)
	case r.VocabSize < 5:
		return fmt.Errorf("vocabulary of at most %d entries, want room for at least 5", r.VocabSize)
	case r.Data == "" && r.Valid != "":
		return errors.New("--valid requires --data; the dates have a separate test set")
	case network.Arch == models.GRU && network.Hidden != 0:
		return errors.New("--hidden requires --arch transformer")
	}
	return cmp.Or(network.Validate(), r.Training.Validate())
}

// Continues reports whether r can resume a run of the recipe old: only the number of epochs may
// differ.
func (r Recipe) Continues(old Recipe) bool {
	r.Training.Epochs = old.Training.Epochs
	return reflect.DeepEqual(r, old)
}

// ReadRecipe returns the recipe of the run in a directory, or nil if there is none.
func ReadRecipe(dir string) (*Recipe, error) {
	path := filepath.Join(dir, RecipeFile)
	data, err := atomicfile.ReadFile(path, atomicfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r Recipe
	if err = strictjson.Unmarshal(data, &r); err == nil {
		err = r.Validate()
	}
	if err != nil {
		return nil, &input.Error{Name: path, Err: err}
	}
	return &r, nil
}

// New returns an untrained model, its trainer, and their data.
//
// Errors: those of the data, and of a recipe that Validate rejects.
func (r Recipe) New() (m *models.Model, t *Trainer, d Data, err error) {
	if d, err = r.Pairs(); err != nil {
		return nil, nil, d, err
	}
	source, target := Vocabularies(d.Learn, r.Units, r.VocabSize)
	m, err = models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(r.Training.Seed, 0)))
	if err == nil {
		t, err = NewTrainer(m, d.Learn, r.Training)
	}
	return m, t, d, err
}

// File returns the recipe as a file of a run's directory.
func (r Recipe) File() atomicfile.File { return atomicfile.JSON(RecipeFile, r) }

// Data are the pairs of a run.
type Data struct {
	Learn, Test []seq2seq.Pair
	Unseen      bool // Test is not a part of Learn
	TooLong     int  // number of pairs that were omitted from both
}

// Pairs returns the pairs for training and for testing.
func (r Recipe) Pairs() (d Data, err error) {
	if r.Data == "" {
		d.Learn, d.Test = DatesSplit(datesTrain, datesTest, r.Training.Seed)
		if r.Limit > 0 {
			d.Learn = d.Learn[:min(r.Limit, len(d.Learn))]
		}
		d.Unseen = true
		return d, nil
	}
	all, err := LoadPairs(r.Data)
	if err != nil {
		return d, err
	}
	if r.Limit > 0 {
		all = all[:min(r.Limit, len(all))]
	}
	before := len(all)
	all = slices.DeleteFunc(all, TooLong)
	d.TooLong = before - len(all)
	switch {
	case len(all) == 0:
		return d, input.Errorf(r.Data, "every pair is longer than %d bytes", LongestText)
	case r.Valid != "":
		d.Learn, d.Unseen = all, true
		d.Test, err = LoadTest(r.Valid)
		return d, err
	}
	d.Learn, d.Test = holdOut(all)
	d.Unseen = len(d.Test) > 0
	if !d.Unseen {
		d.Test = all
	}
	return d, nil
}

// holdOut excludes every fiftieth source with all its translations from training, at most 500
// sources.
func holdOut(all []seq2seq.Pair) (learn, test []seq2seq.Pair) {
	const every, most = 50, 500
	sources, _ := Group(all)
	held := make(map[string]bool)
	for i := every - 1; i < len(sources) && len(held) < most; i += every {
		held[sources[i]] = true
	}
	for _, p := range all {
		if held[p.Source] {
			test = append(test, p)
		} else {
			learn = append(learn, p)
		}
	}
	return learn, test
}

// Example returns a source to show: the longest of the first few test pairs that fits on a
// terminal, or the shortest of them if none fits.
func (d Data) Example() string { return d.example().Source }

// example returns the pair of Example.
func (d Data) example() seq2seq.Pair {
	const few, fits = 10, 32
	return slices.MaxFunc(d.Test[:min(few, len(d.Test))], func(a, b seq2seq.Pair) int {
		m, n := utf8.RuneCountInString(a.Source), utf8.RuneCountInString(b.Source)
		if max(m, n) > fits {
			m, n = -m, -n
		}
		return cmp.Compare(m, n)
	})
}

// MoreDates returns n dates for the next pruning; prunings is the number of earlier ones. Each
// pruning uses a separate random stream, which may repeat dates of others.
func (r Recipe) MoreDates(prunings, n int) []seq2seq.Pair {
	_, dates := DatesSplit(0, min(max(n, 0), MaxDates), r.Training.Seed+1+uint64(prunings))
	return dates
}
