package tensor_test

import (
	"encoding/json"
	"testing"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// Formats are read by name and report the size of a vector.
func TestFormats(t *testing.T) {
	sizes := map[string]int{"float32": 28, "bfloat16": 14, "int8": 11, "bfloat16-weights": 14}
	all := tensor.Formats()
	if len(all) != len(sizes) || all[0] != tensor.Float32 {
		t.Errorf("formats %v", all)
	}
	for _, n := range all {
		var got tensor.Format
		text, err := json.Marshal(n)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != n || n.Check() != nil {
			t.Errorf("%v comes back as %v, %v, %v", n, got, err, n.Check())
		}
		if got := n.Bytes(7); got != sizes[n.String()] {
			t.Errorf("7 elements of %v take %d bytes, want %d", n, got, sizes[n.String()])
		}
	}
	var n tensor.Format
	const want = ", want float32, bfloat16, int8, bfloat16-weights"
	for text, err := range map[string]error{
		`"int4"`: n.UnmarshalText([]byte("int4")), `""`: n.UnmarshalText(nil),
		"Format(0)": n.Check(), "Format(9)": tensor.Format(9).Check(),
	} {
		if err == nil || err.Error() != text+want {
			t.Errorf("error %v, want %s", err, text+want)
		}
	}
	if _, err := json.Marshal(n); err == nil {
		t.Error("no format has a name")
	}
	const caches = "bfloat16-weights, want float32, bfloat16, int8"
	if err := tensor.BFloat16Weights.CheckStorage(); err == nil || err.Error() != caches {
		t.Errorf("error %v, want %s", err, caches)
	}
	for stored, f := range map[simd.Format]tensor.Format{simd.Float32: tensor.Float32, simd.BFloat16: tensor.BFloat16, simd.Int8: tensor.Int8} {
		if simd.Format(f) != stored || f.CheckStorage() != nil {
			t.Errorf("%v is format %d of a cache, want %d", f, f, stored)
		}
	}
}
