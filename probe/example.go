package probe

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// TextExample returns an example of a text for a head that predicts words. A decoder predicts each
// token after the first. An encoder predicts 15% of the text's tokens, at least one, which rng
// draws: it reads its mask token instead of them.
//
// Differs: in BERT's training, a tenth of these tokens is unchanged, and another token replaces a
// tenth. Here all are masked.
//
// Errors: those of Encode; a model with another head or, for masked words, whose tokenizer
// has no mask token; a text without anything to predict.
func TextExample(m *models.Model, text string, rng *rand.Rand) (Example, error) {
	task := task(m)
	switch {
	case m.Sizes().Decoder != nil:
		return Example{}, fmt.Errorf("probe: TextExample: %s is an encoder-decoder, want an encoder or a decoder; use TranslationExample", m.Family.Name)
	case task != models.MaskedWords && task != models.NextWord:
		return Example{}, fmt.Errorf("probe: TextExample: the head is for %s, want %s or %s", task, models.MaskedWords, models.NextWord)
	}
	e, err := m.Encode(text, "")
	if err != nil {
		return Example{}, err
	}
	x := exampleOf(e)
	x.Targets = slices.Repeat([]int{Ignore}, len(x.IDs))
	if task == models.NextWord {
		if len(x.IDs) < 2 {
			return Example{}, errors.New("the text has 1 token, want two or more: the first is not predicted")
		}
		copy(x.Targets, x.IDs[1:])
		return x, nil
	}
	mask, err := m.MaskToken()
	if err != nil {
		return Example{}, err
	}
	var places []int
	for i, special := range e.Special {
		if !special {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return Example{}, errors.New("the text has no tokens, want one or more")
	}
	rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, at := range places[:max(1, int(math.Round(0.15*float64(len(places)))))] {
		x.Targets[at], x.IDs[at] = x.IDs[at], mask
	}
	return x, nil
}

// LabelExample returns an example of a text, or of a pair of texts if second is not empty,
// for a head that classifies texts. label is the name of a class in config.json.
//
// Errors: those of Encode; a model with another head, with fewer than two classes, or with a
// problem_type in config.json other than single_label_classification; an unknown label.
func LabelExample(m *models.Model, first, second, label string) (Example, error) {
	task := task(m)
	if task != models.TextClasses && task != models.NextSentence {
		return Example{}, fmt.Errorf("probe: LabelExample: the head is for %s, want %s or %s", task, models.TextClasses, models.NextSentence)
	}
	const one = "single_label_classification"
	if problem := m.Settings.Text("problem_type", one); problem != one || len(m.Head().Labels) < 2 {
		return Example{}, &models.FormatError{Path: filepath.Join(m.Dir, "config.json"), Err: fmt.Errorf("has problem_type %s and %d classes, want %s and two or more", quote.Text(problem), len(m.Head().Labels), one)}
	}
	class := slices.Index(m.Head().Labels, label)
	if class < 0 {
		return Example{}, fmt.Errorf("label %s, want one of %s", quote.Text(label), quote.Texts(m.Head().Labels))
	}
	e, err := m.Encode(first, second)
	if err != nil {
		return Example{}, err
	}
	x := exampleOf(e)
	x.Targets = []int{class}
	return x, nil
}

// TranslationExample returns an example of a source and its target for an encoder–decoder, which
// predicts each token of the target, including its end, from the tokens before it.
//
// Errors: those of Encode for both texts; a model of another kind; a target without tokens.
func TranslationExample(m *models.Model, source, target string) (Example, error) {
	if m.Sizes().Decoder == nil {
		return Example{}, fmt.Errorf("probe: TranslationExample: %s is not an encoder-decoder; use TextExample", m.Family.Name)
	}
	r, err := ReadTarget(m, source, target)
	if err != nil {
		return Example{}, err
	}
	x, err := r.Batch()
	if err != nil {
		return Example{}, err
	}
	return Example{IDs: x.IDs[0], Reads: x.Targets[0], Targets: r.Target.IDs}, nil
}

// exampleOf returns the tokens of a text.
func exampleOf(e *tokenizer.Encoding) Example {
	x := models.BatchOf(e)
	return Example{IDs: x.IDs[0], Types: x.Types[0]}
}

// task returns the task of the head, "nothing" if there is none.
func task(m *models.Model) models.Task {
	if h := m.Head(); h != nil {
		return h.Task
	}
	return "nothing"
}
