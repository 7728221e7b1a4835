package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockFile is locked where a folder itself cannot be: on Windows and on most network disks.
const lockFile = ".attn-lock"

// locker is what is needed of a *flock.Flock, so that tests can stand in for a disk
// without locks. The system unlocks it when the process ends, however it ends.
type locker interface {
	TryLock() (bool, error)
	Unlock() error
}

// lockers are the ways to lock a folder. All processes use the first that the disk allows.
func lockers(path string) []locker {
	file := filepath.Join(path, lockFile)
	return []locker{
		flock.New(path, flock.SetFlag(os.O_RDONLY)),
		// For reading and writing, since NFS refuses an exclusive lock on what is open for reading.
		flock.New(file, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o666)),
	}
}

// lockFirst locks the first of the lockers that works, and returns nil if none does.
//
// Errors: ErrInUse; that of opening the last of them.
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
	return nil, nil // a disk that cannot do it
}
