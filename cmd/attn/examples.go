package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// taskText is a line of the data of a pretrained model.
type taskText struct {
	line          int
	first, second string
	label         string // of the text or the pair, where the model classifies
}

// pretrained is scored for a pretrained model.
func (f *scoredFlags) pretrained() (*scored, error) {
	m, texts, err := f.texts(f.Limit)
	if err != nil {
		return nil, err
	}
	examples, err := f.examples(m, texts)
	if err != nil {
		return nil, err
	}
	probe, err := models.NewProbe(m, examples)
	if err != nil {
		return nil, err
	}
	longest := 0
	for _, e := range examples {
		longest = max(longest, len(e.IDs))
	}
	parts, record := inParts(m, texts, longest, mostPretrained)
	return &scored{
		subject: probe,
		report:  reports.Importance{Model: f.Model, Data: f.Data, Task: string(m.Head().Task), Texts: len(texts)},
		parts:   parts, record: record,
	}, nil
}

// inParts returns how many records of each text there are to be, each of some layers, so that
// one of longest tokens takes no more than most bytes; and a function that makes them.
func inParts(m *models.Model, texts []taskText, longest, most int) (parts int, record func(i int) (*heads.Record, error)) {
	layers := m.Attention()
	parts = min(len(layers), (len(layers)*layerBytes(m, longest)+most-1)/most)
	return parts, func(i int) (*heads.Record, error) {
		text, chosen := texts[i/parts], map[string]bool{}
		for n := i % parts; n < len(layers); n += parts {
			chosen[layers[n].Config().Name] = true
		}
		return m.Record(text.first, text.second, heads.RecorderOptions{Layers: func(name string) bool { return chosen[name] }})
	}
}

// layerBytes returns how large the weights of a layer are for a text of n tokens.
func layerBytes(m *models.Model, n int) int { return 4 * m.Sizes().Heads * n * n }

// texts returns a pretrained model with a task, and at most most texts of --data.
func (f *scoredFlags) texts(most int) (*models.Model, []taskText, error) {
	d, err := models.Describe(f.Model, models.Options{})
	if err != nil {
		return nil, nil, err
	}
	labelled := false
	switch d.Task {
	case models.MaskedWords, models.NextWord:
	case models.TextClasses, models.NextSentence:
		labelled = true
	default:
		got := "has no head"
		if d.Task != "" {
			got = fmt.Sprintf("has a head for the %s", d.Task)
		}
		want := []any{models.MaskedWords, models.NextWord, models.TextClasses, models.NextSentence}
		return nil, nil, &seq2seq.InputError{Name: f.Model, Reason: got + fmt.Sprintf(", want one for %s, %s, %s or %s: heads are scored by its loss", want...)}
	}
	if d.Untokened != nil {
		return nil, nil, d.Untokened
	}
	if f.Data == "" {
		if labelled {
			return nil, nil, usage("--data is needed: a file with a text, or two, and a class on each line, with tabs between them")
		}
		return nil, nil, usage("--data is needed: a file with a text on each line")
	}
	texts, err := readTexts(f.Data, labelled, most)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.Load(f.Model, models.Options{})
	return m, texts, err
}

// examples returns what the model is to predict of texts.
func (f *scoredFlags) examples(m *models.Model, texts []taskText) ([]models.Example, error) {
	var list []models.Example
	for _, t := range texts {
		var e models.Example
		var err error
		if t.label != "" {
			e, err = m.LabelExample(t.first, t.second, t.label)
		} else {
			e, err = m.TextExample(t.first, rand.New(rand.NewPCG(f.Seed, uint64(t.line))))
		}
		if errors.As(err, new(*models.FormatError)) {
			return nil, err
		}
		if bytes := layerBytes(m, len(e.IDs)); err == nil && bytes > mostPretrained {
			err = fmt.Errorf("the text has %d tokens, and so %d MB of weights in a layer, want at most %d MB", len(e.IDs), bytes>>20, mostPretrained>>20)
		}
		if err != nil {
			return nil, &seq2seq.InputError{Name: f.Data, Line: t.line, Reason: err.Error()}
		}
		list = append(list, e)
	}
	return list, nil
}

// longestTaskText is in bytes, more than any model takes: a longer line is another kind of file.
const longestTaskText = 1 << 20

// readTexts reads at most most texts, one a line, with one or two tabs between a text, or
// two, and a label if they are labelled. Blank lines are skipped.
func readTexts(path string, labelled bool, most int) ([]taskText, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, &seq2seq.InputError{Name: path, Reason: "is a folder, want a file"}
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 1<<16), longestTaskText)
	var texts []taskText
	number := 0
	bad := func(format string, args ...any) ([]taskText, error) {
		return nil, &seq2seq.InputError{Name: path, Line: number, Reason: fmt.Sprintf(format, args...)}
	}
	for len(texts) < most && lines.Scan() {
		number++
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if !utf8.Valid(line) {
			return bad("invalid UTF-8")
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		t := taskText{line: number, first: text}
		if labelled {
			parts := strings.Split(text, "\t")
			for i, p := range parts {
				if parts[i] = strings.TrimSpace(p); parts[i] == "" {
					return bad("column %d is empty, want a text, or two, and a class", i+1)
				}
			}
			switch len(parts) {
			case 2:
				t.first, t.label = parts[0], parts[1]
			case 3:
				t.first, t.second, t.label = parts[0], parts[1], parts[2]
			default:
				return bad("has %s, want a text, or two, and a class, with tabs between them", reports.Counted(len(parts), "column", "columns"))
			}
		}
		texts = append(texts, t)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		number++
		return bad("line longer than %d bytes", longestTaskText)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(texts) == 0 {
		return nil, &seq2seq.InputError{Name: path, Reason: "no texts"}
	}
	return texts, nil
}
