package main

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/apply"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
)

type applyCommand struct {
	In      string `required:"" help:"Safetensors file with q, k, v and the optional tensors listed above." placeholder:"FILE"`
	Out     string `required:"" help:"Safetensors file to write." placeholder:"FILE" writes:"file"`
	Weights bool   `help:"Also write the attention weights."`
	LSE     bool   `name:"lse" help:"Also write the log-sum-exp of each query's scores."`

	Score   string   `default:"scaled" enum:"${scores}" help:"${scores_or}." placeholder:"NAME" group:"Scores"`
	Scale   *float32 `help:"Scale of the scores, instead of the default; for ${scaled_and}." placeholder:"S" group:"Scores" want:"a finite number"`
	Softcap float32  `help:"Soft-cap the scores: C·tanh(score/C)." placeholder:"C" group:"Scores" want:"more than 0"`
	Alibi   bool     `help:"ALiBi: subtract slope·distance, with the slopes in the file or else the published ones." group:"Scores"`

	Rope         bool    `help:"RoPE: rotate queries and keys by their positions." group:"Positions"`
	RopeBase     float64 `help:"Base of the frequencies of --rope (default 10000)." placeholder:"N" group:"Positions" want:"more than 1" needs:"rope"`
	RopeSize     int     `help:"Rotate only the first N elements of each head (default all)." placeholder:"N" group:"Positions" want:"at least 2" needs:"rope"`
	RopeAdjacent bool    `help:"Rotate the pairs 2i and 2i+1 (GPT-J) instead of i and i+N/2 (Llama of Hugging Face)." group:"Positions" needs:"rope"`

	Causal    bool  `help:"Query i attends to key j only if j ≤ i + offset." group:"Masks"`
	Window    []int `help:"Query i attends only to keys at most N away from i + offset, or at most N before and M after it." placeholder:"N" group:"Masks" want:"at least 0"`
	Offset    *int  `help:"Offset of --causal and --window (default Lk − Lq)." placeholder:"N" group:"Masks" needs:"causal|window"`
	Sink      *int  `help:"With --window, every query also attends to the first N keys." placeholder:"N" group:"Masks" want:"at least 0" needs:"window" excludes:"offset"`
	Documents []int `help:"Ends of the documents packed into a sequence (exclusive); a query attends only to keys of the same document." placeholder:"N" group:"Masks" want:"at least 0"`

	Heads   int    `help:"Run a multi-head layer with H heads on [B L D] inputs." placeholder:"H" group:"Layer" want:"at least 1"`
	KVHeads int    `name:"kv-heads" help:"Number of key/value heads (default from the rows of k.weight)." placeholder:"G" group:"Layer" want:"at least 1" needs:"heads"`
	Layer   string `help:"Read the layer's parameters from this safetensors file, index or folder, with the names of PyTorch or of attn." placeholder:"FILE" group:"Layer" needs:"heads" reads:"tensors"`
	Prefix  string `help:"Prefix of the parameter names in --layer." placeholder:"TEXT" group:"Layer" needs:"layer"`
}

func (applyCommand) Help() string {
	return `Examples:

  attn apply --in x.safetensors --out y.safetensors --causal --weights
  attn apply --in x.safetensors --out y.safetensors --score additive
  attn apply --in layer.safetensors --out y.safetensors --heads 8
  attn apply --in x.safetensors --out y.safetensors --heads 8 \
    --layer model.safetensors --prefix encoder.layers.0.self_attn.

The input file contains q, k and v, each [B L E] or [B H L E], and optionally
mask (BOOL, true = may attend, broadcast to the scores), bias (added to the scores),
valid_lens ([B] or [B Lq] integers), documents (their ends, [N] or [B N] integers)
and sinks ([H], the score of a key without a value); with --alibi also slopes ([H]);
with --rope also q_positions and k_positions ([L] or [B L] integers). The scores and
their parameters:

` + apply.Scores() + `
With --heads, the parameters of the layer are read from the same file or from --layer:
q.weight, k.weight, v.weight and out.weight, each [out in], and the biases q.bias
and so on. In --layer they may also have the names of torch.nn.MultiheadAttention or
of most language models: q_proj, k_proj, v_proj, and o_proj or out_proj. An unknown
tensor in a file (in --layer: under the prefix) is an error.

The output file contains out; with --weights, weights; with --lse, lse; and if the
input has dout, dweights or dlse, the gradients d.q, d.k, d.v, d.bias, d.sinks and
d.NAME of each parameter NAME.`
}

// Validate is called by the parser.
func (cmd *applyCommand) Validate() error {
	scaled := apply.Scaled()
	switch {
	case cmd.Scale != nil && !slices.Contains(scaled, cmd.Score):
		return fmt.Errorf("--scale works only with the scores %s, not %s", listed(scaled, "and"), cmd.Score)
	case cmd.RopeSize%2 != 0:
		return fmt.Errorf("--rope-size %d, want an even number", cmd.RopeSize)
	case cmd.KVHeads > 0 && cmd.Heads%cmd.KVHeads != 0:
		return fmt.Errorf("--kv-heads %d, want a divisor of --heads %d", cmd.KVHeads, cmd.Heads)
	}
	return cmd.masks().Check()
}

func (cmd *applyCommand) masks() apply.Masks {
	return apply.Masks{Causal: cmd.Causal, Window: cmd.Window, Offset: cmd.Offset, Sink: cmd.Sink, Documents: cmd.Documents}
}

func (cmd *applyCommand) Run() error {
	kind, _ := score.Kinds().Find(cmd.Score)
	m := apply.Mechanism{
		Score: kind, Scale: cmd.Scale, SoftCap: cmd.Softcap, ALiBi: cmd.Alibi, Mask: cmd.masks().Mask(),
		Heads: cmd.Heads, KVHeads: cmd.KVHeads, Layer: cmd.Layer, Prefix: cmd.Prefix, Weights: cmd.Weights, LSE: cmd.LSE,
	}
	if cmd.Rope {
		c := position.RoPEConfig{Base: cmd.RopeBase, Size: cmd.RopeSize}
		if cmd.RopeAdjacent {
			c.Pairs = position.AdjacentPairs
		}
		var err error
		if m.Rope, err = position.NewRoPE(c); err != nil {
			return usage("--rope: %w", err)
		}
	}
	out, err := m.Run(cmd.In)
	if err != nil {
		return err
	}
	return out.WriteFile(cmd.Out)
}
