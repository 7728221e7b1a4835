package seq2seq

// Exercise returns work as translating gives it, for measuring speed: batch
// sources of so many tokens are read, and as many targets written, one token a
// step, whatever is likely.
func (m *Translator) Exercise(size, source, target int) func() {
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

// ExerciseStep returns the writing of one token of each of so many targets, after
// as many as given have been read and written.
func (m *Translator) ExerciseStep(size, source, written int) func() {
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
