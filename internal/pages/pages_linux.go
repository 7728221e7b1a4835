package pages

import (
	"syscall"
	"unsafe"
)

const (
	huge  = 2 << 20 // bytes of a huge page
	small = huge / 64
)

// advise asks for huge pages for memory that nobody has written to yet. What is around it
// within the same huge pages belongs to the heap too, and may hold the next slice.
func advise(p unsafe.Pointer, size uintptr) {
	if size < small {
		return
	}
	before := uintptr(p) % huge
	size = (before + size + huge - 1) / huge * huge
	// The runtime reserves the heap in blocks of many huge pages, so this is all its own. It
	// is advice: if the system does not take it, nothing is lost.
	_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(p)-before, size, syscall.MADV_HUGEPAGE)
}
