package strictjson

import (
	"encoding/json"
	"math"
)

// Number is a number in JSON, which knows no infinities and no NaN: these are
// null, and null is NaN.
type Number float64

// NaN is the Number of what was not measured.
var NaN = Number(math.NaN())

// Known reports whether n was measured: it is neither a NaN nor infinite.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return Lenient(data, (*float64)(n))
}
