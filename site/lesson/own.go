//go:build !js || model

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

func init() {
	handle("own.open", openOwn)
	handle("own.record", recordOwn)
}

// own is the model that the reader has chosen. In the browser its files are those of ownDir: assets/files.js.
var (
	own    *models.Model
	ownDir = "/model"
)

// openOwn loads the files that the page has given to the worker.
func openOwn(context.Context, struct{}, func(any)) (any, error) {
	own = nil // its memory is free for the next one
	m, err := models.Load(ownDir, models.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := m.Tokenizer(); err != nil {
		return nil, err
	}
	all := 0
	for _, l := range m.Attention() {
		all += l.Config().Heads
	}
	own = m
	return map[string]int{"layers": len(m.Attention()), "heads": all}, nil
}

// recordOwn returns the page of attn view with all heads of the model for a text.
func recordOwn(ctx context.Context, a struct {
	Text  string `json:"text"`
	Theme string `json:"theme"`
}, _ func(any)) (any, error) {
	const most = 2000 // bytes
	switch {
	case own == nil:
		return nil, errors.New("choose a model first")
	case len(a.Text) > most:
		return nil, fmt.Errorf("the text has %s bytes, want at most %s", quote.Count(len(a.Text)), quote.Count(most))
	}
	record, err := probe.RecordTexts(ctx, own, a.Text, "", heads.RecorderOptions{ValueNorms: true, Vectors: true})
	if err != nil {
		return nil, err
	}
	state := url.Values{"theme": {cmp.Or(a.Theme, "light")}}
	page, err := view.Page(ctx, view.Options{Name: "your model", Records: []*heads.Record{record}}, state)
	return string(page), err
}
