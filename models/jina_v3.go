package models

import (
	"github.com/attn-go/attn"
)

// jinaV3Family is Jina Embeddings 3 as transformers 5 has it: RoBERTa with rotary positions and one map of queries, keys
// and values. Its adapters for tasks are not read.
//
// Source: Sturua et al., "jina-embeddings-v3: Multilingual Embeddings With Task LoRA", 2024,
// https://arxiv.org/abs/2409.10173; transformers' class JinaEmbeddingsV3Model.
var jinaV3Family = Family{
	Type: "jina_embeddings_v3", Name: "Jina Embeddings 3", New: newJinaV3, graph: true, Harmless: []string{"pad_token_id"},
}

func newJinaV3(b *Builder) Network {
	s, base := b.Config, b.Within("roberta")
	bothWays(s)
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 1)
	s.Only("head_dim", z.HeadSize)
	z.HeadSize = s.rotated("hidden_size", z.HeadSize)
	eps, act := s.Eps("layer_norm_eps", 1e-5), s.Activation("hidden_act", "gelu")
	names := encoderNames{
		norm: "emb_ln", layers: "encoder.layers", bias: attn.AllProjections,
		maps: Maps{QKV: "mixer.Wqkv", Out: "mixer.out_proj"}, selfNorm: "norm1", in: "mlp.fc1", out: "mlp.fc2", ffNorm: "norm2",
	}
	r := newRotation(s, z, 20000)
	names.position, z.Positions = r.position(b.tokens)
	e := names.encoder(base, z, 0, counting{}, eps, act, attn.Options{})
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), eps)
	return e
}
