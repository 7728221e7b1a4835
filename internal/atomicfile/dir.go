package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Dir is a directory of files that mean something only together, such as a model,
// its configuration and the state of its training. It goes from one set of files to
// the next in one step, wherever the process is killed:
//
//  1. The new files are written into a new folder within the directory. Nobody
//     looks there.
//  2. The folder is renamed to ".attn-save". This is the step: whoever reads a file
//     of the directory through Read takes it from there first.
//  3. The files are moved, one by one, to where people and other programs expect
//     them, and the folder goes. No move changes what Read finds.
//
// If the process ends in 1, the next Lock removes the folder; if in 3, it completes
// the moves. Files can be in folders of the directory as well, one level deep.
type Dir struct {
	path string
	lock locker // nil on a disk without locks
}

const (
	savedFolder = ".attn-save"
	// goneSuffix marks, in that folder, a file that is to be removed.
	goneSuffix = ".gone"
)

// ErrInUse says that another process, or another part of this one, has locked a
// directory.
var ErrInUse = errors.New("another process is writing there")

// Writable makes a directory if need be and returns an error if no file can be
// written there, which after an hour of work would come late.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".attn-*.tmp")
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Lock makes the directory if need be and keeps others from locking it until
// Unlock, or until the process ends. It completes what a process that was killed
// has left to do, and removes temporary files.
//
// Disks without locks keep nobody from it, and temporary files stay there: they may be
// another process's.
//
// Errors: ErrInUse, wrapped, and those of the disk.
func Lock(path string) (*Dir, error) { return lock(path, lockers(path)) }

// Save locks the directory, replaces files in it as Dir.Replace does, and unlocks it.
func Save(path string, files []File) error {
	d, err := Lock(path)
	if err != nil {
		return err
	}
	defer d.Unlock()
	return d.Replace(files)
}

func lock(path string, lockers []locker) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	held, err := lockFirst(lockers)
	if err != nil {
		return nil, fmt.Errorf("write to %s: %w", path, cause(err))
	}
	d, whole := &Dir{path, held}, false
	defer func() {
		if !whole {
			d.Unlock()
		}
	}()
	if err := d.publish(); err != nil {
		return nil, err
	}
	if held != nil {
		if err := d.clean(); err != nil {
			return nil, err
		}
	}
	whole = true
	return d, nil
}

// Unlock lets others lock the directory.
func (d *Dir) Unlock() {
	if d.lock == nil {
		return
	}
	d.lock.Unlock()
	if runtime.GOOS == "windows" { // which removes no file that another process has open; other systems would
		os.Remove(filepath.Join(d.path, lockFile))
	}
}

// clean removes what processes that were killed have left half-done.
func (d *Dir) clean() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) {
			path := filepath.Join(d.path, name)
			announce("remove", path)
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Replace writes files, whose paths are relative to the directory, and removes
// others, which need not be there: all of it or nothing. A symbolic link in the place
// of a file is replaced. Permissions are those of Write.
//
// Errors: as those of Write. After an error all files are as they were, except if one
// of the moves fails, with everything on the disk: Read then finds the new files, and
// the next Lock or Replace tries again to move them.
func (d *Dir) Replace(files []File, gone ...string) error {
	names := slices.Clone(gone)
	for _, f := range files {
		names = append(names, f.Path)
	}
	for _, name := range names {
		if err := d.replaceable(name); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(d.path, name), err)
		}
	}
	if err := d.publish(); err != nil { // a move has failed, the last time
		return err
	}
	temp, err := makeTemp(d.path, mkdir)
	if err != nil {
		return fmt.Errorf("write to %s: %w", d.path, err)
	}
	saved := false
	defer func() {
		if !saved {
			discard(temp)
		}
	}()
	for _, f := range files {
		if err := prepare(temp, f.Path, f.Write); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(d.path, f.Path), err)
		}
	}
	for _, name := range gone {
		if err := prepare(temp, name+goneSuffix, func(io.Writer) error { return nil }); err != nil {
			return fmt.Errorf("remove %s: %w", filepath.Join(d.path, name), err)
		}
	}
	syncDir(temp)
	return settle(temp, func() error {
		if err := rename(temp, filepath.Join(d.path, savedFolder)); err != nil {
			return fmt.Errorf("write to %s: %w", d.path, cause(err))
		}
		saved = true
		syncDir(d.path)
		return d.publish()
	})
}

// replaceable returns an error unless a file can take that name.
func (d *Dir) replaceable(name string) error {
	if folder := filepath.Dir(name); folder != "." {
		if info, err := os.Stat(filepath.Join(d.path, folder)); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a folder", filepath.Join(d.path, folder))
		}
	}
	_, err := resolve(filepath.Join(d.path, name))
	return err
}

// prepare writes a file of a temporary folder.
func prepare(temp, name string, write func(io.Writer) error) error {
	path := filepath.Join(temp, name)
	f, err := func() (file, error) {
		inFlight.Lock() // or Abandon could not empty the folder
		defer inFlight.Unlock()
		if folder := filepath.Dir(path); folder != temp {
			if err := mkdir(folder); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		return create(path)
	}()
	if err != nil {
		return cause(err)
	}
	if err := fill(f, write); err != nil {
		return err
	}
	if folder := filepath.Dir(path); folder != temp {
		syncDir(folder)
	}
	return nil
}

// publish moves the files of a replacement to their places.
func (d *Dir) publish() error {
	root := filepath.Join(d.path, savedFolder)
	var folders []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if path == root && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name, gone := strings.CutSuffix(name, goneSuffix)
		place := filepath.Join(d.path, name)
		switch {
		case e.IsDir():
			folders = append(folders, path)
			if path == root {
				return nil
			}
			if err = mkdir(place); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		case gone:
			if err = remove(place); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = remove(path)
			}
		default:
			err = rename(path, place)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", place, cause(err))
		}
		return nil
	})
	if err != nil || folders == nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if folder != root {
			syncDir(filepath.Join(d.path, filepath.Base(folder)))
		} else {
			syncDir(d.path)
		}
		if err := remove(folder); err != nil {
			return err
		}
	}
	return nil
}

// Read calls read with the place where the file at path is now, which is another
// while a replacement of its directory is under way, or was when the process was
// killed. Errors should name path.
//
// Errors: that of read; one that wraps fs.ErrNotExist if the replacement removes the
// file.
func Read(path string, read func(place string) error) error {
	for {
		place, err := find(path)
		if err != nil {
			return err
		}
		if err = patiently(func() error { return read(place) }); place == path || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// It has been moved in this moment.
	}
}

// Exists reports whether there is a file at path.
func Exists(path string) bool {
	return Read(path, func(place string) error {
		_, err := os.Stat(place)
		return err
	}) == nil
}

// find returns where the file at path is: in the folder of a replacement of its
// directory, or of the directory above, or else at path.
func find(path string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return path, nil // reading it will tell
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	name := filepath.Base(path)
	for range 2 {
		place := filepath.Join(dir, savedFolder, name)
		if _, err := os.Lstat(place); err == nil {
			return place, nil
		}
		if _, err := os.Lstat(place + goneSuffix); err == nil {
			return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		dir, name = filepath.Dir(dir), filepath.Join(filepath.Base(dir), name)
	}
	return path, nil
}
