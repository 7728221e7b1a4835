"""Times effects of heads in plain PyTorch, as the benchmarks of package lens do in Go.

    python lens_peer.py DIRECTORY    of GPT-2 or Qwen2: random_decoder.py writes some

Nothing is computed twice: silencing begins at the layer of the head, from the kept states, with the heads of a layer as one
batch; at the last position, heads join one batch layer by layer. Edges (EAP-IG, 5 steps) are one product of differences and
gradients, with heads of keys as they are.
"""

import statistics
import sys
import time

import torch
import transformers

PLUS, MINUS = 65, 66


class Decoder:
    def __init__(self, directory):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        self.model.requires_grad_(False)
        c = self.model.config
        self.gpt2 = c.model_type == "gpt2"
        body = self.model.transformer if self.gpt2 else self.model.model
        self.blocks = body.h if self.gpt2 else body.layers
        self.norm = body.ln_f if self.gpt2 else body.norm
        self.outs = [b.attn.c_proj if self.gpt2 else b.self_attn.o_proj for b in self.blocks]
        self.heads = c.n_head if self.gpt2 else c.num_attention_heads
        self.groups = self.heads if self.gpt2 else c.num_key_value_heads
        self.width = c.hidden_size
        self.size = self.width // self.heads

    def metric(self, hidden):
        y = self.model.lm_head(hidden[:, -1:])[:, 0]
        return y[:, PLUS] - y[:, MINUS]

    def run(self, **x):
        y = self.model(**x, use_cache=False, logits_to_keep=1).logits[:, -1]
        return y[:, PLUS] - y[:, MINUS]

    def kept(self, ids):
        """The input and the arguments of each block."""
        inputs, hooks = [], []
        for b in self.blocks:
            hooks.append(b.register_forward_pre_hook(lambda m, a, k: inputs.append((a[0] if a else k.pop("hidden_states"), k)), with_kwargs=True))
        self.run(input_ids=ids)
        for h in hooks:
            h.remove()
        return inputs

    def block(self, i, x, arguments):
        y = self.blocks[i](x, **{k: v for k, v in arguments.items() if k != "hidden_states"})
        return y[0] if isinstance(y, tuple) else y

    @torch.no_grad()
    def silence(self, ids):
        inputs, rows = self.kept(ids), []
        keep = (1 - torch.eye(self.heads)).repeat_interleave(self.size, 1)[:, None]
        for i in range(len(self.blocks)):
            hook = self.outs[i].register_forward_pre_hook(lambda m, a: (a[0] * keep,))
            x = self.block(i, inputs[i][0].expand(self.heads, -1, -1), inputs[i][1])
            hook.remove()
            for j in range(i + 1, len(self.blocks)):
                x = self.block(j, x, inputs[j][1])
            rows.append(self.metric(self.norm(x[:, -1:])))
        return torch.stack(rows)

    def attribute(self, ids, other):
        values, others, hooks = [], [], []
        for o in self.outs:
            hooks.append(o.register_forward_pre_hook(lambda m, a: others.append(a[0])))
        with torch.no_grad():
            self.run(input_ids=other)
        for h in hooks:
            h.remove()

        def keep(m, a):
            a[0].retain_grad()
            values.append(a[0])

        hooks = [o.register_forward_pre_hook(keep) for o in self.outs]
        x = self.model.get_input_embeddings()(ids).detach().requires_grad_(True)
        self.run(inputs_embeds=x).sum().backward()
        for h in hooks:
            h.remove()
        parts = [((o - v.detach()) * v.grad).unflatten(-1, (self.heads, -1)).sum((0, 1, 3)) for v, o in zip(values, others)]
        return torch.stack(parts)

    def edges(self, clean, corrupted, steps=5):
        n, per = clean.shape[1], self.heads + 1
        sources = torch.zeros(1 + len(self.blocks) * per, n, self.width)
        embed = self.model.get_input_embeddings()
        for ids, sign in ((corrupted, 1), (clean, -1)):
            hooks = []
            for i, (b, o) in enumerate(zip(self.blocks, self.outs)):
                def heads(m, a, i=i):
                    w = (m.weight if self.gpt2 else m.weight.T).unflatten(0, (self.heads, -1))
                    sources[1 + i * per : per + i * per] += sign * torch.einsum("lhe,hed->hld", a[0][0].unflatten(-1, (self.heads, -1)), w)

                def mlp(m, a, y, i=i):
                    sources[per + i * per] += sign * y[0]

                hooks += [o.register_forward_pre_hook(heads), b.mlp.register_forward_hook(mlp)]
            with torch.no_grad():
                self.run(input_ids=ids)
            for h in hooks:
                h.remove()
            sources[0] += sign * embed(ids)[0].detach()
        reads = self.heads + 2 * self.groups + 1
        slopes = torch.zeros(len(self.blocks) * reads + 1, n, self.width)
        for k in range(steps):
            self.add_slopes(slopes, embed(corrupted).detach().lerp(embed(clean).detach(), k / steps).requires_grad_(True), reads)
        scores = torch.zeros(len(sources), len(slopes))
        for i in range(len(self.blocks) + 1):
            before, at = 1 + i * per + (self.heads if i < len(self.blocks) else 0), slice(i * reads, min((i + 1) * reads, len(slopes)))
            scores[:before, at] = sources[:before].flatten(1) @ slopes[at].flatten(1).T
        return scores / steps

    def add_slopes(self, slopes, x, reads):
        kept, hooks = {}, []

        def keep(name):
            def hook(m, a, y):
                y.retain_grad()
                kept[name] = (a[0].detach(), y)

            return hook

        for i, b in enumerate(self.blocks):
            maps = {"qkv": b.attn.c_attn} if self.gpt2 else {c: getattr(b.self_attn, c + "_proj") for c in "qkv"}
            maps |= {"n1": b.ln_1, "n2": b.ln_2} if self.gpt2 else {"n1": b.input_layernorm, "n2": b.post_attention_layernorm}
            hooks += [m.register_forward_hook(keep((name, i))) for name, m in maps.items()]
        hooks.append(self.norm.register_forward_hook(keep("last")))
        self.run(inputs_embeds=x).sum().backward()
        for h in hooks:
            h.remove()
        for i, b in enumerate(self.blocks):
            if self.gpt2:
                w = b.attn.c_attn.weight.T.unflatten(0, (3 * self.heads, -1))
                g = torch.einsum("lhe,hed->hld", kept["qkv", i][1].grad[0].unflatten(-1, (3 * self.heads, -1)), w)
                norms = b.ln_1, b.ln_2
            else:
                g = torch.cat([
                    torch.einsum("lhe,hed->hld", kept[c, i][1].grad[0].unflatten(-1, (-1, self.size)), getattr(b.self_attn, c + "_proj").weight.unflatten(0, (-1, self.size)))
                    for c in "qkv"])  # fmt: skip
                norms = b.input_layernorm, b.post_attention_layernorm
            at = i * reads
            slopes[at : at + reads - 1] += self.before(norms[0], kept["n1", i][0], g)
            slopes[at + reads - 1] += self.before(norms[1], kept["n2", i][0], kept["n2", i][1].grad[0])
        slopes[-1] += self.before(self.norm, kept["last"][0], kept["last"][1].grad[0])

    def before(self, norm, x, g):
        """The gradient before a norm of x."""
        x, g = x[0], g * norm.weight
        if self.gpt2:
            x = x - x.mean(-1, keepdim=True)
            r = (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
            g = g - g.mean(-1, keepdim=True)
        else:
            r = (x.square().mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()
        x = x * r
        return r * (g - x * (g * x).mean(-1, keepdim=True))


def main():
    torch.set_num_threads(2)
    d = Decoder(sys.argv[1])
    a = torch.tensor([[256] + [32 + i * 7 % 90 for i in range(63)]])
    b = torch.tensor([[256] + [32 + i * 11 % 90 for i in range(63)]])

    def run():
        with torch.no_grad():
            d.run(input_ids=a)

    for name, f, repeats in (("run", run, 9), ("silence each head", lambda: d.silence(a), 3), ("attribute each head", lambda: d.attribute(a, b), 5), ("edges", lambda: d.edges(a, b), 3)):
        f()
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            f()
            times.append(time.perf_counter() - begin)
        print(f"{name}: {statistics.median(times):.3f} s")


main()
