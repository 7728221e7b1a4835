package models_test

import (
	"encoding/json"
	"testing"

	"github.com/attn-go/attn/models"
)

func TestSparseVector(t *testing.T) {
	for _, c := range []struct {
		tokens  []int
		weights []float32
		want    string
	}{
		{[]int{7, 2, 7, 2, 5}, []float32{1, 0.5, 3, 0.25, 0}, `{"indices":[2,7],"values":[0.5,3]}`},
		{[]int{4, 4}, []float32{-1, -2}, `{"indices":[4],"values":[-1]}`},
		{nil, []float32{0, 2, 0, -1}, `{"indices":[1,3],"values":[2,-1]}`},
		{nil, nil, `{"indices":[],"values":[]}`},
	} {
		if got, err := json.Marshal(models.NewSparseVector(c.tokens, c.weights)); err != nil || string(got) != c.want {
			t.Errorf("%v %v: %s, error %v, want %s", c.tokens, c.weights, got, err, c.want)
		}
	}
	v := models.NewSparseVector([]int{1, 3, 8}, []float32{2, 5, 7})
	w := models.NewSparseVector([]int{0, 3, 4, 8, 9}, []float32{1, 0.5, 9, -1, 1})
	if got := v.Dot(w); got != 2.5-7 || w.Dot(v) != got {
		t.Errorf("the product is %v, want %v", got, 2.5-7)
	}
}
