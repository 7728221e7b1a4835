package train

import (
	"encoding/binary"
	"io"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/safetensors"
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

// appendInt32s appends numbers below 2³¹, such as ids and lengths.
func appendInt32s(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}
