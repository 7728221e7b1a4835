package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/seq2seq"
)

// recipe is everything that a training run follows from. It is kept in the
// run's directory, so that --resume needs nothing else.
type recipe struct {
	Data      string           `json:"data,omitempty"`  // pairs; empty for the built-in dates
	Valid     string           `json:"valid,omitempty"` // pairs to measure on; empty: some of Data
	Limit     int              `json:"limit,omitempty"` // pairs of Data used; 0 for all
	Units     seq2seq.Units    `json:"units"`
	VocabSize int              `json:"vocab_size"` // at most, for each language
	Network   seq2seq.Config   `json:"network"`    // without the sizes of the vocabularies
	Training  seq2seq.Settings `json:"training"`
	// Pruned are the numbers of dates that each pruning of the model has used.
	Pruned []int `json:"pruned,omitempty"`
}

// The numbers of built-in pairs.
const (
	datesTrain = 10_000
	datesTest  = 1_000
)

// datesRecipe learns the built-in dates in well under a minute on two cores.
func datesRecipe() recipe {
	return recipe{
		Units: seq2seq.Chars, VocabSize: 1000,
		Network:  seq2seq.Config{Score: "scaled", Width: 64, Heads: 4, Layers: 1, Hidden: 128, Dropout: 0.05},
		Training: seq2seq.Settings{Epochs: 16, Batch: 32, LR: 0.003, Warmup: 400, Clip: 1, Seed: 1},
	}
}

// pairsRecipe suits tens of thousands of short sentences.
func pairsRecipe() recipe {
	return recipe{
		Units: seq2seq.BPE, VocabSize: 4000,
		Network:  seq2seq.Config{Score: "scaled", Width: 128, Heads: 4, Layers: 2, Hidden: 512, Dropout: 0.1},
		Training: seq2seq.Settings{Epochs: 10, Batch: 32, LR: 0.002, Warmup: 400, Clip: 1, Smoothing: 0.1, MaxLength: 200, Seed: 1},
	}
}

// recipeFlags are the flags that change a recipe; nil leaves it as it is.
type recipeFlags struct {
	Data  *string `help:"Tab-separated pairs to learn, one per line. Without it, built-in dates." placeholder:"FILE"`
	Valid *string `help:"Pairs to measure on. Without it, some of the data are held out." placeholder:"FILE"`
	Limit *int    `help:"Use only the first N pairs of the data (default all)." placeholder:"N"`

	Arch      *string  `enum:"${archs}" help:"${archs_or} (${train_arch})." placeholder:"NAME" group:"Network"`
	Score     *string  `enum:"${scores}" help:"${scores_or} (${train_score})." placeholder:"NAME" group:"Network"`
	Heads     *int     `help:"Heads of each attention layer; 0, for gru only, attends without projections (${train_heads})." placeholder:"N" group:"Network"`
	Width     *int     `help:"Size of embeddings and states (${train_width})." placeholder:"N" group:"Network"`
	Layers    *int     `help:"Layers of the encoder and of the decoder (${train_layers})." placeholder:"N" group:"Network"`
	Hidden    *int     `help:"Size of the transformer's feed-forward layers (${train_hidden}; in proportion if --width is given)." placeholder:"N" group:"Network"`
	Dropout   *float32 `help:"Probability of dropping an activation (${train_dropout})." placeholder:"P" group:"Network"`
	Units     *string  `enum:"${units}" help:"What texts are split into: ${units_or} (${train_units})." placeholder:"NAME" group:"Network"`
	VocabSize *int     `help:"Largest number of entries in each vocabulary (${train_vocab})." placeholder:"N" group:"Network"`

	Epochs    *int     `help:"Passes over the data, in total (${train_epochs})." placeholder:"N" group:"Training"`
	Batch     *int     `help:"Pairs per step (${train_batch})." placeholder:"N" group:"Training"`
	LR        *float64 `name:"lr" help:"Largest learning rate (${train_lr})." placeholder:"RATE" group:"Training"`
	Warmup    *int     `help:"Steps until the learning rate is largest (${train_warmup})." placeholder:"N" group:"Training"`
	Smoothing *float32 `help:"Label smoothing of the loss (${train_smoothing})." placeholder:"P" group:"Training"`
	Seed      *uint64  `help:"Seed of all random numbers (${train_seed})." placeholder:"N" group:"Training"`
}

