package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const before = "the old content"

// oldFile returns the path of a file with the content "before", alone in a folder.
func oldFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// expect fails the test unless path has the content and is alone in its folder.
func expect(t *testing.T, path, content string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != content {
		t.Errorf("%s holds %d bytes %.40q, want %d bytes %.40q", path, len(got), got, len(content), content)
	}
	expectFiles(t, filepath.Dir(path), filepath.Base(path))
}

func expectFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%s holds %v, want %v", dir, names, want)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWriteCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	if err := Write(path, text("first")); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "first")
}

func TestWriteReplaces(t *testing.T) {
	for _, size := range []int{0, 1, bufferSize - 1, bufferSize, bufferSize + 1, 3*bufferSize + 7} {
		path := oldFile(t)
		content := strings.Repeat("x", size)
		if err := Write(path, text(content)); err != nil {
			t.Fatal(err)
		}
		expect(t, path, content)
	}
}

func TestWriteManySmallWrites(t *testing.T) {
	path := oldFile(t)
	var want bytes.Buffer
	err := Write(path, func(w io.Writer) error {
		for i := range 30011 {
			fmt.Fprintf(io.MultiWriter(w, &want), "%d,", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, path, want.String())
}

func TestOldContentWhileWriting(t *testing.T) {
	path := oldFile(t)
	err := Write(path, func(w io.Writer) error {
		if err := text(strings.Repeat("x", 2*bufferSize))(w); err != nil {
			return err
		}
		got, err := os.ReadFile(path)
		if err == nil && string(got) != before {
			err = fmt.Errorf("a reader sees %.20q, want %q", got, before)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("model", text("here")); err != nil {
		t.Fatal(err)
	}
	expectFiles(t, ".", "model")
}

func TestLongestName(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("fits")); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "fits")
}

func TestPermissions(t *testing.T) {
	// For any umask, the permissions must be the same as those that os.WriteFile sets.
	dir := t.TempDir()
	plain, path := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("x")); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(plain)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v", got.Mode(), want.Mode())
	}
}

func TestWriteErrorKeepsOld(t *testing.T) {
	path := oldFile(t)
	broken := errors.New("encoder is broken")
	err := Write(path, func(w io.Writer) error {
		if err := text(strings.Repeat("x", 2*bufferSize))(w); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap %v", err, broken)
	}
	if want := "write " + path + ": encoder is broken"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	expect(t, path, before)
}

func TestPanicKeepsOld(t *testing.T) {
	path := oldFile(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of the writer was swallowed")
			}
		}()
		Write(path, func(io.Writer) error { panic("bug") })
	}()
	expect(t, path, before)
}

func TestMissingFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "absent", "model")
	err := Write(path, func(io.Writer) error {
		t.Error("the writer ran although there is no folder")
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v is not fs.ErrNotExist", err)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "write "+path+": ") || strings.Contains(err.Error(), ".attn-") {
		t.Errorf("error %q, want one that names %s and no other file", err, path)
	}
	expectFiles(t, dir)
}

func TestRefusedTargets(t *testing.T) {
	dir := t.TempDir()
	sep := string(filepath.Separator)
	cases := []struct{ path, want string }{
		{"", "write : empty path"},
		{dir, "write " + dir + ": is a folder, want a file"},
		{filepath.Join(dir, "x") + sep, "write " + filepath.Join(dir, "x") + sep + ": is a folder, want a file"},
		{os.DevNull, "write " + os.DevNull + ": is not a regular file"},
	}
	for _, c := range cases {
		err := Write(c.path, text("x"))
		if err == nil || err.Error() != c.want {
			t.Errorf("Write(%q): error %v, want %s", c.path, err, c.want)
		}
	}
	expectFiles(t, dir)
}

func TestRenameErrorLeavesNoLitter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	err := Write(path, func(w io.Writer) error {
		return os.Mkdir(path, 0o755) // a folder appears at the target
	})
	if err == nil || !strings.HasPrefix(err.Error(), "write "+path+": ") {
		t.Errorf("error %v, want one that names %s", err, path)
	}
	expectFiles(t, dir, "model")
}

func TestNameTakenTriesAnother(t *testing.T) {
	path := oldFile(t)
	tries := 0
	err := replace(func(name string) (file, error) {
		if tries++; tries < 4 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
		}
		return create(name)
	}, File{path, text("fourth")})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, path, "fourth")
}

func TestSymlinkStays(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // creating a link requires a privilege there
	}
	path := oldFile(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, text("through the link")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	expect(t, path, "through the link")
	expectFiles(t, filepath.Dir(link), "link")
}

func TestWritersAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there, a rename may fail while another rename has the file open
	}
	path := oldFile(t)
	size := 2*bufferSize + 1
	var wg sync.WaitGroup
	for i := range 7 {
		wg.Go(func() {
			if err := Write(path, text(strings.Repeat(string(rune('a'+i)), size))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, path, strings.Repeat(string(got[:1]), size))
}

// Files of one save are replaced together: if one cannot be written, the others are unchanged.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	names := []string{"config", "vocabulary", "weights"}
	write := func(content string, failing int) error {
		var files []File
		for i, name := range names {
			files = append(files, File{filepath.Join(dir, name), func(w io.Writer) error {
				if i == failing {
					return errors.New("no room for " + name)
				}
				return text(content + name)(w)
			}})
		}
		return WriteAll(files...)
	}
	check := func(content string) {
		t.Helper()
		expectFiles(t, dir, names...)
		for _, name := range names {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content+name {
				t.Errorf("%s holds %q, %v, want %q", name, got, err, content+name)
			}
		}
	}
	if err := write("old ", -1); err != nil {
		t.Fatal(err)
	}
	check("old ")
	for i, name := range names {
		want := "write " + filepath.Join(dir, name) + ": no room for " + name
		if err := write("new ", i); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		check("old ")
	}
	if err := write("new ", -1); err != nil {
		t.Fatal(err)
	}
	check("new ")
	if err := WriteAll(); err != nil {
		t.Errorf("no files: %v", err)
	}
}
