package train

import (
	"encoding/binary"
	"io"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/safetensors"
)

// ExamplesFile holds the pairs of a Trainer as numbers, so that another program can train
// on them without cutting texts into pieces:
//
//	ids      [N]    I32  source and target of each pair, one behind the other, each with EOS at its end
//	lengths  [n 2]  I32  how many of these are the source's, and the target's
//
// Its metadata have in "data" the hash that is in those of TrainingFile as well.
const ExamplesFile = "examples.safetensors"

// Examples returns ExamplesFile, for who saves it with Files.
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

// appendInt32s appends numbers below 2³¹, as ids and lengths of texts are.
func appendInt32s(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}
