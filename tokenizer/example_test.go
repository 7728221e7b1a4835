package tokenizer_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/attn-go/attn/tokenizer"
)

// small is a tokenizer.json in the format of BERT's, with a vocabulary of 10 tokens.
const small = `{
	"version": "1.0",
	"added_tokens": [
		{"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
		{"id": 2, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
	"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
	"pre_tokenizer": {"type": "BertPreTokenizer"},
	"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
		"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "queries": 3, "attend": 4, "to": 5, "key": 6, "##s": 7, "deja": 8, ".": 9}},
	"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
	"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}
}`

func Example() {
	t, err := tokenizer.Read(strings.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	e, err := t.Encode("Queries attend to keys.", tokenizer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.IDs)
	fmt.Println(e.Tokens)
	fmt.Println(t.Decode(e.IDs))
	// Output:
	// [1 3 4 5 6 7 9 2]
	// [[CLS] queries attend to key ##s . [SEP]]
	// queries attend to keys.
}

// Offsets refer to the original text, including its accents.
func ExampleTokenizer_Encode() {
	t, err := tokenizer.Read(strings.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	text := "DÉJÀ, keys"
	e, err := t.Encode(text, tokenizer.Options{NoSpecial: true})
	if err != nil {
		log.Fatal(err)
	}
	for i, token := range e.Tokens {
		fmt.Printf("%s is %q\n", token, text[e.Offsets[i].Start:e.Offsets[i].End])
	}
	// Output:
	// deja is "DÉJÀ"
	// [UNK] is ","
	// key is "key"
	// ##s is "s"
}

func ExampleTokenizer_EncodePair() {
	t, err := tokenizer.Read(strings.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	e, err := t.EncodePair("queries", "keys", tokenizer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Tokens)
	fmt.Println(e.TypeIDs)
	// Output:
	// [[CLS] queries [SEP] key ##s [SEP]]
	// [0 0 0 1 1 1]
}
