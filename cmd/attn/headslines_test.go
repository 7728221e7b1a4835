package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/pruning/reports"
)

// For any number of shards, attn heads computes from their sums the same bits as from all pairs
// at once.
func TestHeadsOfShards(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: many processes")
	}
	const methods = "leave-one-out,gradient,fisher,confidence"
	dir := makePairs(t)
	data := filepath.Join(dir, "pairs.tsv")
	model, other := filepath.Join(dir, "model"), filepath.Join(dir, "other")
	for out, seed := range map[string]string{model: "1", other: "2"} {
		command(t, append([]string{"train", "--data", data, "--heads", "2", "--seed", seed, "--out", out}, small...)...)
	}
	// found returns the output that must be equal.
	found := func(args ...string) string {
		var r reports.Importance
		if err := json.Unmarshal([]byte(command(t, append([]string{"heads", "--model", model, "--json"}, args...)...)), &r); err != nil {
			t.Fatal(err)
		}
		if r.Texts != 60 || len(r.Scores) == 0 || r.Layers[0].Measures == nil {
			t.Fatalf("%d texts, %d methods, measures %v", r.Texts, len(r.Scores), r.Layers[0].Measures)
		}
		r.Data = ""
		for i := range r.Scores {
			r.Scores[i].Passes, r.Scores[i].Seconds = 0, 0
		}
		text, err := json.MarshalIndent(r, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := found("--data", data, "--method", "leave-one-out,gradient,fisher,weight-norm,confidence")
	normalized := found("--data", data, "--method", "gradient,confidence", "--normalize")
	sums := filepath.Join(dir, "sums.json")
	var first string
	for _, n := range []int{1, 2, 7} {
		out := filepath.Join(dir, fmt.Sprint("shards", n))
		command(t, "shards", "--input", data, "--output", out, "--shards", fmt.Sprint(n), "heads", "--model", model, "--per-line", "--method", methods)
		merged := command(t, "shards", "--output", out, "--merge", "--sums")
		if first == "" {
			first = merged
		}
		if merged != first {
			t.Errorf("sums of %d shards are not those of one", n)
		}
		if err := os.WriteFile(sums, []byte(merged), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := found("--sums", sums); got != want {
			t.Errorf("%d shards: %s\nwant %s", n, got, want)
		}
	}
	if got := found("--sums", sums, "--method", "gradient,confidence", "--normalize"); got != normalized {
		t.Errorf("normalized: %s\nwant %s", got, normalized)
	}

	plain := filepath.Join(dir, "plain")
	command(t, "shards", "--input", data, "--output", plain, "--shards", "2", "heads", "--model", model, "--per-line")
	measures := filepath.Join(dir, "measures.json")
	os.WriteFile(measures, []byte(command(t, "shards", "--output", plain, "--merge", "--sums")), 0o644)
	command(t, "heads", "--model", model, "--sums", measures) // of importance, what needs no data
	losses := filepath.Join(dir, "losses")
	command(t, "shards", "--input", data, "--output", losses, "--shards", "2", "eval", "--model", model, "--per-line", "--json")
	nats := filepath.Join(dir, "nats.json")
	os.WriteFile(nats, []byte(command(t, "shards", "--output", losses, "--merge", "--sums")), 0o644)
	// broken writes the sums with a list of numbers that is too short.
	broken := func(keys ...string) string {
		var file map[string]any
		if err := json.Unmarshal([]byte(first), &file); err != nil {
			t.Fatal(err)
		}
		at := file
		for _, key := range keys[:len(keys)-1] {
			at = at[key].(map[string]any)
		}
		last := keys[len(keys)-1]
		at[last] = at[last].([]any)[:1]
		data, err := json.Marshal(file)
		path := filepath.Join(dir, "broken "+strings.Join(keys, " ")+".json")
		if err = errors.Join(err, os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitInput, "has entropy of 1 heads of encoder.0.self, want 2", []string{"--model", model, "--sums", broken("means", "encoder.0.self", "entropy")}},
		{exitInput, "has gradient of 1 heads of encoder.0.self, and 2 counts, want 2 of both",
			[]string{"--model", model, "--sums", broken("sums", "importance", "gradient", "sums", "encoder.0.self")}},
		{exitInput, "has gradient of 2 heads of encoder.0.self, and 1 counts, want 2 of both",
			[]string{"--model", model, "--sums", broken("sums", "importance", "gradient", "counts", "encoder.0.self")}},
		{exitInput, "sums.json: was made with model ", []string{"--model", other, "--sums", sums}},
		{exitInput, "measures.json: has no gradient, want the lines of attn heads --per-line with --method gradient", []string{"--model", model, "--sums", measures, "--method", "gradient"}},
		{exitInput, "nats.json: has no measures of encoder.0.self, want the lines of attn heads --per-line", []string{"--model", model, "--sums", nats}},
		{exitInput, "pairs.tsv: is not what attn shards --merge --sums writes", []string{"--model", model, "--sums", data}},
		{exitInput, "nowhere: no such file", []string{"--model", model, "--sums", filepath.Join(dir, "nowhere")}},
		{exitUsage, "--sums and --data cannot be used together", []string{"--model", model, "--sums", sums, "--data", data}},
		{exitUsage, "--method taylor cannot be used with --per-line, want any of leave-one-out, gradient, fisher, confidence", []string{"--model", model, "--per-line", "--method", "gradient,taylor"}},
		{exitUsage, "--per-line and --normalize cannot be used together", []string{"--model", model, "--per-line", "--normalize"}},
		{exitUsage, "would overwrite", []string{"--model", model, "--sums", sums, "--svg", sums}},
	} {
		var out, messages bytes.Buffer
		code := run(t.Context(), append([]string{"heads"}, c.args...), console{in: strings.NewReader(""), out: &out, err: &messages})
		if text := messages.String(); code != c.code || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || out.Len() > 0 {
			t.Errorf("%v: exit code %d, %q, want %d, %q", c.args, code, text, c.code, c.want)
		}
	}
}
