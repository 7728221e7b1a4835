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
)

// The operations that change the disk. All of them are here, so that tests can
// end a process in front of each.

// Before is called before each of these operations unless it is nil: create,
// write, sync, mkdir, rename, remove. It is for tests: if it panics from one
// operation on, clean-up included, the disk looks as if the process had been
// killed there. Nothing waits for the disk then, since the machine lives on.
var Before func(operation, path string)

func announce(operation, path string) {
	if Before != nil {
		Before(operation, path)
	}
}

// file is what is needed of an *os.File, so that tests can stand in for a disk
// that is full.
type file interface {
	io.WriteCloser
	Sync() error
}

// real is a file on the disk.
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

// create makes a file where there must be none.
func create(name string) (file, error) {
	announce("create", name)
	// os.CreateTemp would make a file that only its owner can read, and the
	// umask cannot be asked for without changing it for every goroutine.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err // not f: a nil *os.File is not a nil file
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

// patiently repeats an operation for up to two seconds on Windows, which refuses to move a
// file while another process reads it, and to read it while it is moved.
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

// syncDir brings the names in a folder to the disk. Not every system can do that,
// and none has to for a process that is killed; it is for a machine that loses power.
func syncDir(path string) {
	if announce("sync", path); Before != nil {
		return
	}
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// inFlight are the temporary files and folders of this process. The lock is held
// while one of them comes into being, takes its place or goes.
var inFlight = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// Abandon removes what this process has begun to write, after a replacement that is
// taking its place has done so. From then on all functions of this package block: the
// process has to end.
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

// makeTemp finds a new name in dir for make, which fails if there is something of
// that name. The name does not contain that of the target, which may be as long as
// the file system allows already.
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

// settle runs what gives a temporary file or folder its name.
func settle(temp string, rename func() error) error {
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
