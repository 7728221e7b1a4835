// Package pages makes slices for much data that is read again and again: on Linux in huge
// pages, where the system has them. With pages of 4 KiB, half of the time of loading a model
// may go into handing them out, and every page of its weights that a step of a decoder
// begins to read has to be looked up first.
package pages

import "unsafe"

// Make returns a slice of n zeros. It is ordinary memory of the garbage collector.
func Make[T any](n int) []T {
	x := make([]T, n)
	if n > 0 {
		advise(unsafe.Pointer(&x[0]), uintptr(n)*unsafe.Sizeof(x[0]))
	}
	return x
}
