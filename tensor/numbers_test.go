package tensor_test

import (
	"encoding/json"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// Formats are read by name and report the size of a vector.
func TestNumbers(t *testing.T) {
	sizes := map[string]int{"float32": 28, "float16": 14, "bfloat16": 14, "int8": 11}
	all := tensor.NumberFormats()
	if len(all) != len(sizes) || all[0] != tensor.Float32 {
		t.Errorf("formats %v", all)
	}
	for _, n := range all {
		var got tensor.Numbers
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
	var n tensor.Numbers
	const want = ", want float32, float16, bfloat16, int8"
	for text, err := range map[string]error{
		`"int4"`: n.UnmarshalText([]byte("int4")), `""`: n.UnmarshalText(nil),
		"Numbers(0)": n.Check(), "Numbers(9)": tensor.Numbers(9).Check(),
	} {
		if err == nil || err.Error() != text+want {
			t.Errorf("error %v, want %s", err, text+want)
		}
	}
	if _, err := json.Marshal(n); err == nil {
		t.Error("no format has a name")
	}
}
