//go:build !js

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// A model of the reader is opened, and all of its heads are in the page of attn view. What cannot be opened is refused.
func TestOwn(t *testing.T) {
	t.Cleanup(func() { own, ownDir = nil, "/model" })
	refused := func(name string, args object, want string) {
		t.Helper()
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(context.Background(), name, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refused("own.record", object{"text": "a"}, "choose a model first")
	ownDir = "../../models/testdata/sentence_mean"
	opened := call[map[string]int](t, "own.open", object{}, nil)
	if opened["layers"] != 2 || opened["heads"] != 6 {
		t.Errorf("the model has %v", opened)
	}
	page := call[string](t, "own.record", object{"text": "a bird", "theme": "dark"}, nil)
	for _, want := range []string{`"address":"theme=dark"`, "api/head?record=r0\\u0026layer=1\\u0026head=2", "Content-Security-Policy"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	refused("own.record", object{"text": strings.Repeat("a ", 30)}, "more than 13 tokens")
	refused("own.record", object{"text": strings.Repeat("a ", 3000)}, "6,000 bytes, want at most 2,000")
	ownDir = "../../models/testdata/bert_text"
	refused("own.open", object{}, "has no tokenizer.json")
	refused("own.record", object{"text": "a"}, "choose a model first")
	ownDir = t.TempDir()
	refused("own.open", object{}, "config.json")
}
