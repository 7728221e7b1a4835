package seq2seq

import "github.com/attn-go/attn/internal/exercise"

func init() {
	exercise.Translate = func(m any, size, source, target int) func() {
		return m.(*Translator).exercise(size, source, target)
	}
	exercise.Step = func(m any, size, source, written int) func() {
		return m.(*Translator).exerciseStep(size, source, written)
	}
}

// exercise is exercise.Translate.
func (m *Translator) exercise(size, source, target int) func() {
	src, written := drill(size, source), drill(size, target)
	last := make([]int, size)
	return func() {
		s := m.net.encode(nil, src, hooks{})
		for i := range target {
			for b := range last {
				last[b] = written.ids[b*target+i]
			}
			_, s = decode(m.net, nil, s, last, 1, hooks{})
		}
	}
}

// exerciseStep is exercise.Step.
func (m *Translator) exerciseStep(size, source, written int) func() {
	s := m.net.encode(nil, drill(size, source), hooks{})
	_, s = m.net.read(nil, s, drill(size, written).ids, written, hooks{})
	last := drill(size, 1).ids
	return func() { decode(m.net, nil, s, last, 1, hooks{}) }
}

// drill returns sequences of a token that every vocabulary has.
func drill(size, length int) batch {
	sequences := make([][]int, size)
	for i := range sequences {
		sequences[i] = make([]int, length)
		for j := range sequences[i] {
			sequences[i][j] = EOS
		}
	}
	return newBatch(sequences)
}
