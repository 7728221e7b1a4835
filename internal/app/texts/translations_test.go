package texts

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// newTranslator returns an untrained translator of dates.
func newTranslator(t *testing.T) *models.Model {
	t.Helper()
	r := train.DatesRecipe()
	r.Network.Width, r.Network.Hidden = 8, 3
	source, target := train.Vocabularies(train.Dates(100, 1), r.Units, r.VocabSize)
	m, err := models.NewTranslator(r.Network, source, target, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each line has the translation of the model, and unknown pieces are reported.
func TestTranslations(t *testing.T) {
	m := newTranslator(t)
	lines := []string{"5 march 2019", "", "tuesday 5 mar", "1/2/03 你"}
	for _, beam := range []int{1, 3} {
		want, err := m.Translate(context.Background(), lines, beam)
		if err != nil {
			t.Fatal(err)
		}
		want[slices.Index(lines, "")] = "" // a blank line stays blank
		var said strings.Builder
		f := Translations(m, beam, &said)
		f.Batch = 2
		var plain, tsv, object strings.Builder
		in := strings.Join(lines, "\n") + "\n\xff\n"
		if _, err := f.Run(t.Context(), strings.NewReader(in), &plain); err != nil {
			t.Fatal(err)
		}
		if got := plain.String(); got != strings.Join(want, "\n")+"\n"+`{"error":"invalid UTF-8"}`+"\n" {
			t.Errorf("beam %d: %q, want %q", beam, got, want)
		}
		if got := said.String(); got != "not in the source vocabulary, read as <unk>: \"你\"\n" {
			t.Errorf("said %q", got)
		}
		f.Write = WriteTranslation
		_, err = f.Run(t.Context(), strings.NewReader(lines[0]+"\n\xff"), &tsv)
		if got := tsv.String(); err != nil || got != want[0]+"\t\n\tinvalid UTF-8\n" {
			t.Errorf("%q, %v", got, err)
		}
		f.Write = filter.JSON[Translation]
		_, err = f.Run(t.Context(), strings.NewReader(lines[0]), &object)
		if got := object.String(); err != nil || got != fmt.Sprintf("{\"translation\":%q}\n", want[0]) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// The losses of lines equal train.Loss, and a line without a pair has an error.
func TestLosses(t *testing.T) {
	m := newTranslator(t)
	pairs := train.Dates(3, 1)
	f := Losses(m, io.Discard)
	f.Write = func(w io.Writer, l *filter.Line[Loss]) error {
		_, err := fmt.Fprintln(w, l.Value.Nats, l.Value.Tokens, l.Err)
		return err
	}
	in, want := "", ""
	for _, p := range pairs {
		in += p.Source + "\t" + p.Target + "\tmore\n"
		mean, err := train.Loss(t.Context(), m, []seq2seq.Pair{p})
		if err != nil {
			t.Fatal(err)
		}
		e, err := probe.TranslationExample(m, p.Source, p.Target)
		if err != nil {
			t.Fatal(err)
		}
		tokens := len(e.Targets) // with the end mark
		want += fmt.Sprintf("%.4f %d <nil>\n", mean*float64(tokens), tokens)
	}
	in += "one column\n" + strings.Repeat("x", train.LongestText+1) + "\ty\n"
	var out strings.Builder
	if _, err := f.Run(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	got := ""
	for _, line := range lines[:len(pairs)] {
		var nats float64
		var tokens int
		var failed string
		if _, err := fmt.Sscan(line, &nats, &tokens, &failed); err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%.4f %d %s\n", nats, tokens, failed)
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i, want := range []string{"no tab between source and target", "a text of more than 4000 bytes"} {
		if line := lines[len(pairs)+i]; !strings.HasSuffix(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
