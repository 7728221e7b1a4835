package hub

import "golang.org/x/sys/windows"

// freeBytes returns the free space on the disk of a directory, and whether it is known.
func freeBytes(dir string) (uint64, bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, false
	}
	return free, true
}
