//go:build !js || translator

package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/train"
)

func init() {
	handle("dates.open", openDates)
	handle("dates.look", lookAtDates)
	handle("dates.sample", sampleDate)
	handle("dates.measure", measureDates)
	handle("dates.importance", importanceOfDates)
	handle("dates.speed", speedOfDates)
}

// datesTask is the first command of the README: attn train.
func datesTask() task {
	r := train.DatesRecipe()
	return task{
		network: r.Network, settings: r.Training,
		build: func(c models.TranslatorConfig, seed uint64) (learn, test []seq2seq.Pair, m *models.Model, err error) {
			learn, test = train.DatesSplit(datesLearnt, datesMeasured, seed)
			source, target := train.Vocabularies(learn, r.Units, r.VocabSize)
			m, err = models.NewTranslator(c, source, target, rand.New(rand.NewPCG(seed, 0)))
			return learn, test, m, err
		},
	}
}

// The numbers of dates that attn train learns, and measures with.
const (
	datesLearnt   = 10_000
	datesMeasured = 1_000
)

// shippedFiles are the model of attn train, its weights in float16. TestShipped -update trains it again.
//
//go:embed dates/pieces.json dates/model.safetensors
var shippedFiles embed.FS

// datesModel is the shipped model, with its dates to measure on.
type datesModel struct {
	*models.Model
	test []seq2seq.Pair
}

var shipped = sync.OnceValues(func() (*datesModel, error) {
	data, err := shippedFiles.ReadFile("dates/pieces.json")
	if err != nil {
		return nil, err
	}
	var pieces [2][]string // of the vocabularies: a program that reads no tokenizer is smaller
	if err := json.Unmarshal(data, &pieces); err != nil {
		return nil, err
	}
	var sides [2]*seq2seq.Vocabulary
	for i := range sides {
		if sides[i], err = seq2seq.NewVocabulary(train.DatesRecipe().Units, pieces[i], nil); err != nil {
			return nil, err
		}
	}
	m, err := models.NewTranslator(datesTask().network, sides[0], sides[1], rand.New(rand.NewPCG(0, 0)))
	if err != nil {
		return nil, err
	}
	data, err = shippedFiles.ReadFile("dates/model.safetensors")
	if err != nil {
		return nil, err
	}
	weights, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	if err := statedict.LoadFrom(weights, m, statedict.LoadOptions{}); err != nil {
		return nil, err
	}
	_, test := train.DatesSplit(0, datesMeasured, train.DatesRecipe().Training.Seed)
	return &datesModel{m, test}, nil
})

// choice is the shipped model without some heads.
type choice struct {
	Off []prune.Head `json:"off"` // heads that are switched off
}

// model returns the shipped model without the heads that are off, and new dates.
func (c choice) model() (*models.Model, []seq2seq.Pair, error) {
	m, err := shipped()
	if err != nil {
		return nil, nil, err
	}
	if len(c.Off) == 0 {
		return m.Model, m.test, nil
	}
	kept := map[string][]int{}
	for _, l := range m.Attention() {
		z := l.Config()
		kept[z.Name] = []int{}
		for h := range z.Heads {
			if !slices.Contains(c.Off, prune.Head{Layer: z.Name, Number: h}) {
				kept[z.Name] = append(kept[z.Name], h)
			}
		}
	}
	small, err := m.Keep(kept)
	return small, m.test, err
}

// openDates describes the shipped model.
func openDates(context.Context, struct{}, func(any)) (any, error) {
	m, err := shipped()
	if err != nil {
		return nil, err
	}
	type layer struct {
		Name  string `json:"name"`
		Heads int    `json:"heads"`
	}
	var layers []layer
	for _, l := range m.Attention() {
		layers = append(layers, layer{l.Config().Name, l.Config().Heads})
	}
	return map[string]any{"layers": layers}, nil
}

// lookAtDates translates a date and returns the weights of all heads that are on.
func lookAtDates(ctx context.Context, o struct {
	choice
	Text string `json:"text"`
}, _ func(any)) (any, error) {
	m, _, err := o.model()
	if err != nil {
		return nil, err
	}
	return look(ctx, m, o.Text, "")
}

// sampleDate returns a date that the model has not been trained on, with its translation.
func sampleDate(_ context.Context, o struct {
	Number int `json:"number"`
}, _ func(any)) (any, error) {
	m, err := shipped()
	if err != nil {
		return nil, err
	}
	n := len(m.test)
	p := m.test[(o.Number%n+n)%n]
	return map[string]string{"source": p.Source, "target": p.Target}, nil
}

