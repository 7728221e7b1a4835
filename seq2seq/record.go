package seq2seq

import (
	"errors"

	"github.com/attn-go/attn/heads"
)

// Record returns the attention weights of all heads while the decoder writes target
// from source: a run over both texts with all tokens at once. The rows of decoder and
// cross layers are the tokens written, row i for the step that wrote token i;
// the keys of decoder layers are the tokens read, from the start mark on.
//
// A layer that has lost all its heads is not in the record.
//
// Errors: o asks for nothing that is there; no layer has a head left.
func (m *Translator) Record(source, target string, o heads.RecorderOptions) (*heads.Record, error) {
	if m.Config.Heads > 0 && m.heads() == 0 {
		return nil, errors.New("the model has no attention heads left, so it has no weights to record")
	}
	src := m.encodeSource(source)
	read, write := m.encodeTarget(target)
	recorder := heads.NewRecorder(o)
	var watch hooks
	watch.observe, watch.inspect = recorder.Observers()
	m.net.read(nil, m.net.encode(nil, newBatch([][]int{src}), watch), read, len(read), watch)
	return recorder.Record(heads.Texts{
		Source: source, Target: target,
		SourceTokens: labels(m.Source, src), TargetTokens: labels(m.Target, write), ReadTokens: labels(m.Target, read),
		// What is unknown is text all the same.
		Special: []string{specialNames[Pad], specialNames[BOS], specialNames[EOS]},
	})
}

// labels returns the tokens of ids for people to read.
func labels(v *Vocabulary, ids []int) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = v.Token(id)
	}
	return list
}
