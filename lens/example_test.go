package lens_test

import (
	"context"
	"fmt"
	"log"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// In a text that repeats itself, a model of two layers predicts what followed last time. Head 0.0 attends to the previous
// token, and head 1.1 to the token that followed: without either, the model no longer knows.
func Example() {
	ctx := context.Background()
	m, err := models.Load("testdata/induction", models.Options{Trainable: true})
	if err != nil {
		log.Fatal(err)
	}
	next, other := lens.Logit{Token: 7, Factor: 1}, lens.Logit{Token: 8, Factor: -1}
	l, err := lens.New(m, lens.Logits{Terms: []lens.Logit{next, other}, At: lens.All})
	if err != nil {
		log.Fatal(err)
	}
	text := lens.Text(0, 5, 9, 3, 12, 7, 14, 5, 9, 3, 12)
	base, effects, err := l.Effects(ctx, text, "zero", lens.Zero, lens.Sites(m, lens.Head))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f\n", base)
	for _, e := range effects {
		if e.Effect < -1 {
			fmt.Printf("%v: %.1f\n", e.Site, e.Effect)
		}
	}
	// The same heads are found without knowing which to silence, by the edges along which another text changes the result.
	circuit, err := l.Edges(ctx, text, lens.Text(0, 8, 2, 15, 6, 11, 8, 2, 15, 6, 11), 5)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range circuit.Top(5).Heads() {
		fmt.Println(h.Layer, h.Number)
	}
	// Output:
	// 8.1
	// head 0.0: -8.0
	// head 1.1: -8.0
	// decoder.0.self 0
	// decoder.1.self 1
}
