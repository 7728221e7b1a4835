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

// storesPart reports whether the kernels for stored numbers support panels whose last vector of C
// is not full.
func storesPart() bool { return true }

// dotRows and dotColumns are the numbers of rows and columns that dots processes.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
