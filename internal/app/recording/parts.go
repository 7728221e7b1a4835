package recording

import (
	"context"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// Parts divides the layers of a model for records of texts, so that the weights of no record take more than the given
// number of bytes if that is possible. It returns the number of records of each text. Record i, of text i/parts, has some
// of the layers; together the records of a text have all.
func Parts(
	m *models.Model, texts []models.Reading, bytes int64,
) (parts int, record func(ctx context.Context, i int) (*heads.Record, error)) {
	longest := 0
	for _, t := range texts {
		source, target := lengths(t)
		longest = max(longest, source, target)
	}
	layers := m.Attention()
	all := int64(len(layers)) * LayerBytes(m, longest)
	parts = int(min(int64(len(layers)), (all+bytes-1)/bytes))
	return parts, func(ctx context.Context, i int) (*heads.Record, error) {
		chosen := map[string]bool{}
		for n := i % parts; n < len(layers); n += parts {
			chosen[layers[n].Config().Name] = true
		}
		return probe.Record(ctx, texts[i/parts], heads.RecorderOptions{Layers: func(name string) bool { return chosen[name] }})
	}
}
