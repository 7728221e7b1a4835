package view

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
)

// held returns the ids of typed records, most recently used first.
func (s *store) held() (ids []string) {
	for _, x := range slices.Backward(s.typed.items) {
		ids = append(ids, x.key)
	}
	return ids
}

func TestStoreForgets(t *testing.T) {
	size := newEntry("", sample()).bytes
	s := newStore(Options{Records: []*heads.Record{sample()}}, 3*size)
	for i := range 300 {
		s.add(newEntry(fmt.Sprint("t", i), sample()))
		if s.get("t0") == nil { // it is the most recently used
			t.Fatal("the one used last is gone")
		}
		if s.typed.bytes != len(s.held())*size || s.typed.bytes > s.typed.most {
			t.Fatalf("%v are held, %d bytes of %d", s.held(), s.typed.bytes, s.typed.most)
		}
	}
	if got := fmt.Sprint(s.held()); got != "[t0 t299 t298]" {
		t.Errorf("%s are held", got)
	}
	if s.get("r0") == nil || s.get("t1") != nil {
		t.Error("what is left is not what was there from the start, and what was used last")
	}
	// A large record replaces many small ones.
	wide := newEntry("wide", sample())
	wide.bytes = 2 * size
	s.add(wide)
	if got := fmt.Sprint(s.held()); got != "[wide t0]" {
		t.Errorf("%s are held", got)
	}
}

// The bytes of a record include those besides its weights.
func TestEntryBytes(t *testing.T) {
	r := sample()
	bare := newEntry("", &heads.Record{}).bytes
	all := newEntry("", r).bytes
	if least := 4*2*3*5 + 8*16; bare < 1<<10 || all < bare+least {
		t.Errorf("nothing counts as %d bytes, the sample as %d, want at least %d more", bare, all, least)
	}
	r.Source += string(make([]byte, 1000))
	r.Layers[0].Keys = append(r.Layers[0].Keys[:4:4], string(make([]byte, 1000)))
	if longer := newEntry("", r).bytes; longer < all+2000-8 {
		t.Errorf("2,000 bytes more of text count as %d", longer-all)
	}
}

// Hundreds of texts take no more than the limit, and a dropped record is recorded again
// on request.
func TestTextsTakeBoundedMemory(t *testing.T) {
	asked := map[string]int{}
	size := newEntry("", sample()).bytes + 100
	s := New(Options{Keep: 7 * size, Recorder: recordFunc(func(_ context.Context, source, _ string) (*heads.Record, error) {
		asked[source]++
		return sample(), nil
	})})
	record := func(i int) { ask(s, "POST", "/api/record", fmt.Sprintf(`{"source":"text %d"}`, i), nil) }
	for i := range 466 {
		record(i)
		if s.store.typed.bytes > 7*size {
			t.Fatalf("%d bytes are held, want at most %d", s.store.typed.bytes, 7*size)
		}
	}
	first := "/api/head?layer=0&head=1&record=" + textID(0, "text 0", "")
	if w := ask(s, "GET", first, "", nil); w.Code != 410 {
		t.Errorf("a record that is gone: status %d, want 410, which tells the page to ask for its text", w.Code)
	}
	record(0)
	if w := ask(s, "GET", first, "", nil); w.Code != 200 || asked["text 0"] != 2 {
		t.Errorf("asked again: status %d after %d times", w.Code, asked["text 0"])
	}
	record(465)
	if asked["text 465"] != 1 {
		t.Error("what is held is worked out again")
	}
}

func TestTooLargeToHold(t *testing.T) {
	s := New(Options{Keep: 1 << 20, Recorder: recordFunc(func(context.Context, string, string) (*heads.Record, error) { return large(1031), nil })})
	want := `{"error":"the weights of this text take 4 MB, want at most 1 MB"}`
	if w := ask(s, "POST", "/api/record", `{"source":"x"}`, nil); w.Code != 422 || w.Body.String() != want || s.store.typed.bytes != 0 {
		t.Errorf("status %d and %s, want 422 and %s", w.Code, w.Body, want)
	}
}
