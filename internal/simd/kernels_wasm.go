//go:build wasmsimd && !purego

package simd

import (
	"fmt"
	"os"
)

// hasWASM reports whether the engine has vectors, which wasm/kernels.js finds out. It ends the
// program if the kernels of the host are from another version.
func hasWASM() bool {
	switch kernelsAvailable() {
	case 0:
		return false
	case kernelsSum:
		return true
	}
	fmt.Fprintln(os.Stderr, "attn: kernels.wasm is not from the version of attn that this program was built with")
	os.Exit(2)
	return false
}
