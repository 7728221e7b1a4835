//go:build linux || darwin || freebsd

package hub

import "golang.org/x/sys/unix"

// freeBytes returns the free space on the disk of a directory, and whether it is known.
func freeBytes(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(max(s.Bavail, 0)) * uint64(s.Bsize), true
}
