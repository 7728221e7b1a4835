package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// recordRuns returns two records of one run of two layers whose heads share keys: one with weights,
// and one that computes them on request.
func recordRuns(t *testing.T) (kept, asked *heads.Record) {
	t.Helper()
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 30, Heads: 6, KVHeads: 3, HeadSize: 5}, rand.New(rand.NewPCG(5, 3)))
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(rand.New(rand.NewPCG(7, 3)), 1, 70, 30)
	x.Data()[11*30] = float32(1e38) // its products are not finite
	words := make([]string, 70)
	for i := range words {
		words[i] = strings.Repeat("▁", (i+1)%2) + fmt.Sprint("w", i%13)
	}
	var records []*heads.Record
	for _, onRequest := range []bool{false, true} {
		r := heads.NewRecorder(heads.RecorderOptions{OnRequest: onRequest, ValueNorms: true, Vectors: true})
		o := attn.Options{Mask: mask.Causal()}
		o.Observers, o.Inspect = r.Callbacks()
		for i := range 2 {
			o.Layer = fmt.Sprint("decoder.", i)
			layer.Forward(nil, x, x, x, o)
		}
		record, err := r.Record(heads.Texts{SourceTokens: words, Special: words[:1]})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records[0], records[1]
}

// The page gets the same bytes whether weights are in memory or computed on request, and
// for any number of simultaneous requests.
func TestComputedAnswersAsRecords(t *testing.T) {
	kept, asked := recordRuns(t)
	inMemory, onRequest := New(Options{Records: []*heads.Record{kept}}), New(Options{Records: []*heads.Record{asked}})
	var wait sync.WaitGroup
	for _, query := range []string{"thumbs?", "thumbs?summaries=1&", "thumbs?values=1&", "thumbs?words=1&special=hide&", "head?head=4&", "head?head=mean&", "head?head=rollout&",
		"head?head=4&exact=1&rows=11-12&", "head?head=2&words=1&special=renorm&", "head?head=1&values=1&", "measures?", "measures?words=1&", "measures?head=mean&",
		"divergence?from=0.3&of=r0&", "neurons?head=5&", "check?"} {
		for layer := range 2 {
			path := fmt.Sprintf("/api/%srecord=r0&layer=%d", query, layer)
			want := ask(inMemory, "GET", path, "", nil)
			wait.Go(func() {
				for range 2 { // the second time possibly from the cache
					if got := ask(onRequest, "GET", path, "", nil); got.Code != 200 || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) {
						t.Errorf("%s: status %d, %d bytes, want the %d of the record", path, got.Code, got.Body.Len(), want.Body.Len())
					}
				}
			})
		}
	}
	wait.Wait()
	if w := ask(onRequest, "GET", "/api/check?record=r0&layer=0", "", nil); !strings.Contains(w.Body.String(), "not finite") {
		t.Errorf("what is wrong with the weights is %s", w.Body)
	}
	for s, unread := range map[*Server]bool{inMemory: false, onRequest: true} {
		e := s.store.fixed[0]
		if e.outline.Unread != unread || unread != (len(e.outline.Warnings) == 0) {
			t.Errorf("the outline is %+v", e.outline)
		}
	}
	if m, r := newEntry("", kept).bytes, newEntry("", asked).bytes; r >= m || r < entryBytes+asked.Layers[0].Held {
		t.Errorf("on request it takes %d bytes, and %d in memory", r, m)
	}
}

// Errors found while the heads were drawn are reported without computing the heads again, and
// single rows of an open head come from the cache.
func TestComputedOnce(t *testing.T) {
	_, asked := recordRuns(t)
	e := newEntry("r", asked)
	e.memo = newMemo()
	first, err := e.opened(1, "4", false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.opened(1, "4", false); err != nil || &again[0] != &first[0] {
		t.Errorf("an open head is computed twice: %v", err)
	}
	s := New(Options{Records: []*heads.Record{asked}})
	for _, query := range []string{"thumbs?summaries=1&", "thumbs?values=1&"} {
		ask(s, "GET", "/api/"+query+"record=r0&layer=1", "", nil)
		if _, known := s.store.fixed[0].wrong.Load(1); known {
			t.Errorf("%s has judged the weights of heads", query)
		}
	}
	ask(s, "GET", "/api/thumbs?record=r0&layer=1", "", nil)
	if lines, known := s.store.fixed[0].wrong.Load(1); !known || len(lines.([]string)) != 1 {
		t.Errorf("thumbnails have found %v", lines)
	}
}

// The summaries in the overview, and the mean of all layers at the end, use the means computed
// with the thumbnails of heads.
func TestSummariesOfThumbnails(t *testing.T) {
	const layers, n = 4, 11
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 15, Heads: 3, HeadSize: 5}, rand.New(rand.NewPCG(5, 3)))
	if err != nil {
		t.Fatal(err)
	}
	var computed atomic.Int64 // calls of the mask for the last pair of tokens, one per head
	mask := mask.AllowFunc(func(_, _, query, key int) bool {
		if query == n-1 && key == n-1 {
			computed.Add(1)
		}
		return true
	})
	x := tensor.Randn(rand.New(rand.NewPCG(7, 3)), 1, n, 15)
	recorder := heads.NewRecorder(heads.RecorderOptions{OnRequest: true})
	o := attn.Options{Mask: mask}
	o.Observers, o.Inspect = recorder.Callbacks()
	for i := range layers {
		o.Layer = fmt.Sprint("encoder.", i)
		layer.Forward(nil, x, x, x, o)
	}
	record, err := recorder.Record(heads.Texts{SourceTokens: strings.Fields(strings.Repeat("w ", n))})
	if err != nil {
		t.Fatal(err)
	}
	for name, forget := range map[string]bool{"held": false, "the means of layers are no longer held": true} {
		s := New(Options{Records: []*heads.Record{record}})
		get := func(path string, layer int) {
			t.Helper()
			if w := ask(s, "GET", fmt.Sprintf("/api/%srecord=r0&layer=%d", path, layer), "", nil); w.Code != 200 {
				t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
			}
		}
		for _, i := range []int{1, 0, 2, 3} { // the page requests two at a time, and they finish in any order
			get("thumbs?", i)
		}
		before := computed.Load()
		if before == 0 {
			t.Fatal("the mask was not asked")
		}
		if forget {
			for i := range mostSummaries {
				s.store.memo.put(summaryKey{record: "another", layer: i}, make([]float32, 1))
			}
		} else {
			for i := range layers {
				get("thumbs?summaries=1&", i)
				get("head?head=mean&", i)
			}
		}
		get("head?head=all&", layers-1)
		if after := computed.Load(); after != before {
			t.Errorf("%s: heads were computed %d times more for what is made of them", name, after-before)
		}
		if n := len(s.store.fixed[0].totals); n != 0 {
			t.Errorf("%s: %d sums are held when the mean of all layers is there", name, n)
		}
	}
}
