package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// All operations that change the disk are in this file, so that tests can stop a process before each of them.

// Before is called, if not nil, before each of these operations: create, write, sync, mkdir, rename, remove. It is
// for tests: if it panics from some operation on, including the clean-up, the disk looks as if the process had been
// killed there. While it is set, files are not synced, because the machine does not crash.
var Before func(operation, path string)

func announce(operation, path string) {
	if Before != nil {
		Before(operation, path)
	}
}

// file contains the methods of *os.File that are used here, so that tests can simulate a full disk.
type file interface {
	io.WriteCloser
	Sync() error
}

// real is a file on disk.
type real struct{ *os.File }

func (r real) Write(b []byte) (int, error) {
	announce("write", r.Name())
	return r.File.Write(b)
}

func (r real) Sync() error {
	if announce("sync", r.Name()); Before != nil {
		return nil
	}
	return r.File.Sync()
}

// create creates a file. It fails if the file exists.
func create(name string) (file, error) {
	announce("create", name)
	// os.CreateTemp would make the file readable only by its owner, and reading the umask would change it for every
	// goroutine.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err // not f, because a nil *os.File is a non-nil file
	}
	return real{f}, nil
}

func mkdir(path string) error {
	announce("mkdir", path)
	return os.Mkdir(path, 0o755)
}

func rename(from, to string) error {
	announce("rename", to)
	return patiently(func() error { return os.Rename(from, to) })
}

func remove(path string) error {
	announce("remove", path)
	return patiently(func() error { return os.Remove(path) })
}

// patiently retries an operation for up to two seconds on Windows, which does not move a file while another process
// reads it, and does not read a file while it is moved.
func patiently(operation func() error) error {
	const sharingViolation = syscall.Errno(32)
	for wait := time.Millisecond; ; wait *= 2 {
		err := operation()
		if runtime.GOOS != "windows" || wait > time.Second || !errors.Is(err, sharingViolation) {
			return err
		}
		time.Sleep(wait)
	}
}

// syncDir writes the names in a folder to disk. Not every system supports it. It matters only if the machine loses
// power, not if the process is killed.
func syncDir(path string) {
	if announce("sync", path); Before != nil {
		return
	}
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// inFlight are the temporary files and folders of this process. The lock is taken while one of them is created,
// renamed or removed.
var inFlight = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// Abandon waits for a rename in progress, and then removes this process's temporary files. From then on all functions
// of this package block: the process must exit.
func Abandon() {
	inFlight.Lock()
	for name := range inFlight.names {
		os.RemoveAll(name)
	}
}

const (
	tempPrefix = ".attn-"
	tempSuffix = ".tmp"
)

// makeTemp calls make with new names in dir until one does not exist yet. The name does not contain the target's
// name, which may already be as long as the file system allows.
func makeTemp(dir string, make func(name string) error) (string, error) {
	inFlight.Lock()
	defer inFlight.Unlock()
	const tries = 1000
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprintf("%s%016x%s", tempPrefix, rand.Uint64(), tempSuffix))
		err := make(name)
		if err == nil {
			inFlight.names[name] = true
			return name, nil
		}
		if i+1 == tries || !errors.Is(err, fs.ErrExist) {
			return "", cause(err)
		}
	}
}

// commit renames a temporary file or folder by a call of rename, and removes it from inFlight.
func commit(temp string, rename func() error) error {
	inFlight.Lock()
	defer inFlight.Unlock()
	err := rename()
	if err == nil {
		delete(inFlight.names, temp)
	}
	return err
}

// discard removes a temporary file or folder.
func discard(temp string) {
	inFlight.Lock()
	defer inFlight.Unlock()
	announce("remove", temp)
	os.RemoveAll(temp)
	delete(inFlight.names, temp)
}

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
