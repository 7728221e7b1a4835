//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import (
	"io"
	"os"
	"syscall"
)

// lockFolder locks a folder until it is closed. The system unlocks it when the
// process ends, however it ends, so no lock can be left behind.
func lockFolder(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// Other errors mean a disk that cannot do it, as some on a network.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == syscall.EWOULDBLOCK {
		f.Close()
		return nil, ErrInUse
	}
	return f, nil
}
