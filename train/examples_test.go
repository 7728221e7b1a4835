package train

import (
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// The pairs of a trainer as ids, for another program.
func TestExamplesFile(t *testing.T) {
	pairs := toyPairs(7)
	m := newToy(t, headed()[0], pairs)
	tr := newToyTrainer(t, m, pairs, toySettings(1))
	var b strings.Builder
	if err := tr.Examples().Write(&b); err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Metadata["data"]; got != tr.fingerprint() {
		t.Errorf("hash %q, want %q", got, tr.fingerprint())
	}
	ids, err := file.Lookup("ids").Ints()
	if err != nil {
		t.Fatal(err)
	}
	lengths, err := file.Lookup("lengths").Ints()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range pairs {
		for side, want := range []string{p.Source, p.Target} {
			n := lengths[2*i+side]
			v, err := m.Tokenizer()
			if err != nil {
				t.Fatal(err)
			}
			if side == 1 {
				v = v.Target()
			}
			if got := v.Decode(ids[:n]); got != want || ids[n-1] != seq2seq.EOS {
				t.Errorf("pair %d: %q, then %d; want %q and the end mark", i, got, ids[n-1], want)
			}
			ids = ids[n:]
		}
	}
	if len(ids) > 0 {
		t.Errorf("%d ids more", len(ids))
	}
}
