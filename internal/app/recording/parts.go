package recording

import (
	"context"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
)

// Parts divides the layers of a model for records of texts, each text a pair with an optional second text,
// so that the weights of no record take more than the given number of bytes if that is possible. It
// returns the number of records of each text. Record i, of text i/parts, has some of the layers; together
// the records of a text have all.
//
// Errors: a text that the model cannot read, or that does not fit by Fits.
func Parts(
	m *models.Model, texts [][2]string, bytes int64,
) (parts int, record func(ctx context.Context, i int) (*heads.Record, error), err error) {
	longest := 0
	for _, t := range texts {
		source, target, err := Lengths(m, t[0], t[1])
		if err != nil {
			return 0, nil, err
		}
		longest = max(longest, source, target)
	}
	if err := Fits(m, longest); err != nil {
		return 0, nil, err
	}
	layers := m.Attention()
	all := int64(len(layers)) * LayerBytes(m, longest)
	parts = int(min(int64(len(layers)), (all+bytes-1)/bytes))
	return parts, func(ctx context.Context, i int) (*heads.Record, error) {
		text, chosen := texts[i/parts], map[string]bool{}
		for n := i % parts; n < len(layers); n += parts {
			chosen[layers[n].Config().Name] = true
		}
		return m.Record(ctx, text[0], text[1], heads.RecorderOptions{Layers: func(name string) bool { return chosen[name] }})
	}, nil
}