// set copies a flag that was given.
func set[T any](to *T, flag *T) {
	if flag != nil {
		*to = *flag
	}
}

// apply returns the recipe with the flags that were given.
func (f *recipeFlags) apply(r recipe) (recipe, error) {
	for _, p := range []struct{ to, flag *string }{{&r.Data, f.Data}, {&r.Valid, f.Valid}} {
		if p.flag == nil {
			continue
		}
		abs, err := filepath.Abs(*p.flag) // resuming may start elsewhere
		if err != nil {
			return r, err
		}
		*p.to = abs
	}
	if f.Limit != nil && *f.Limit == 0 { // which stands for no limit in the recipe
		return r, usage("--limit 0, want at least 1")
	}
	set(&r.Limit, f.Limit)
	set(&r.Network.Arch, f.Arch)
	set(&r.Network.Score, f.Score)
	set(&r.Network.Heads, f.Heads)
	set(&r.Network.Width, f.Width)
	set(&r.Network.Layers, f.Layers)
	set(&r.Network.Hidden, f.Hidden)
	set(&r.Network.Dropout, f.Dropout)
	if f.Units != nil {
		units, err := seq2seq.ParseUnits(*f.Units)
		if err != nil {
			return r, usage("%w", err)
		}
		r.Units = units
	}
	set(&r.VocabSize, f.VocabSize)
	set(&r.Training.Epochs, f.Epochs)
	set(&r.Training.Batch, f.Batch)
	set(&r.Training.LR, f.LR)
	set(&r.Training.Warmup, f.Warmup)
	set(&r.Training.Smoothing, f.Smoothing)
	set(&r.Training.Seed, f.Seed)
	return r, r.validate()
}

// fresh returns the recipe of a new run.
func (f *recipeFlags) fresh() (recipe, error) {
	r := datesRecipe()
	if f.Data != nil {
		r = pairsRecipe()
	}
	r.Network.Arch = seq2seq.Transformer
	if f.Arch != nil && *f.Arch == seq2seq.GRU {
		// The classic recurrent translator attends without projections and
		// has nothing between its layers.
		r.Network.Arch, r.Network.Heads, r.Network.Hidden, r.Network.Layers = seq2seq.GRU, 0, 0, 1
	}
	if f.Hidden == nil && f.Width != nil && r.Network.Arch == seq2seq.Transformer {
		r.Network.Hidden = *f.Width * r.Network.Hidden / r.Network.Width
	}
	return f.apply(r)
}

// validate returns a usage error unless the recipe can be followed.
func (r recipe) validate() error {
	network := r.Network
	network.SourceVocab, network.TargetVocab = r.VocabSize, r.VocabSize
	switch {
	case r.Limit < 0:
		return usage("limit %d, want at least 1", r.Limit)
	case r.VocabSize < 5:
		return usage("vocabulary of at most %d entries, want room for at least 5", r.VocabSize)
	case r.Data == "" && r.Valid != "":
		return usage("--valid goes with --data; the dates have a test set of their own")
	case network.Arch == seq2seq.GRU && network.Hidden != 0:
		return usage("--hidden goes with the transformer")
	}
	if err := network.Validate(); err != nil {
		return usage("%w", err)
	}
	if err := r.Training.Validate(); err != nil {
		return usage("%w", err)
	}
	return nil
}

// resume returns the recipe of the run in a directory. Flags may repeat what it
// says; only the number of epochs may change.
func (f *recipeFlags) resume(dir string) (recipe, error) {
	stored, err := readRecipe(dir)
	if err != nil {
		return recipe{}, err
	}
	if stored == nil {
		return recipe{}, input.Errorf(dir, "holds no run to resume")
	}
	if !exists(filepath.Join(dir, seq2seq.TrainingFile)) {
		return recipe{}, input.Errorf(dir, "holds a model without the state of its training, which cannot be resumed")
	}
	r, err := f.apply(*stored)
	if err != nil {
		return recipe{}, err
	}
	same := r
	same.Training.Epochs = stored.Training.Epochs
	if !reflect.DeepEqual(same, *stored) {
		return recipe{}, usage("the run in %s was started with other settings; only --epochs may change when it is resumed", dir)
	}
	return r, nil
}

