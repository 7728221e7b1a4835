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

// Dir is a directory of files that belong together, such as a model, its configuration and the state of its training.
// It replaces a set of files in one step, even if the process is killed:
//
//  1. The new files are written to a new folder within the directory, which nothing reads yet.
//  2. The folder is renamed to ".attn-save". This is the atomic step: Read looks there before it looks in the
//     directory.
//  3. The files are moved one by one to their final places, where users and other programs expect them, and the
//     folder is removed. No move changes the files that Read finds.
//
// If the process is killed in step 1, the next Lock removes the folder; in step 3, it completes the moves. Files may
// also be in subfolders, one level deep.
type Dir struct {
	path string
	lock locker // nil if the disk does not support locks
}

const (
	savedFolder = ".attn-save"
	// goneSuffix ends the name of a file in ".attn-save" that says that a file is to be removed.
	goneSuffix = ".gone"
)

// ErrInUse says that another process, or another part of this process, has locked a directory.
var ErrInUse = errors.New("another process is writing there")

// Writable creates a directory if needed and returns an error if no file can be written there, for instance because the
// disk is full, so that a long job can fail before it starts.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := try(create, dir); err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	return nil
}

// Lock creates the directory if needed and locks it until Unlock, or until the process ends. It completes a
// replacement that a killed process has left, and removes temporary files.
//
// On a disk without locks, Lock does not exclude other processes and keeps temporary files, because another process
// may be using them.
//
// Errors: ErrInUse, wrapped, and I/O errors.
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

// Unlock releases the lock.
func (d *Dir) Unlock() {
	if d.lock == nil {
		return
	}
	d.lock.Unlock()
	if runtime.GOOS == "windows" { // Windows does not remove a file that another process has open; other systems would
		os.Remove(filepath.Join(d.path, lockFile))
	}
}

// clean removes files that killed processes left incomplete.
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

// Replace writes files, whose paths are relative to the directory, and removes the files in gone, which need not
// exist: all of it or nothing. A symbolic link at the place of a file is replaced. Permissions are the same as for
// Write.
//
// Errors: the same as for Write. After an error all files are unchanged, unless a move failed when everything was
// already on disk: then Read finds the new files, and the next Lock or Replace tries the move again.
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
	if err := d.publish(); err != nil { // completes an earlier replacement whose move failed
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
	return commit(temp, func() error {
		if err := rename(temp, filepath.Join(d.path, savedFolder)); err != nil {
			return fmt.Errorf("write to %s: %w", d.path, cause(err))
		}
		saved = true
		syncDir(d.path)
		return d.publish()
	})
}

// replaceable returns an error unless a file can be created under that name.
func (d *Dir) replaceable(name string) error {
	if folder := filepath.Dir(name); folder != "." {
		if info, err := os.Stat(filepath.Join(d.path, folder)); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a folder", filepath.Join(d.path, folder))
		}
	}
	_, err := resolve(filepath.Join(d.path, name))
	return err
}

// prepare writes a file into a temporary folder.
func prepare(temp, name string, write func(io.Writer) error) error {
	path := filepath.Join(temp, name)
	f, err := func() (file, error) {
		inFlight.Lock() // otherwise Abandon could not empty the folder
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

// publish moves the files of a replacement to their final places.
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

// Read returns the result of read, such as os.ReadFile, for the current location of the file at path. The location
// differs from path while a replacement of its directory is in progress, or was when the process was killed. Errors of
// read should name path.
//
// Errors: the error of read; an error that wraps fs.ErrNotExist if the replacement removes the file.
func Read[T any](path string, read func(place string) (T, error)) (v T, err error) {
	for {
		place, err := find(path)
		if err != nil {
			return v, err
		}
		err = patiently(func() (err error) { v, err = read(place); return err })
		if place == path || !errors.Is(err, fs.ErrNotExist) {
			return v, err
		}
		// The file was moved just now.
	}
}

// Exists reports whether there is a file at path.
func Exists(path string) bool {
	_, err := Read(path, os.Stat)
	return err == nil
}

// find returns the current location of the file at path: in the folder of a replacement of its directory, or of the
// directory above, or else path itself.
func find(path string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return path, nil // reading it returns the error
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
