package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockFile is locked where a folder cannot be locked: on Windows and on most network disks.
const lockFile = ".attn-lock"

// locker contains the methods of *flock.Flock that are used here, so that tests can simulate a disk without locks.
// The system releases the lock whenever the process ends.
type locker interface {
	TryLock() (bool, error)
	Unlock() error
}

// lockers are the ways to lock a folder. All processes use the first one that the disk supports.
func lockers(path string) []locker {
	file := filepath.Join(path, lockFile)
	return []locker{
		flock.New(path, flock.SetFlag(os.O_RDONLY)),
		// Opened for reading and writing, because NFS refuses an exclusive lock on a file opened for reading.
		flock.New(file, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o666)),
	}
}

// lockFirst locks the first of the lockers that works, and returns nil if none does.
//
// Errors: ErrInUse; the error of opening the last of them.
func lockFirst(lockers []locker) (locker, error) {
	var failed error
	for _, l := range lockers {
		locked, err := l.TryLock()
		switch {
		case locked:
			return l, nil
		case err == nil:
			return nil, ErrInUse
		}
		failed = err
	}
	var open *fs.PathError
	if errors.As(failed, &open) && !errors.Is(failed, errors.ErrUnsupported) {
		return nil, failed
	}
	return nil, nil // the disk does not support locks
}
