package strictjson

import (
	"encoding/json"
	"math"
)

// Number is a number in JSON, which has no infinities and no NaN: both are written as null, and null is read as NaN.
type Number float64

// NaN is the Number of a missing measurement.
var NaN = Number(math.NaN())

// Known reports whether n was measured, which means that it is finite.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return Lenient(data, (*float64)(n))
}
