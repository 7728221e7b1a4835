package models

import (
	"slices"
	"testing"
)

// TestPadding compares the tokens that the head of a decoder leaves out with pad_token_id of transformers' configuration
// classes: null is none, and a file without it has that of its class.
func TestPadding(t *testing.T) {
	for file, want := range map[string][]int{
		`{"model_type": "llama", "pad_token_id": 6}`: {6}, `{"model_type": "llama", "pad_token_id": -1}`: {-1},
		`{"model_type": "llama"}`: nil, `{"model_type": "gpt2"}`: nil, `{"model_type": "mistral"}`: nil, `{"model_type": "mixtral"}`: nil,
		`{"model_type": "qwen2"}`: nil, `{"model_type": "qwen3"}`: nil, `{"model_type": "qwen3_moe"}`: nil, `{"model_type": "starcoder2"}`: nil,
		`{"model_type": "gpt_neox"}`: nil, `{"model_type": "gemma"}`: {0}, `{"model_type": "gemma2"}`: {0}, `{"model_type": "gemma3_text"}`: {0},
		`{"model_type": "olmo2"}`: {1}, `{"model_type": "olmo3"}`: {1}, `{"model_type": "phi3"}`: {32000}, `{"model_type": "smollm3"}`: {128004},
		`{"model_type": "gemma", "pad_token_id": null}`: nil, `{"model_type": "phi3", "pad_token_id": 7}`: {7},
	} {
		s := &Settings{wrong: new([]error)}
		if err := s.parse([]byte(file)); err != nil {
			t.Fatal(err)
		}
		if got := padding(s); !slices.Equal(got, want) || len(*s.wrong) > 0 {
			t.Errorf("%s: %v with errors %v, want %v", file, got, *s.wrong, want)
		}
	}
}
