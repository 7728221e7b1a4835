package seq2seq

// TranslateWorkload returns a function that reads size sources of source tokens each and
// writes target tokens of each translation, one a step, whichever are likely: work of a
// fixed size, to measure speed.
func (m *Translator) TranslateWorkload(size, source, target int) func() {
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

// StepWorkload returns a function that writes one more token of each of size translations,
// after sources of source tokens and written tokens of each translation.
func (m *Translator) StepWorkload(size, source, written int) func() {
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
