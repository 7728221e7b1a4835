package main

import (
	"context"

	"github.com/attn-go/attn/internal/app/trace"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
)

type runCommand struct {
	Model      string  `required:"" help:"Directory of a model." placeholder:"DIR"`
	Out        string  `required:"" help:"Safetensors file to write." placeholder:"FILE" writes:"file"`
	IDs        []int   `name:"ids" help:"Comma-separated token ids, instead of a text." placeholder:"N" either:"input"`
	In         string  `name:"in" help:"Safetensors file with input_ids, instead of a text." placeholder:"FILE" either:"input"`
	DecoderIDs []int   `name:"decoder-ids" help:"Token ids for the decoder of an encoder-decoder (default its start token)." placeholder:"N" excludes:"in"`
	Pair       *string `help:"Second text of a pair." placeholder:"TEXT" needs:"text"`
	formatFlag
	Text *string `arg:"" optional:"" help:"Text to run the model on." either:"input"`
}

func (runCommand) Help() string {
	return `Examples:

  attn run --model bert-base-uncased --out y.safetensors "Attention is all you need"
  attn run --model bert-base-uncased --out y.safetensors --ids 101,7592,102
  attn run --model bert-base-uncased --out y.safetensors --in ids.safetensors
  attn run --model t5-small --out y.safetensors --ids 13959,1566,1 --decoder-ids 0,644

The output file has the tensors for a comparison with another framework: input_ids and
token_type_ids [B L]; logits, if the model has a head; hidden.0, the embeddings, and
hidden.1 to hidden.N [B L D]; weights.0 to weights.N-1 [B H L L], each row a query.
A layer without attention, such as a convolution, has no weights; those of Mamba-2 beside attention
are mamba.0 and so on.

For an encoder-decoder, these tensors are the encoder's, except logits, which are the
decoder's. The file also has decoder_input_ids [B M]; decoder_hidden.0 to decoder_hidden.N
[B M D]; the decoder's self-attention weights decoder.0 and so on [B H M M]; and the
cross-attention weights cross.0 and so on [B H M L]. --in may then contain
decoder_input_ids, [M] or [B M], and decoder_attention_mask.

--in contains input_ids, [L] or [B L] integers, and optionally token_type_ids of the same
shape. For texts of different lengths, it also contains attention_mask of the same shape:
1 for tokens, 0 for the padding after them. Results at padding are written as 0.`
}

func (cmd *runCommand) Run(ctx context.Context, c console) error {
	m, err := load(c, models.Load, cmd.Model, cmd.options())
	if err != nil {
		return err
	}
	x, name, err := cmd.batch(m)
	if err != nil {
		return err
	}
	if err := m.Sizes().Check(x); err != nil {
		return &input.Error{Name: name, Err: err}
	}
	file, err := trace.Run(ctx, m, x)
	if err != nil {
		return err
	}
	return file.WriteFile(cmd.Out)
}

// batch returns the tokens to run on, and the name of their source.
func (cmd *runCommand) batch(m *models.Model) (x models.Batch, name string, err error) {
	switch {
	case cmd.In != "":
		x, err = trace.ReadBatch(cmd.In)
		return x, cmd.In, err
	case cmd.Text == nil:
		x, name = models.Batch{IDs: [][]int{cmd.IDs}}, "--ids"
		if cmd.DecoderIDs != nil {
			x.Targets, name = [][]int{cmd.DecoderIDs}, "--ids and --decoder-ids"
		}
		return x, name, nil
	}
	if _, err := m.Tokenizer(); err != nil {
		return x, "", err
	}
	e, err := m.Encode(*cmd.Text, deref(cmd.Pair))
	if err != nil {
		return x, "", &input.Error{Name: "argument", Err: err}
	}
	x = models.BatchOf(e)
	if cmd.DecoderIDs == nil {
		return x, "argument", nil
	}
	if x.Targets = [][]int{cmd.DecoderIDs}; m.Sizes().Decoder != nil {
		x.Types = nil
	}
	return x, "--decoder-ids", nil
}
