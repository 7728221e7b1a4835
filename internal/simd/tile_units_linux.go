//go:build amd64 && !purego

package simd

import (
	"sync"
	"syscall"
	"unsafe"
)

// The requests that Linux requires before a program uses tile units. The registers of tile units
// take 8 KiB, which the system saves for every thread that uses them.
const (
	sysArchPrctl      = 158
	archGetXcompSupp  = 0x1021
	archReqXcompPerm  = 0x1023
	xfeatureTileData  = 18
	xfeaturesForTiles = 3 << 17 // their configuration, and their data
)

// offersTiles reports whether the system saves the registers of tile units.
func offersTiles() bool {
	var features uint64
	_, _, e := syscall.RawSyscall(sysArchPrctl, archGetXcompSupp, uintptr(unsafe.Pointer(&features)), 0)
	return e == 0 && features&xfeaturesForTiles == xfeaturesForTiles
}

// permitTiles requests tile units from the system, once, and reports whether it grants them.
var permitTiles = sync.OnceValue(func() bool {
	_, _, e := syscall.RawSyscall(sysArchPrctl, archReqXcompPerm, xfeatureTileData, 0)
	return e == 0
})
