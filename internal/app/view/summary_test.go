package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
)

// stack returns a record of three encoder layers and two cross-attention layers, with 3
// queries and 5 keys.
func stack() *heads.Record {
	text, target := []string{"a", "b", "c", "d", "e"}, []string{"x", "y", "z"}
	r := &heads.Record{}
	add := func(k heads.Kind, index, n int, q, k2 []string) {
		l := heads.Layer{Name: fmt.Sprintf("%s.%d", k, index), Kind: k, Index: index, Heads: n, Queries: q, Keys: k2}
		for i := range n * len(q) {
			row := make([]float32, len(k2))
			for j := range row {
				row[j] = 0.1
			}
			row[(i*(index+2)+int(k))%len(row)] += float32(1 - 0.1*float64(len(row)))
			l.Weights = append(l.Weights, row...)
		}
		r.Layers = append(r.Layers, l)
	}
	for i := range 3 {
		add(heads.Encoder, i, 2+i%2, text, text)
	}
	add(heads.Cross, 0, 2, target, text)
	add(heads.Cross, 1, 1, target, text)
	return r
}

func exactly(t *testing.T, s *Server, query string) matrix {
	t.Helper()
	w := ask(s, "GET", "/api/head?exact=1&"+query, "", nil)
	if w.Code != 200 {
		t.Fatalf("%s: status %d: %s", query, w.Code, w.Body)
	}
	m, _, _ := received(t, w.Body.Bytes())
	return m
}

// Summaries equal those of package heads, from memory and from a file.
func TestSummaries(t *testing.T) {
	r := stack()
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := heads.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rolled, err := heads.Rollout(r.Layers[:3])
	if err != nil {
		t.Fatal(err)
	}
	two, err := heads.Rollout(r.Layers[:2])
	if err != nil {
		t.Fatal(err)
	}
	all, _ := heads.MeanOf(3, func(i int) ([]float32, error) { return r.Layers[i].Mean(), nil })
	for name, s := range map[string]*Server{"memory": New(Options{Records: []*heads.Record{r}}), "file": New(Options{Files: []*heads.File{f}})} {
		for query, want := range map[string][]float32{
			"record=r0&layer=2&head=rollout": rolled, "record=r0&layer=1&head=rollout": two, "record=r0&layer=2&head=all": all,
			"record=r0&layer=0&head=mean": r.Layers[0].Mean(), "record=r0&layer=3&head=mean": r.Layers[3].Mean(),
		} {
			for range 2 { // the second time from the cache
				if got := exactly(t, s, query); !slices.Equal(got.w, want) {
					t.Errorf("%s, %s: %v, want %v", name, query, got.w, want)
				}
			}
		}
		var start struct{ Records []outline }
		if err := json.Unmarshal(ask(s, "GET", "/api/start", "", nil).Body.Bytes(), &start); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"[mean rollout]", "[mean rollout]", "[mean rollout all]", "[mean]", "[all]"} {
			if got := fmt.Sprint(start.Records[0].Layers[i].Summaries); got != want {
				t.Errorf("%s: layer %d has %s, want %s", name, i, got, want)
			}
		}
		w := ask(s, "GET", "/api/thumbs?record=r0&layer=2&summaries=1", "", nil)
		if m, _, _ := received(t, w.Body.Bytes()); w.Body.Len() != 3*(32+28) || m.rows != 5 {
			t.Errorf("%s: %d bytes of thumbnails", name, w.Body.Len())
		}
		var rows [][]*float64
		if err := json.Unmarshal(ask(s, "GET", "/api/measures?record=r0&layer=2&head=all", "", nil).Body.Bytes(), &rows); err != nil || len(rows) != 1 || *rows[0][1] != math.Log(5) {
			t.Errorf("%s: the measures of a mean are %v, %v", name, rows, err)
		}
	}
}

