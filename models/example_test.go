package models_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

// Load returns a model built from layers of package attn. This one is tiny, with random weights.
func ExampleLoad() {
	m, err := models.Load("testdata/sentence_dense", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, err := m.Tokens("The cat sat on the mat.", "Who?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(x.IDs)
	fmt.Println(m.Hidden(nil, x, models.Run{}).Shape())
	fmt.Println(len(m.Attention()), "layers of", m.Sizes().Heads, "heads")
	// Output:
	// [[2 11 6 8 10 11 12 21 3] [2 16 17 3]]
	// [2 9 15]
	// 2 layers of 3 heads
}

// The pipeline of sentence-transformers in the directory says how hidden states become a
// vector.
func ExampleEmbedder() {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	v, err := e.Embed(context.Background(), "The cat sat on the mat.", "A cat sat on the mat.", "Who sleeps in the sun?")
	if err != nil {
		log.Fatal(err)
	}
	similar := tensor.MatMulT(nil, v, v) // of vectors of length 1, the cosine
	fmt.Printf("%.2f %.2f\n", similar.At(0, 1), similar.At(0, 2))
	// Output: 1.00 0.96
}

// A classifier on top of a BERT learns which texts are questions; gradients flow to every
// parameter of both.
func Example_fineTune() {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{Trainable: true})
	if err != nil {
		log.Fatal(err)
	}
	texts := []string{"who sat on the mat?", "the cat sat on it.", "who runs?", "the dog sleeps.", "who sleeps in the sun?", "a cat runs."}
	isQuestion := []int{1, 0, 1, 0, 1, 0}

	x, err := e.Model.Tokens(texts...)
	if err != nil {
		log.Fatal(err)
	}
	classifier := nn.NewLinear(e.Width(), 2, true, rand.New(rand.NewPCG(1, 2)))
	all := nn.ModuleFunc(func() nn.Params {
		return nn.Join(nn.Named{Module: e}, nn.Named{Name: "classifier", Module: classifier})
	})
	optimizer, tape := optim.NewAdamW(all), tensor.NewTape(tensor.Train)
	for range 40 {
		tape.Reset()
		optim.ZeroGrad(all)
		loss := nn.CrossEntropy(tape, classifier.Forward(tape, e.Forward(tape, x)), isQuestion, -1, 0)
		tape.Backward(loss, nil)
		optimizer.Step(0.02)
	}

	p := tensor.Softmax(nil, classifier.Forward(nil, e.Forward(nil, x)))
	for i, text := range texts {
		fmt.Printf("%-23s %t\n", text, p.At(i, 1) > 0.5)
	}
	// Output:
	// who sat on the mat?     true
	// the cat sat on it.      false
	// who runs?               true
	// the dog sleeps.         false
	// who sleeps in the sun?  true
	// a cat runs.             false
}

// A logit lens: the token that the state after each layer would predict next, if the model ended there. The last state
// has already passed the final norm. Source: nostalgebraist, "interpreting GPT: the logit lens", 2020.
func Example_logitLens() {
	m, err := models.Load("testdata/decoders/gpt2", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{2, 30, 4}}} // m.Tokens makes a batch of texts
	m.Hidden(nil, x, models.Run{States: func(layer int, h *tensor.Tensor) {
		if layer < m.Sizes().Layers && m.FinalNorm() != nil {
			h = m.FinalNorm().Forward(nil, h)
		}
		next := tensor.ArgMax(m.Head().Logits(nil, h)) // after each token
		fmt.Println("layer", layer, "predicts", next[len(next)-1])
	}})
	// Output:
	// layer 0 predicts 20
	// layer 1 predicts 7
	// layer 2 predicts 7
}

// Each token of a query chooses the token of a document with the largest product; the scores are the sums of these
// products.
func ExampleLateEmbedder() {
	e, err := models.LoadLateEmbedder("testdata/late_colbert", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	texts := []string{"a dog sleeps", "the cat sat on the mat"}
	q, err := e.Queries.Embed(ctx, "who sat?")
	if err != nil {
		log.Fatal(err)
	}
	d, err := e.Documents.Embed(ctx, texts...)
	if err != nil {
		log.Fatal(err)
	}
	scores, chosen := e.Scores(nil, q[0], d...)
	for i, text := range texts {
		fmt.Printf("%.1f  %v chosen by %d: %s\n", scores.At(i), d[i].Shape(), len(chosen[i]), text)
	}
	// Output:
	// 12.9  [6 9] chosen by 13: a dog sleeps
	// 12.9  [9 9] chosen by 13: the cat sat on the mat
}
