package models_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
)

// A decoder continues the tokens of a prompt one by one. This one is a tiny Llama with random weights. With a
// tokenizer, m.Encode returns the tokens of a text, and a tokenizer.Stream their text.
func ExampleModel_Generate() {
	m, err := models.Load("testdata/decoders/llama3", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	prompt := []int{10, 25, 8, 14, 6, 13, 21, 3, 12, 25, 2}
	tokens, err := m.Generate(context.Background(), prompt, models.Generation{Tokens: 20, Ends: []int{30}})
	if err != nil {
		log.Fatal(err)
	}
	for id := range tokens {
		fmt.Print(id, " ")
	}
	// Output: 9 22 7
}

// A service writes the texts of several requests at the same time. It makes one Batcher, and calls it from the goroutine
// of each request.
func ExampleBatcher() {
	m, err := models.Load("testdata/decoders/llama3", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	batcher, err := m.NewBatcher(attn.CacheConfig{})
	if err != nil {
		log.Fatal(err)
	}
	var requests sync.WaitGroup
	var texts [2][]int
	for i, prompt := range [][]int{{10, 25, 8, 14, 6, 13, 21, 3, 12, 25, 2}, {10, 25}} {
		requests.Go(func() {
			tokens, err := batcher.Generate(context.Background(), prompt, models.Generation{Tokens: 3, Ends: []int{}})
			if err != nil {
				log.Print(err)
				return
			}
			for id := range tokens {
				texts[i] = append(texts[i], id)
			}
		})
	}
	requests.Wait()
	fmt.Println(texts)
	// Output: [[9 22 7] [30 22 1]]
}
