// Package atomicfile writes files that are either whole or not there, and
// directories of files that change together or not at all.
//
// A checkpoint that takes a minute to write is a minute in which the process
// can be killed or the disk can fill up. Writing in place would then cost the
// previous checkpoint too, so the bytes go to a new file in the same folder,
// which takes the name of the old one only when all of it is on the disk: Write.
// Files that mean something only together are made in a new folder, whose
// renaming is the moment at which all of them count: Dir.
package atomicfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// bufferSize spares callers that write a few bytes at a time a system call for
// each of them; larger writes pass through the buffer without a copy.
const bufferSize = 1 << 16

// Write replaces the file at path with what write writes. A reader of path
// finds either the old content or all of the new one at any time, and after a
// crash of the machine as well.
//
// The file is created with permissions 0644 less the umask. A symbolic link to
// a file stays a link, and the file that it points to is replaced. What exists and is
// not a regular file, such as a folder or a device, is refused, because a
// rename would put a file in its place.
//
// Errors: they name path and wrap their cause. After an error from write, from
// the disk or from the rename, and after a panic in write, the old file is
// untouched and no temporary file is left. Only a process that is killed
// leaves one, which the next Lock of its folder removes; its name begins with
// ".attn-" and ends in ".tmp".
func Write(path string, write func(io.Writer) error) error {
	return replace(create, File{path, write})
}

// File is one of several files that WriteAll writes.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// WriteAll is Write for files that mean something only together, such as
// weights and the configuration that they belong to: the first of them takes
// its name when all of them are on the disk. So no error of a writer, and no
// full disk, can leave some new and some old. Only a crash within the renames
// can, which follow each other at once.
func WriteAll(files ...File) error { return replace(create, files...) }

func replace(create func(string) (file, error), files ...File) error {
	var left []staged // those that have not taken their names
	defer func() {    // deferred, so that a panic in a writer does not leave litter
		for _, s := range left {
			discard(s.temp)
		}
	}()
	for _, f := range files {
		s, err := stage(create, f)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		left = append(left, s)
	}
	for _, f := range files {
		err := settle(left[0].temp, func() error { return rename(left[0].temp, left[0].target) })
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, cause(err))
		}
		left = left[1:]
	}
	return nil
}

// staged is a complete file that is still to take its name.
type staged struct{ temp, target string }

// stage writes a file beside the one that it is to replace. Unless it succeeds
// it leaves nothing.
func stage(create func(string) (file, error), want File) (s staged, err error) {
	if s.target, err = resolve(want.Path); err != nil {
		return s, err
	}
	var f file
	s.temp, err = makeTemp(filepath.Dir(s.target), func(name string) (err error) {
		f, err = create(name)
		return err
	})
	if err != nil {
		return s, err
	}
	whole := false
	defer func() {
		if !whole {
			discard(s.temp)
		}
	}()
	if err := fill(f, want.Write); err != nil {
		return s, err
	}
	whole = true
	return s, nil
}

// fill writes a file, brings it to the disk and closes it, also if a write fails
// or panics.
func fill(f file, write func(io.Writer) error) error {
	closed := false
	defer func() {
		if !closed {
			f.Close() // before the file is removed: windows keeps open files
		}
	}()
	buf := bufio.NewWriterSize(plain{f}, bufferSize)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	// Without this a crash soon after the rename could leave the new name on
	// blocks that never reached the disk.
	if err := f.Sync(); err != nil {
		return cause(err)
	}
	closed = true
	return cause(f.Close())
}

// resolve returns the file that a write to path is to replace.
func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty path")
	}
	// "x/" names a folder even where there is none, but its last part is "x".
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

// plain keeps the name of the temporary file, which means nothing to anybody,
// out of the errors of its writes.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	return n, cause(err)
}

// cause strips what an error of package os says about names, because replace
// names the path that the caller knows.
func cause(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

// JSON returns the file at path whose content is data as indented JSON. Characters such as
// < and & stand as they are.
func JSON(path string, data any) File {
	return File{Path: path, Write: func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(data)
	}}
}
