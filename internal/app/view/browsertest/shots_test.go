package browsertest

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// TestShots saves screenshots of the page to the directory SHOTS, for people to
// check.
func TestShots(t *testing.T) {
	if os.Getenv("SHOTS") == "" {
		t.Skip("set SHOTS to a directory to have pictures")
	}
	text := strings.Fields("<s> ▁The ▁ani mal ▁did n't ▁cross ▁the ▁street ▁because ▁it ▁was ▁too ▁tired . </s>")
	german := strings.Fields("▁Das ▁Tier ▁über quer te ▁die ▁Straße ▁nicht , ▁weil ▁es ▁zu ▁müde ▁war . </s>")
	r := &heads.Record{Source: "The animal didn't cross the street because it was too tired.", Target: "Das Tier überquerte die Straße nicht, weil es zu müde war.",
		Special: []string{"<s>", "</s>"}}
	for i := range 3 {
		r.Layers = append(r.Layers, layer(heads.Encoder, i, 8, text, text), layer(heads.Decoder, i, 8, german, german), layer(heads.Cross, i, 8, german, text))
	}
	big := &heads.Record{Source: "12 layers of 12 heads"}
	for i := range 12 {
		big.Layers = append(big.Layers, layer(heads.Encoder, i, 12, numbered(128), numbered(128)))
	}
	url := serve(t, view.Options{Name: "animal", Records: []*heads.Record{r, big}})
	b := open(t, 1280, 860)
	for _, c := range []struct{ name, hash string }{
		{"light-map", "theme=light&a=2.3&tok=q9"}, {"dark-map", "theme=dark&a=2.3&m=1&o=entropy-"}, {"lines", "theme=light&a=2.1&v=lines"},
		{"dark-lines", "theme=dark&a=2.1&v=lines&tok=q3"}, {"text", "theme=light&a=2.4&v=text&tok=q4"}, {"text-self", "theme=light&a=0.4&v=text&tok=k4&w=1"},
		{"compare", "theme=light&cmp=head&a=2.1&b=2.4"}, {"big", "theme=light&r=1&a=3.5"}, {"big-dark", "theme=dark&r=1&a=3.5&c=log"},
		{"big-lines", "theme=light&r=1&a=3.5&v=lines"},
	} {
		b.visit(url + "#" + c.hash)
		js[bool](b, "new Promise((done) => setTimeout(() => done(true), 500))")
		b.shoot(c.name)
	}
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateScale(2), chromedp.EmulateMobile))
	for _, c := range []struct{ name, hash string }{
		{"narrow", "theme=light&a=2.3&tok=q9&m=1"}, {"narrow-text", "theme=dark&a=2.3&tok=q5&v=text"}, {"narrow-lines", "theme=light&a=2.1&v=lines"}, {"narrow-big", "theme=light&r=1&a=3.5"},
		{"narrow-compare", "theme=light&a=2.3&tok=q9&cmp=head"},
	} {
		b.visit(url + "#" + c.hash)
		js[bool](b, "new Promise((done) => setTimeout(() => done(true), 500))")
		b.shoot(c.name)
		if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%s is %d pixels wide", c.name, wide)
		}
	}
	if m := os.Getenv("MODEL"); m != "" { // the address of a running attn view
		b.do(chromedp.EmulateViewport(1280, 860))
		b.visit(m)
		js[bool](b, "new Promise((done) => setTimeout(() => done(true), 500))")
		b.shoot("model")
	}
}