// moreDates returns the dates for the next pruning after so many: each draws from a
// stream of its own, which may repeat what others have.
func (r recipe) moreDates(prunings, n int) []seq2seq.Pair {
	_, dates := seq2seq.DatesSplit(0, min(max(n, 0), seq2seq.MaxDates), r.Training.Seed+1+uint64(prunings))
	return dates
}

// readRecipe returns the recipe of the run in a directory, nil if there is none.
func readRecipe(dir string) (*recipe, error) {
	path := filepath.Join(dir, recipeFile)
	var data []byte
	err := atomicfile.Read(path, func(place string) (err error) {
		data, err = os.ReadFile(place)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r recipe
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return nil, &input.Error{Name: path, Err: err}
	}
	if err := r.validate(); err != nil {
		return nil, input.Errorf(path, "%v", err) // not wrapped: a usage error in a file is none of the command line
	}
	return &r, nil
}

// recipeFile is the name of the recipe in a run's directory.
const recipeFile = "recipe.json"

// file returns the recipe as a file of a run's directory.
func (r recipe) file() atomicfile.File { return atomicfile.JSON(recipeFile, r) }

// trainingData are the pairs of a run.
type trainingData struct {
	learn, test []seq2seq.Pair
	unseen      bool // test is not part of learn
	tooLong     int  // pairs that were left out of both
}

// pairs returns the pairs to learn and those to measure on.
func (r recipe) pairs() (d trainingData, err error) {
	if r.Data == "" {
		d.learn, d.test = seq2seq.DatesSplit(datesTrain, datesTest, r.Training.Seed)
		if r.Limit > 0 {
			d.learn = d.learn[:min(r.Limit, len(d.learn))]
		}
		d.unseen = true
		return d, nil
	}
	all, err := seq2seq.LoadPairs(r.Data)
	if err != nil {
		return d, err
	}
	if r.Limit > 0 {
		all = all[:min(r.Limit, len(all))]
	}
	before := len(all)
	all = slices.DeleteFunc(all, tooLong)
	d.tooLong = before - len(all)
	switch {
	case len(all) == 0:
		return d, input.Errorf(r.Data, "every pair is longer than %d bytes", longestText)
	case r.Valid != "":
		d.learn, d.unseen = all, true
		d.test, err = loadTest(r.Valid)
		return d, err
	}
	d.learn, d.test = holdOut(all)
	d.unseen = len(d.test) > 0
	if !d.unseen {
		d.test = all
	}
	return d, nil
}

// longestText is the number of bytes of the longest text that is translated.
// Attention takes memory with the square of the length; no sentence comes near.
const longestText = 4000

func tooLong(p seq2seq.Pair) bool { return max(len(p.Source), len(p.Target)) > longestText }

// loadTest returns pairs to measure on. To leave some out would make the figures
// look better than they are, so those that are too long are an error.
func loadTest(path string) ([]seq2seq.Pair, error) {
	pairs, err := seq2seq.LoadPairs(path)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(pairs, tooLong); i >= 0 {
		return nil, input.Errorf(path, "pair %d has a text of more than %d bytes", i+1, longestText)
	}
	return pairs, nil
}

// holdOut keeps every fiftieth source, at most 500, from training, with all
// its translations.
func holdOut(all []seq2seq.Pair) (train, valid []seq2seq.Pair) {
	const every, most = 50, 500
	sources, _ := seq2seq.Group(all)
	held := make(map[string]bool)
	for i := every - 1; i < len(sources) && len(held) < most; i += every {
		held[sources[i]] = true
	}
	for _, p := range all {
		if held[p.Source] {
			valid = append(valid, p)
		} else {
			train = append(train, p)
		}
	}
	return train, valid
}

// vocabularies cuts the texts of both languages into units.
func (r recipe) vocabularies(pairs []seq2seq.Pair) (source, target *seq2seq.Vocabulary) {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	return seq2seq.BuildVocabulary(sources, r.Units, r.VocabSize), seq2seq.BuildVocabulary(targets, r.Units, r.VocabSize)
}

// directory returns where a run goes if --out does not say.
func (f *recipeFlags) directory() string {
	if f.Data == nil {
		return filepath.Join("runs", "dates")
	}
	base := filepath.Base(*f.Data)
	return filepath.Join("runs", fmt.Sprintf("%s.run", strings.TrimSuffix(base, filepath.Ext(base))))
}
