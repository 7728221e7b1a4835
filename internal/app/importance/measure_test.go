package importance

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

// TestInParts measures heads by records of all layers, and by a record for each layer, as
// where the weights of all do not go into one.
func TestInParts(t *testing.T) {
	m, err := models.Load("../../../models/testdata/sentence_dense", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	var texts []probe.Reading
	for _, t2 := range [][2]string{{"the cat sat on the mat"}, {"a dog", "the sun"}} {
		in, err := recording.Read(m, t2[0], t2[1])
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, in)
	}
	var measured [2]string
	for i, most := range []int64{1 << 20, 1000} {
		parts, record := recording.Parts(m, texts, most)
		if parts != 1+i {
			t.Errorf("%d parts, want %d", parts, 1+i)
		}
		layers := Layers(prune.Layers(m.Attention()))
		if err := measure(context.Background(), parts*len(texts), record, layers, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(layers)
		if err != nil {
			t.Fatal(err)
		}
		measured[i] = string(data)
	}
	if measured[0] != measured[1] {
		t.Errorf("in parts:\n%s\nwant\n%s", measured[1], measured[0])
	}
}
