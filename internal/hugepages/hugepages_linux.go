package hugepages

import (
	"syscall"
	"unsafe"
)

const (
	huge  = 2 << 20 // bytes of a huge page
	small = huge / 64
)

// advise requests huge pages for memory that has not been written yet. The rest of these huge
// pages belongs to the heap too and may contain the next slice.
func advise(p unsafe.Pointer, size uintptr) {
	if size < small {
		return
	}
	before := uintptr(p) % huge
	size = (before + size + huge - 1) / huge * huge
	// The runtime reserves the heap in blocks of many huge pages, so the whole range belongs to
	// it. The call is advice: if the system ignores it, the program still works.
	_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(p)-before, size, syscall.MADV_HUGEPAGE)
}
