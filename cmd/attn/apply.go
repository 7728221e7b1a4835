package main

import "github.com/attn-go/attn/internal/app/apply"

type applyCommand struct {
	In  string `required:"" help:"Safetensors file with q, k, v and the optional tensors listed above." placeholder:"FILE"`
	Out string `required:"" help:"Safetensors file to write." placeholder:"FILE" writes:"file"`
	apply.Mechanism
}

func (applyCommand) Help() string {
	return `Examples:

  attn apply --in x.safetensors --out y.safetensors --causal --weights
  attn apply --in x.safetensors --out y.safetensors --score additive
  attn apply --in x.safetensors --out y.safetensors --rule gated_delta
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

With --rule, attention has no softmax: a state is the sum of key ⊗ value over the tokens
so far, and each query reads it. The rule says what a token does to the state; ONNX's
operator LinearAttention has the same names. decay is in logarithms, [B L], [B L E],
[B G L], [B G L E], or [G] for a constant per head; beta is [B L] or [B G L]:

  linear       S + k⊗v
  gated        exp(decay)·S + k⊗v
  delta        S + beta·k⊗(v − Sᵀk)
  gated_delta  exp(decay)·S + beta·k⊗(v − exp(decay)·Sᵀk)

The input may also contain state ([B E V] or [B G E V], before the first token),
valid_lens ([B]) and documents, at each of which the state begins again with 0. The
output file contains out and the last state; with --weights, weights, which are signed
and need not sum to 1; and if the input has dout or dstate, the gradients d.q, d.k, d.v,
d.decay, d.beta and d.state (of the input).

Without --rule, the output file contains out; with --weights, weights; with --lse, lse;
and if the input has dout, dweights or dlse, the gradients d.q, d.k, d.v, d.bias,
d.sinks and d.NAME of each parameter NAME. attn map and attn view draw the weights
of one sequence: attn map --weights y.safetensors.`
}

func (cmd *applyCommand) Run() error {
	out, err := cmd.Mechanism.Run(cmd.In)
	if err != nil {
		return err
	}
	return out.WriteFile(cmd.Out)
}
