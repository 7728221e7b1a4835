// Package hugepages allocates slices for large data that is read repeatedly. On Linux it uses huge
// pages if they are available. With pages of 4 KiB, allocating pages can take half of the time of
// loading a model, and a decoding step needs an address translation for every page of weights
// that it reads. The gain is in the row "load Llama 135M F32, float32" of bench/RESULTS.md.
package hugepages

import "unsafe"

// Make returns a slice of n zeros in ordinary garbage-collected memory.
func Make[T any](n int) []T {
	x := make([]T, n)
	if n > 0 {
		advise(unsafe.Pointer(&x[0]), uintptr(n)*unsafe.Sizeof(x[0]))
	}
	return x
}
