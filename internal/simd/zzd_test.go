package simd

import (
	"fmt"
	"syscall"
	"testing"
	"unsafe"
)

func cpuNow() float64 {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 2, uintptr(unsafe.Pointer(&ts)), 0)
	return float64(ts.Nano())
}

func TestZZ(t *testing.T) {
	x := make([]float32, 512)
	y := make([]float32, 512)
	Each(func(name string) {
		best, fma := 1e18, 1e18
		for range 40 {
			a := cpuNow()
			for i := range 2000 {
				Dropout(y, x, 77, i*512, 1<<29, 1.1)
			}
			best = min(best, cpuNow()-a)
			a = cpuNow()
			if !fmaLoopIsGeneric() {
				fmaLoopKernel(2000 * 32)
			}
			fma = min(fma, cpuNow()-a)
		}
		fmt.Printf("%s: %.2f ns per 16; 24 fmas %.2f ns\n", name, best/2000/32, fma/2000/32)
		best = 1e18
	})
}
