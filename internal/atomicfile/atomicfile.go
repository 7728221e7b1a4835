// Package atomicfile writes single files atomically, and changes sets of files in a directory all together or not at
// all.
//
// While a checkpoint is being written, which may take a minute, the process can be killed or the disk can fill up.
// Writing in place would then also destroy the previous checkpoint. Write therefore writes a new file in the same
// folder and renames it only when all of its data are on disk. Dir does the same for files that belong together: it
// writes them to a new folder, and renaming that folder makes all of them current at once.
package atomicfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// bufferSize is the size of the buffer that saves system calls for writes of a few bytes. Larger writes bypass the
// buffer without a copy.
const bufferSize = 1 << 16

// sample is the number of bytes that a full disk does not have.
const sample = 1 << 12

// Write replaces the file at path with the output of write. At any time, and even after a crash of the machine, a
// reader of path finds either the old content or the complete new one.
//
// The file is created with permissions 0644 less the umask. A symbolic link to a file stays a link, and its target is
// replaced. Write fails if path is not a regular file, for instance a folder or a device, because the rename would
// replace it with a file.
//
// Errors: they name path and wrap their cause. After an error from write, from the disk or from the rename, and after
// a panic in write, the old file is unchanged and no temporary file is left. Only a killed process leaves a temporary
// file, whose name begins with ".attn-" and ends in ".tmp"; the next Lock of its folder removes it.
func Write(path string, write func(io.Writer) error) error {
	return replace(create, File{path, write})
}

// File is a file for WriteAll or Dir.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// WriteAll is Write for files that belong together, such as weights and their configuration: it renames the first
// file only when all of them are on disk. An error of a writer or a full disk therefore cannot leave a mix of new and
// old files. Only a crash between the renames can, and they follow one another immediately.
func WriteAll(files ...File) error { return replace(create, files...) }

// Ready returns the error with which Write would fail at once, for instance because the folder is read-only or the disk
// is full, so that a long job can fail before it starts. It leaves no file.
func Ready(path string) error {
	target, err := resolve(path)
	if err == nil {
		err = try(create, filepath.Dir(target))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// try returns an error unless a file of some bytes can be written to a folder. It removes this file.
func try(create func(string) (file, error), dir string) error {
	f, temp, err := createTemp(create, dir)
	if err != nil {
		return err
	}
	defer discard(temp)
	_, err = f.Write(make([]byte, sample))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return cause(err)
}

// createTemp creates a temporary file in a folder.
func createTemp(create func(string) (file, error), dir string) (f file, temp string, err error) {
	temp, err = makeTemp(dir, func(name string) (err error) {
		f, err = create(name)
		return err
	})
	return f, temp, err
}

func replace(create func(string) (file, error), files ...File) error {
	type staged struct{ temp, target string }
	var left []staged // files that are not renamed yet
	defer func() {    // deferred, so that a panic in a writer leaves no temporary file
		for _, s := range left {
			discard(s.temp)
		}
	}()
	for _, want := range files {
		target, err := resolve(want.Path)
		if err == nil {
			var f file
			var temp string
			if f, temp, err = createTemp(create, filepath.Dir(target)); err == nil {
				left = append(left, staged{temp, target})
				err = fill(f, want.Write)
			}
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", want.Path, err)
		}
	}
	for _, f := range files {
		err := commit(left[0].temp, func() error { return rename(left[0].temp, left[0].target) })
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, cause(err))
		}
		left = left[1:]
	}
	return nil
}

// fill writes a file, syncs it to disk and closes it. It also closes the file if a write fails or panics.
func fill(f file, write func(io.Writer) error) error {
	closed := false
	defer func() {
		if !closed {
			f.Close() // before the file is removed: Windows does not remove open files
		}
	}()
	buf := bufio.NewWriterSize(plain{f}, bufferSize)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	// Without Sync, a crash soon after the rename could leave the new name with blocks that never reached the disk.
	if err := f.Sync(); err != nil {
		return cause(err)
	}
	closed = true
	return cause(f.Close())
}

// resolve returns the path of the file that a write to path replaces.
func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty path")
	}
	// "x/" names a folder, even one that does not exist, but its last element is "x".
	if os.IsPathSeparator(path[len(path)-1]) {
		return "", errors.New("is a folder, want a file")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", cause(err)
	case info.IsDir():
		return "", errors.New("is a folder, want a file")
	case !info.Mode().IsRegular():
		return "", errors.New("is not a regular file")
	}
	link, err := os.Lstat(path)
	if err != nil {
		return "", cause(err)
	}
	if link.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", cause(err)
	}
	return target, nil
}

// plain removes the name of the temporary file, which is meaningless to users, from write errors.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	return n, cause(err)
}

// cause strips file names from errors of package os, because replace adds the path that the caller knows.
func cause(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

// JSON returns the file at path with data as indented JSON. Characters such as < and & are not escaped.
func JSON(path string, data any) File {
	return File{Path: path, Write: func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(data)
	}}
}

// Small is the limit of ReadFile for files of settings, and Large for those with texts, such as vocabularies and records.
const (
	Small = 64 << 20
	Large = 1 << 30
)

// Copy returns a file of a directory, to be saved in another.
func Copy(dir, name string) File {
	return File{Path: name, Write: func(w io.Writer) error {
		f, err := Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}}
}

// Open is Read with os.Open for a regular file or a directory. A name in a directory that is not trusted may link to
// something else, which is refused: opening a named pipe waits for a writer, and a device may have no end.
func Open(path string) (*os.File, error) {
	return Read(path, func(place string) (*os.File, error) {
		if info, err := os.Stat(place); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: place, Err: errors.New("is not a regular file")}
		}
		return os.Open(place)
	})
}

// ReadFile returns the content of a file that Open opens, of at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("has more than %d bytes", most)}
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrPointer}
	}
	return data, err
}

// ErrPointer is the error in place of a file that Git has not downloaded.
var ErrPointer = errors.New("is a Git LFS pointer, not the file itself: run git lfs pull, or download the model with attn fetch")
