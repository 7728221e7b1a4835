package view

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

// withVectors returns stack with norms and vectors in its encoder layers.
func withVectors() *heads.Record {
	r := stack()
	for i := range r.Layers[:3] {
		l := &r.Layers[i]
		for j := range l.Heads * 5 {
			l.ValueNorms = append(l.ValueNorms, float32(j%7)/2)
			for d := range 3 {
				l.QueryVectors, l.KeyVectors = append(l.QueryVectors, float32(j+d)), append(l.KeyVectors, float32(j*d))
			}
		}
		l.ScoreScale = 0.5
	}
	return r
}

// Value-weighted heads and means, and their measures, from memory and from a file.
func TestValueWeighted(t *testing.T) {
	r := withVectors()
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := heads.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &r.Layers[1]
	one := func(h int) []float32 { return heads.ValueWeighted(l.Head(h), l.Norms(h)) }
	mean, _ := heads.MeanOf(3, func(h int) ([]float32, error) { return one(h), nil })
	rolled, err := heads.Rollout(r.Layers[:2])
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Server{"memory": New(Options{Records: []*heads.Record{r}}), "file": New(Options{Files: []*heads.File{f}})} {
		for head, want := range map[string][]float32{"2": one(2), "mean": mean, "rollout": rolled} {
			if got := exactly(t, s, "record=r0&layer=1&values=1&head="+head); !slices.Equal(got.w, want) {
				t.Errorf("%s, head %s: %v, want %v", name, head, got.w, want)
			}
		}
		if got := exactly(t, s, "record=r0&layer=1&head=mean"); slices.Equal(got.w, mean) {
			t.Errorf("%s: the mean of weights is that of value-weighted ones", name)
		}
		var rows [][]*float64
		if err := json.Unmarshal(ask(s, "GET", "/api/measures?record=r0&layer=1&values=1", "", nil).Body.Bytes(), &rows); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(columns, func(c column) bool { return c.Key == "first" })
		for h := range 3 {
			weighted, want := one(h), 0.
			for i := range 5 {
				var sum float64
				for _, w := range weighted[i*5 : (i+1)*5] {
					sum += float64(w)
				}
				want += float64(weighted[i*5]) / sum / 5
			}
			if got := *rows[h][at]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s, head %d: the share of the first key is %v, want %v", name, h, got, want)
			}
		}

		w := ask(s, "GET", "/api/neurons?record=r0&layer=1&head=2", "", nil)
		q, k := l.Vectors(2)
		m, _, _ := received(t, w.Body.Bytes())
		n, _, _ := received(t, w.Body.Bytes()[32+4*15:])
		if !slices.Equal(m.w, q) || !slices.Equal(n.w, k) || m.rows != 5 || m.cols != 3 {
			t.Errorf("%s: queries %v and keys %v, want %v and %v", name, m, n, q, k)
		}
		var start struct{ Records []outline }
		if err := json.Unmarshal(ask(s, "GET", "/api/start", "", nil).Body.Bytes(), &start); err != nil {
			t.Fatal(err)
		}
		if o := start.Records[0].Layers[1]; !o.Values || o.Vectors != 3 || o.Scale != 0.5 || start.Records[0].Layers[3].Values {
			t.Errorf("%s: the outline is %+v", name, o)
		}
		for query, want := range map[string]string{
			"thumbs?record=r0&layer=3&values=1": "no norms of values", "head?record=r0&layer=3&head=0&values=1": "no norms of values", "neurons?record=r0&layer=3&head=0": "no queries and keys",
			"neurons?record=r0&layer=1&head=mean": "head is not one of 3", "neurons?record=r0&layer=1": "head is not one of 3",
		} {
			if w := ask(s, "GET", "/api/"+query, "", nil); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s, %s: status %d, %s", name, query, w.Code, w.Body)
			}
		}
	}
	// The exported page contains them.
	page, err := Page(t.Context(), Options{Records: []*heads.Record{r}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"api/head?record=r0\\u0026layer=1\\u0026head=2\\u0026values=1", "api/neurons?record=r0\\u0026layer=2\\u0026head=1", "api/head?record=r0\\u0026layer=2\\u0026head=rollout",
		"api/thumbs?record=r0\\u0026layer=4\\u0026summaries=1", "api/measures?record=r0\\u0026layer=4\\u0026head=all"} {
		if !strings.Contains(string(page), `"`+path+`"`) {
			t.Errorf("the page has no %s", path)
		}
	}
	if strings.Contains(string(page), `"api/head?record=r0\u0026layer=3\u0026head=0\u0026values=1"`) {
		t.Error("the page has a value-weighted head of a layer without norms")
	}
}