// Summaries that cannot be computed are not offered.
func TestNoSummaries(t *testing.T) {
	chosen := stack()
	chosen.Layers[0].Chosen = []int{0, 2}
	missing := stack()
	missing.Layers = missing.Layers[1:]
	empty := &heads.Record{Layers: []heads.Layer{{Name: "e", Heads: 2}}}
	s := New(Options{Records: []*heads.Record{chosen, missing, empty}})
	for query, want := range map[string]int{
		"record=r0&layer=1&head=rollout": 400, "record=r1&layer=0&head=rollout": 400, "record=r0&layer=3&head=rollout": 400, "record=r0&layer=0&head=all": 400,
		"record=r0&layer=4&head=mean": 400, "record=r2&layer=0&head=mean": 400, "record=r0&layer=1&head=mean": 200, "record=r1&layer=1&head=all": 200,
	} {
		if w := ask(s, "GET", "/api/head?"+query, "", nil); w.Code != want {
			t.Errorf("%s: status %d, want %d", query, w.Code, want)
		}
	}
}

func TestDivergence(t *testing.T) {
	r, other := stack(), stack()
	other.Layers[1].Weights[0], other.Layers[1].Weights[1] = other.Layers[1].Weights[1], other.Layers[1].Weights[0]
	s := New(Options{Records: []*heads.Record{r, other}})
	get := func(query string) (list []*float64) {
		t.Helper()
		w := ask(s, "GET", "/api/divergence?"+query, "", nil)
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatalf("%s: %s", query, w.Body)
		}
		return list
	}
	list := get("record=r0&layer=1&from=0.1")
	for h := range 3 {
		if want := heads.Divergence(r.Layers[0].Head(1), r.Layers[1].Head(h), 5); *list[h] != want {
			t.Errorf("head %d: %v, want %v", h, *list[h], want)
		}
	}
	if list := get("record=r0&layer=3&from=0.1"); len(list) != 2 || list[0] != nil {
		t.Errorf("heads of other tokens: %v", list)
	}
	if list := get("record=r1&layer=1&head=0&from=1.0&of=r0"); len(list) != 1 || *list[0] != heads.Divergence(r.Layers[1].Head(0), other.Layers[1].Head(0), 5) || *list[0] == 0 {
		t.Errorf("heads of two records: %v", list)
	}
	if list := get("record=r0&layer=1&head=mean&from=1.mean"); *list[0] != 0 {
		t.Errorf("a mean differs from itself by %v", *list[0])
	}
	for query, want := range map[string]int{"record=r0&layer=1": 400, "record=r0&layer=1&from=0": 400, "record=r0&layer=1&from=9.0": 400, "record=r0&layer=1&from=0.9": 400,
		"record=r0&layer=1&from=0.0&of=r7": 410, "record=r0&layer=1&head=x&from=0.0": 400} {
		if w := ask(s, "GET", "/api/divergence?"+query, "", nil); w.Code != want {
			t.Errorf("%s: status %d, want %d", query, w.Code, want)
		}
	}
}

// The cache keeps the most recently used summaries, and the last one at any size.
func TestMemo(t *testing.T) {
	m := newMemo()
	made := 0
	get := func(layer, n int) {
		w, err := m.find(summaryKey{layer: layer}, func() ([]float32, error) { made++; return make([]float32, n), nil })
		if err != nil || len(w) != n {
			t.Errorf("%d weights, %v", len(w), err)
		}
	}
	for range 2 {
		for i := range mostSummaries {
			get(i, 7)
		}
	}
	if made != mostSummaries {
		t.Errorf("%d were made, want %d", made, mostSummaries)
	}
	get(99, mostSummarized/4+1)
	if len(m.items) != 1 {
		t.Errorf("%d are held beside a large one", len(m.items)-1)
	}
	failed := errors.New("failed")
	if _, err := m.find(summaryKey{layer: 5}, func() ([]float32, error) { return nil, failed }); !errors.Is(err, failed) || len(m.items) != 1 {
		t.Errorf("an error: %v", err)
	}
}
