package train

import (
	"errors"
	"fmt"
)

// Metric is a measure of translations.
type Metric uint8

// The metrics, both in per cent.
const (
	MetricBLEU  Metric = iota // of the corpus, as sacrebleu computes it with its defaults
	MetricExact               // the percentage of translations that equal a reference exactly
)

var metricNames = [...]string{"BLEU", "exact match"}

// String returns "BLEU" or "exact match".
func (m Metric) String() string {
	if int(m) < len(metricNames) {
		return metricNames[m]
	}
	return fmt.Sprintf("Metric(%d)", m)
}

// Judged has the scores of the translations of some sources, sentence by sentence.
type Judged struct{ sentences []tally }

// Judge compares translations[i] with all of references[i].
//
// Errors: no translation, a different number of translations and of reference lists, a sentence without a reference.
func Judge(translations []string, references [][]string) (*Judged, error) {
	if len(translations) == 0 {
		return nil, errors.New("train: Judge: no translations")
	}
	if len(translations) != len(references) {
		return nil, fmt.Errorf("train: Judge: %d translations, but references for %d", len(translations), len(references))
	}
	j := &Judged{make([]tally, len(translations))}
	for i, translation := range translations {
		if len(references[i]) == 0 {
			return nil, fmt.Errorf("train: Judge: sentence %d has no reference", i)
		}
		j.sentences[i].add(translation, references[i])
	}
	return j, nil
}

// Len returns the number of sentences.
func (j *Judged) Len() int { return len(j.sentences) }

// Exact returns the fraction, 0 to 1, of translations that equal one of their references exactly.
func (j *Judged) Exact() float64 { return j.all().share() }

// Value returns a metric in per cent, 0 to 100.
func (j *Judged) Value(m Metric) float64 { return j.all().value(m) }

// all returns the sum over all sentences.
func (j *Judged) all() (sum tally) {
	for i := range j.sentences {
		sum.plus(&j.sentences[i])
	}
	return sum
}

// Sample returns a metric of a sample of sentences, given by their indexes, which may repeat.
func (j *Judged) Sample(m Metric, sentences []int) float64 {
	var sum tally
	for _, i := range sentences {
		sum.plus(&j.sentences[i])
	}
	return sum.value(m)
}

// share returns the fraction of exact sentences.
func (c tally) share() float64 { return float64(c.exact) / float64(c.sentences) }

func (c tally) value(m Metric) float64 {
	if m == MetricExact {
		return 100 * c.share()
	}
	return c.bleu()
}
