//go:build amd64 && !purego

package simd

import (
	"sync"
	"syscall"
	"unsafe"
)

// What Linux wants to be asked before a program uses tile units: their registers are
// 8 KiB that it has to keep for every thread that does.
const (
	sysArchPrctl      = 158
	archGetXcompSupp  = 0x1021
	archReqXcompPerm  = 0x1023
	xfeatureTileData  = 18
	xfeaturesForTiles = 3 << 17 // their configuration, and their data
)

// offersTiles reports whether the system keeps the registers of tile units.
func offersTiles() bool {
	var features uint64
	_, _, e := syscall.RawSyscall(sysArchPrctl, archGetXcompSupp, uintptr(unsafe.Pointer(&features)), 0)
	return e == 0 && features&xfeaturesForTiles == xfeaturesForTiles
}

// permitTiles asks the system for tile units, once, and reports whether it grants them.
var permitTiles = sync.OnceValue(func() bool {
	_, _, e := syscall.RawSyscall(sysArchPrctl, archReqXcompPerm, xfeatureTileData, 0)
	return e == 0
})
