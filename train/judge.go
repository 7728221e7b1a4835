package train

import (
	"fmt"
	"slices"
)

// Metric is a measure of translations.
type Metric uint8

// The metrics, both in per cent.
const (
	MetricBLEU  Metric = iota // of the corpus; see CorpusBLEU
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
type Judged struct {
	counts []bleuCounts // one per sentence
	exact  []bool
}

// Judge compares translations[i] with all of references[i].
//
// Errors: as for CorpusBLEU.
func Judge(translations []string, references [][]string) (*Judged, error) {
	if err := checkCorpus("Judge", translations, references); err != nil {
		return nil, err
	}
	j := &Judged{counts: make([]bleuCounts, len(translations)), exact: make([]bool, len(translations))}
	for i, translation := range translations {
		j.counts[i].add(translation, references[i])
		j.exact[i] = slices.Contains(references[i], translation)
	}
	return j, nil
}

// Len returns the number of sentences.
func (j *Judged) Len() int { return len(j.counts) }

// Exact returns the fraction, 0 to 1, of translations that equal one of their references exactly.
func (j *Judged) Exact() float64 {
	s := j.all()
	return float64(s.exact) / float64(s.sentences)
}

// Value returns a metric in per cent, 0 to 100.
func (j *Judged) Value(m Metric) float64 {
	s := j.all()
	return s.value(m)
}

// all returns the sum over all sentences.
func (j *Judged) all() (s tally) {
	for i := range j.counts {
		s.add(j, i)
	}
	return s
}

// Sample returns a metric of a sample of sentences, given by their indexes, which may repeat.
func (j *Judged) Sample(m Metric, sentences []int) float64 {
	var s tally
	for _, i := range sentences {
		s.add(j, i)
	}
	return s.value(m)
}

// tally is the sum over some sentences.
type tally struct {
	bleu             bleuCounts
	exact, sentences int
}

func (s *tally) add(j *Judged, i int) {
	s.bleu.plus(&j.counts[i])
	if j.exact[i] {
		s.exact++
	}
	s.sentences++
}

func (s *tally) value(m Metric) float64 {
	if m == MetricExact {
		return 100 * (float64(s.exact) / float64(s.sentences))
	}
	return s.bleu.score().Score
}
