package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// failing is a file system on which one of three operations fails.
type failing struct {
	*os.File
	room               int // bytes before Write fails
	write, sync, close error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.write == nil || len(b) <= f.room {
		f.room -= len(b)
		return f.File.Write(b)
	}
	n, _ := f.File.Write(b[:f.room])
	f.room = 0
	return n, &fs.PathError{Op: "write", Path: f.Name(), Err: f.write}
}

func (f *failing) Sync() error {
	return errors.Join(f.sync, f.File.Sync())
}

func (f *failing) Close() error {
	return errors.Join(f.close, f.File.Close())
}

func TestDiskErrorKeepsOld(t *testing.T) {
	cases := []struct {
		name string
		disk failing
		want error
	}{
		{"full at the first byte", failing{write: syscall.ENOSPC}, syscall.ENOSPC},
		{"full in the buffer", failing{write: syscall.ENOSPC, room: bufferSize + 11}, syscall.ENOSPC},
		{"full at the last byte", failing{write: syscall.ENOSPC, room: 3*bufferSize - 1}, syscall.ENOSPC},
		{"sync", failing{sync: syscall.EIO}, syscall.EIO},
		{"close", failing{close: syscall.EIO}, syscall.EIO},
	}
	for _, c := range cases {
		for _, ignore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignored %v", c.name, ignore), func(t *testing.T) {
				path := oldFile(t)
				onDisk := func(name string) (file, error) {
					f, err := os.Create(name)
					disk := c.disk
					disk.File = f
					return &disk, err
				}
				err := replace(onDisk, File{path, func(w io.Writer) error {
					for range 3 * 64 {
						err := text(strings.Repeat("x", bufferSize/64))(w)
						if err != nil && !ignore { // an error that the writer ignores must still be returned
							return fmt.Errorf("weights: %w", err)
						}
					}
					return nil
				}})
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), ".attn-") {
					t.Errorf("error %q, want one that names %s and no other file", err, path)
				}
				expect(t, path, before)
			})
		}
	}
}

// A job that tries its output first fails before it starts, and changes nothing.
func TestReady(t *testing.T) {
	path := oldFile(t)
	dir := filepath.Dir(path)
	for _, p := range []string{path, filepath.Join(dir, "new")} {
		if err := Ready(p); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ path, want string }{
		{dir, "is a folder, want a file"},
		{filepath.Join(dir, "no", "x"), "no such file or directory"},
		{os.DevNull, "is not a regular file"},
	} {
		err := Ready(c.path)
		if err == nil || !strings.HasPrefix(err.Error(), "write "+c.path+": ") || runtime.GOOS != "windows" && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("error %v, want write %s: %s", err, c.path, c.want)
		}
	}
	for name, disk := range map[string]failing{"write": {write: syscall.ENOSPC}, "close": {close: syscall.ENOSPC}} {
		err := try(func(name string) (file, error) {
			f, err := os.Create(name)
			disk.File = f
			return &disk, err
		}, dir)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("full at %s: %v", name, err)
		}
	}
	expect(t, path, before)
	expectFiles(t, dir, filepath.Base(path))
}