// measured is a choice, and the number of new dates to measure it on.
type measured struct {
	choice
	Dates int `json:"dates"`
}

func (o measured) model() (*models.Model, []seq2seq.Pair, error) {
	m, test, err := o.choice.model()
	if err != nil {
		return nil, nil, err
	}
	if o.Dates < 1 || o.Dates > len(test) {
		return nil, nil, fmt.Errorf("%d dates, want 1 to %d", o.Dates, len(test))
	}
	return m, test[:o.Dates], nil
}

// measureDates measures the chosen model on new dates. Its frames count the dates that are done.
func measureDates(ctx context.Context, o measured, frame func(any)) (any, error) {
	m, test, err := o.model()
	if err != nil {
		return nil, err
	}
	total, sum := quality{}, 0.
	const part = 50 // about a tenth of a second
	for from := 0; from < len(test); from += part {
		pairs := test[from:min(from+part, len(test))]
		q, err := measure(ctx, m, pairs)
		if err != nil {
			return nil, err
		}
		total.Texts += q.Texts
		total.Exact += q.Exact
		sum += float64(float64(q.Loss) * float64(len(pairs))) // all dates have the same number of tokens
		total.Loss = real(sum / float64(from+len(pairs)))
		frame(total)
		pause()
	}
	return total, ctx.Err()
}

// headScore is the importance of a head.
type headScore struct {
	prune.Head
	Score real `json:"score"`
}

// importanceOfDates returns the importance of the heads of the whole model, and the order in which they are removed.
func importanceOfDates(ctx context.Context, o struct {
	measured
	Method string `json:"method"` // a name of prune.Methods
	Again  bool   `json:"again"`  // the order is that of removing one head after another, each with new scores
}, frame func(any)) (any, error) {
	o.Off = nil
	method, err := prune.ParseMethod(o.Method)
	if err != nil {
		return nil, err
	}
	m, test, err := o.model()
	if err != nil {
		return nil, err
	}
	whole, err := train.Probe(m, test)
	if err != nil {
		return nil, err
	}
	r, err := prune.Heads(ctx, whole, prune.Options[*probe.Probe]{
		Method: method, Step: 1, Rescore: o.Again, EmptyLayers: true,
		Importance: prune.ImportanceOptions{Progress: func(done, all int) {
			frame(map[string]int{"done": done, "all": all})
			pause()
		}},
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	var list []headScore
	for _, l := range whole.Layers() {
		for h, s := range r.Scores[0].Values[l.Name] {
			list = append(list, headScore{prune.Head{Layer: l.Name, Number: h}, real(s)})
		}
	}
	seconds := 0.
	for _, round := range r.Scores {
		seconds += round.Time.Seconds()
	}
	return map[string]any{"heads": list, "order": r.Removed, "seconds": seconds}, nil
}

// speed compares the whole model with the chosen one.
type speed struct {
	Parameters      int     `json:"parameters"`
	WholeParameters int     `json:"wholeParameters"`
	Seconds         float64 `json:"seconds"` // for one date, the median of several turns
	// Faster is how many times as fast the chosen model was: the median of the turns, and the least and the most of
	// the middle half.
	Faster [3]float64 `json:"faster"`
}

// speedOfDates measures how long the chosen model and the whole one take for a batch of dates, in turns.
func speedOfDates(ctx context.Context, o measured, frame func(any)) (any, error) {
	small, test, err := o.model()
	if err != nil {
		return nil, err
	}
	whole, err := shipped()
	if err != nil {
		return nil, err
	}
	sources, _ := train.Group(test)
	const turns = 11
	var times [2][]float64
	for turn := range turns + 1 { // the first one warms up
		for i, m := range []*models.Model{small, whole.Model} {
			start := time.Now()
			if _, err := m.Translate(ctx, sources, 1); err != nil {
				return nil, err
			}
			if turn > 0 {
				times[i] = append(times[i], time.Since(start).Seconds()/float64(len(sources)))
			}
			pause()
		}
		frame(map[string]int{"done": turn, "all": turns})
	}
	faster := make([]float64, turns)
	for i := range faster {
		faster[i] = times[1][i] / times[0][i]
	}
	slices.Sort(faster)
	slices.Sort(times[0])
	return speed{nn.Count(small), nn.Count(whole), times[0][turns/2], [3]float64{faster[turns/2], faster[turns/4], faster[turns-1-turns/4]}}, nil
}
