package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// familyFixtures has a directory of each architecture whose layers, files or vectors differ from those of BERT and Llama,
// with the commands that refuse it, by their messages. All others work.
var familyFixtures = []struct {
	dir     string
	refused map[string]string
}{
	{"decoders/mamba2", decoderWithout("rollout", "")},
	{"decoders/falcon_h1", decoderWithout("rollout", "Mamba beside attention")},
	{"decoders/lfm2", decoderWithout("rollout", "has index 1, want 0")},
	{"decoders/granite_hybrid", decoderWithout()},
	{"decoders/qwen3_5", decoderWithout()},
	{"decoders/olmo_hybrid", decoderWithout()},
	{"decoders/ministral3", decoderWithout()},
	{"decoders/deepseek_v3", decoderWithout()},
	{"decoders/gemma4", decoderWithout()},
	{"decoders/gemma3n", decoderWithout()},
	{"decoders/gemma4_experts", decoderWithout()},
	{"decoders/diffllama", decoderWithout()},
	{"decoders/minicpm3", decoderWithout()},
	{"albert_words", encoderWithout("prune", "its layers share their parameters")},
	{"eurobert_words", encoderWithout("export", "cannot be exported")},
	{"gte_words", encoderWithout()},
	{"jina_v3_words", encoderWithout()},
	{"nomic_words", encoderWithout()},
	{"jina", encoderWithout("lens", "has no head", "scores", "has no head", "prune", "has no head")},
	{"nomic_moe", encoderWithout("lens", "has no head", "scores", "has no head", "prune", "has no head", "export", "mixtures of experts")},
	{"late_colbert", encoderWithout("rerank", "", "embed", "late interaction", "lens", "has no head", "scores", "has no head", "prune", "has no head", "export", "late interaction")},
	{"late_pylate", encoderWithout("rerank", "", "embed", "late interaction", "lens", "has no head", "scores", "late interaction", "prune", "late interaction", "export", "late interaction")},
	{"static_model2vec", notTransformer},
	{"static_table", notTransformer},
	{"reranker_score", decoderWithout("rerank", "", "embed", "module 1", "scores", "module 1", "prune", "module 1", "export", "module 1")},
}

// familyOutputs are parts of the output of commands on directories.
var familyOutputs = map[string]string{
	"prune of decoders/mamba2":         `(?m)^no compact +layers of Mamba-2 cannot have fewer heads`,
	"prune of decoders/falcon_h1":      `(?m)^compact model `,
	"prune of decoders/gemma3n":        `(?m)^no compact +layers of Gemma 3n cannot have fewer heads`,
	"models of decoders/mamba2":        `(?m)^width +12, without feed-forward networks$`,
	"models of decoders/falcon_h1":     `(?m)^layers +2: 2 of mamba beside attention$`,
	"models of late_colbert":           `(?m)^head +none: vectors of tokens, for late interaction$`,
	"models of late_pylate":            `(?m)^pipeline +Transformer, pylate.models.Dense.Dense\ntokenizer`,
	"models of static_table":           `(?m)^family +StaticEmbedding \(StaticEmbedding\), table\nwidth +5\ntext +of any length`,
	"models of reranker_score":         `(?m)^pipeline +Transformer, LogitScore\ntokenizer`,
	"map of decoders/falcon_h1":        `layer 1, head 3`,
	"mamba of decoders/falcon_h1":      `(?m)^mamba, layer 0, head 5$`,
	"scores of decoders/falcon_h1":     `(?m)^mamba +0 +5 +[^ ]+ +0\.`, // confidence is a share
	"scores of decoders/mamba2":        `(?m)^decoder +1 +5 +[^ ]+ +0\.`,
	"heads of decoders/granite_hybrid": `(?m)^decoder +0 +5 +- +- `,
}

// notTransformer are the messages for pipelines that begin with a table.
var notTransformer = encoderWithout("vectors", "StaticEmbedding", "embed", "", "map", "StaticEmbedding",
	"rollout", "StaticEmbedding", "heads", "StaticEmbedding", "examples", "StaticEmbedding", "scores", "StaticEmbedding", "prune", "StaticEmbedding", "run", "StaticEmbedding",
	"bench", "StaticEmbedding", "lens", "StaticEmbedding", "generate", "StaticEmbedding", "rerank", "StaticEmbedding", "classify", "StaticEmbedding",
	"translate", "StaticEmbedding", "export", "StaticEmbedding")

// decoderWithout returns what a decoder refuses, with pairs of commands and messages that differ; "" is no refusal.
func decoderWithout(pairs ...string) map[string]string {
	return without(map[string]string{"embed": "modules.json", "rerank": "is a decoder", "classify": "is a decoder|want a query",
		"translate": "want an encoder-decoder", "export": "cannot be exported"}, pairs)
}

