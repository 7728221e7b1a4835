// Program embed maps two texts to vectors of similar direction if their meaning is similar. README shows it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/attn-go/attn/models"
)

func main() {
	e, err := models.LoadEmbedder("all-MiniLM-L6-v2", models.Options{})
	if err != nil {
		log.Fatal(err)
	}
	y, err := e.Embed(context.Background(), "Who keeps the cat?", "Ann has a cat.")
	if err != nil {
		log.Fatal(err)
	}
	cosine := 0.
	for i := range e.Width() { // the vectors have length 1
		cosine += float64(y.At(0, i)) * float64(y.At(1, i))
	}
	fmt.Println(y.Shape(), cosine)
}
