package train

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// ExamplesFile contains the pairs of a Trainer as ids, so that another program can train on them
// without a tokenizer:
//
//	ids      [N]    I32  source and target of each pair, concatenated, each with EOS at its end
//	lengths  [n 2]  I32  the number of ids of each source and each target
//
// The entry "data" of its metadata is the same hash as in TrainingFile.
const ExamplesFile = "examples.safetensors"

// Examples returns ExamplesFile, to be saved together with Files.
func (tr *Trainer) Examples() atomicfile.File {
	return atomicfile.File{Path: ExamplesFile, Write: func(w io.Writer) error {
		var ids, lengths []byte
		for _, e := range tr.examples {
			ids = appendInt32s(appendInt32s(ids, e.IDs...), e.Targets...)
			lengths = appendInt32s(lengths, len(e.IDs), len(e.Targets))
		}
		f := safetensors.File{
			Metadata: map[string]string{"data": tr.fingerprint()},
			Tensors: []safetensors.Tensor{
				{Name: "ids", DType: safetensors.I32, Shape: []int{len(ids) / 4}, Data: ids},
				{Name: "lengths", DType: safetensors.I32, Shape: []int{len(tr.examples), 2}, Data: lengths},
			},
		}
		return f.Write(w)
	}}
}

// preparedTrainer returns a trainer on the pairs of ExamplesFile.
func preparedTrainer(dir string, m *models.Model, s Settings) (*Trainer, error) {
	path := filepath.Join(dir, ExamplesFile)
	examples, err := readExamples(path, m.Sizes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run attn train --prepare again to write it", path, err)
	}
	return newTrainer(m, examples, s)
}

// readExamples reads an ExamplesFile. Trainer.Resume checks that its pairs are those of the run.
func readExamples(path string, z models.Sizes) (examples []models.Example, err error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	var numbers [2][]int
	for i, name := range []string{"ids", "lengths"} {
		x := file.Lookup(name)
		if x == nil {
			return nil, fmt.Errorf("has no tensor %s", name)
		}
		if numbers[i], err = x.Ints(); err != nil {
			return nil, err
		}
	}
	ids, lengths := numbers[0], numbers[1]
	// next returns the next text, whose ids must be below limit.
	next := func(limit int) (text []int, ok bool) {
		if len(lengths) == 0 || lengths[0] < 1 || lengths[0] > len(ids) {
			return nil, false
		}
		text, ids, lengths = ids[:lengths[0]], ids[lengths[0]:], lengths[1:]
		return text, slices.Min(text) >= 0 && slices.Max(text) < limit
	}
	for len(lengths) > 0 {
		source, ok := next(z.Vocabulary)
		target, also := next(z.Decoder.Vocabulary)
		if !ok || !also {
			return nil, fmt.Errorf("pair %d does not match the ids or the vocabulary", len(examples)+1)
		}
		reads := append([]int{seq2seq.BOS}, target[:len(target)-1]...)
		examples = append(examples, models.Example{IDs: source, Reads: reads, Targets: target})
	}
	if len(ids) > 0 {
		return nil, errors.New("has more ids than its lengths say")
	}
	return examples, nil
}

// appendInt32s appends numbers below 2³¹, such as ids and lengths.
func appendInt32s(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}