func encoderWithout(pairs ...string) map[string]string {
	return without(map[string]string{"embed": "modules.json", "rerank": "want a head|want one for", "classify": "want a head|want one for",
		"translate": "want an encoder-decoder", "generate": "without a head for the next word"}, pairs)
}

func without(m map[string]string, pairs []string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// Each command works on each directory, or refuses it with one line that says why.
func TestFamilies(t *testing.T) {
	work := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(work, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var many strings.Builder
	for _, a := range []string{"the cat", "a dog", "it", "who", "the sun", "the runner"} {
		for _, b := range []string{"sat on the mat", "sleeps", "runs in the sun", "is on a mat", "runs", "and sat"} {
			fmt.Fprintln(&many, a, b)
		}
	}
	texts, lines := write("texts", "the cat sat on the mat\na dog sleeps\n"), write("many", many.String())
	found := write("found", `{"query": "who runs ?", "texts": ["the dog runs", "a cat"]}`+"\n")
	commands := []struct {
		name string
		args []string // behind the first, --model DIR is added
	}{
		{"models", []string{"models", "DIR"}},
		{"run", []string{"run", "--model", "DIR", "--out", filepath.Join(work, "run"), "the cat"}},
		{"generate", []string{"generate", "--model", "DIR", "--max-tokens", "2", "--context", "20", "the cat"}},
		{"embed", []string{"embed", "--model", "DIR", "--strict", texts}},
		{"vectors", []string{"embed", "--model", "DIR", "--strict", "--pooling", "mean", texts}},
		{"rerank", []string{"rerank", "--model", "DIR", "--strict", found}},
		{"classify", []string{"classify", "--model", "DIR", "--strict", texts}},
		{"translate", []string{"translate", "--model", "DIR", "the cat"}},
		{"map", []string{"map", "--model", "DIR", "--all", "the cat sat"}},
		{"mamba", []string{"map", "--model", "DIR", "--kind", "mamba", "--layer", "0", "--head", "5", "the cat sat"}},
		{"rollout", []string{"map", "--model", "DIR", "--rollout", "the cat sat"}},
		{"heads", []string{"heads", "--model", "DIR", "--sort", "same", "the cat sat"}},
		{"examples", []string{"heads", "--model", "DIR", "--examples", "sharp", "the cat sat"}},
		{"scores", []string{"heads", "--model", "DIR", "--data", texts, "--method", "gradient,confidence"}},
		{"lens", []string{"lens", "--model", "DIR", "--what", "zero,attribution", "--part", "head,query,key,value,pattern,residual,mlp", "the [MASK] sat"}},
		{"prune", []string{"prune", "--model", "DIR", "--out", "OUT", "--data", lines, "--share", "0.25", "--method", "gradient", "--resamples", "100"}},
		{"export", []string{"export", "--model", "DIR", "--onnx", filepath.Join(work, "onnx")}},
	}
	for i, f := range familyFixtures {
		dir := filepath.Join(work, filepath.Base(f.dir))
		if err := os.CopyFS(dir, os.DirFS("../../models/testdata/"+f.dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
			for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
				text, err := os.ReadFile("../../models/testdata/sentence_mean/" + name)
				if err != nil {
					t.Fatal(err)
				}
				write(filepath.Join(filepath.Base(dir), name), string(text))
			}
		}
		for _, c := range commands {
			if c.name == "mamba" && f.dir != "decoders/falcon_h1" {
				continue
			}
			small := filepath.Join(work, fmt.Sprint("pruned", i))
			var args []string
			for _, a := range c.args {
				args = append(args, strings.NewReplacer("DIR", dir, "OUT", small).Replace(a))
			}
			var out, messages bytes.Buffer
			code, want := run(t.Context(), args, console{in: strings.NewReader(""), out: &out, err: &messages}), f.refused[c.name]
			text := strings.TrimPrefix(messages.String(), "2 layers without weights: 0, 2\n")
			if part := familyOutputs[c.name+" of "+f.dir]; !regexp.MustCompile(part).MatchString(out.String()) {
				t.Errorf("%s of %s has no %q:\n%s", c.name, f.dir, part, out.String())
			}
			switch {
			case want == "" && code != exitOK:
				t.Errorf("%s of %s: exit code %d: %s", c.name, f.dir, code, text)
			case want == "" && c.name == "prune":
				command(t, "models", small) // it can be loaded
			case want != "" && (code == exitOK || strings.Count(text, "\n") != 1 || !regexp.MustCompile(want).MatchString(text)):
				t.Errorf("%s of %s: exit code %d, %q, want one line with %q", c.name, f.dir, code, text, want)
			}
		}
	}
}
