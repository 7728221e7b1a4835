package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tree returns the content of each file under a folder, by name. A file that does not exist has "".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// seen returns the content of the files that Read finds.
func seen(t *testing.T, dir string, names ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := Read(path, os.ReadFile)
		switch {
		case err == nil:
			all[name] = string(data)
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		case Exists(path):
			t.Errorf("%s exists and cannot be read", path)
		}
	}
	return all
}

func filesOf(content map[string]string) (files []File) {
	for name, text := range content {
		files = append(files, File{name, func(w io.Writer) error {
			// Written in two parts, so that the process can be killed between them.
			if _, err := io.WriteString(w, text[:1]+strings.Repeat(" ", bufferSize)); err != nil {
				return err
			}
			_, err := io.WriteString(w, text[1:])
			return err
		}})
	}
	return files
}

func mustLock(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type killed struct{ operation string }

// killedAt runs f and stops it before its n-th operation on the disk, as if the process were killed. It reports
// whether f has that many operations.
func killedAt(n int, f func()) (dead bool) {
	Before = func(operation, path string) {
		if n--; n < 0 {
			panic(killed{operation + " " + path})
		}
	}
	defer func() {
		Before = nil
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	f()
	return false
}

// Kill a process before each of its operations, and then also the process that cleans up. The directory must have
// either its old or its new content, and no other files.
func TestReplaceKilled(t *testing.T) {
	pad := strings.Repeat(" ", bufferSize)
	old := map[string]string{"config": "o" + pad + "ld", "weights": "o" + pad + "ld weights", "report": "o" + pad + "f old", "masked/weights": "o" + pad + "ld masked"}
	next := map[string]string{"config": "new", "weights": "new weights", "recipe": "new", "masked/weights": "new masked", "masked/config": "new"}
	want := map[string]string{}
	for name, text := range next {
		want[name] = text[:1] + pad + text[1:]
	}
	names := []string{"config", "weights", "report", "recipe", "masked/weights", "masked/config"}
	for _, before := range []map[string]string{{}, old} {
		states := 0
		for n := 0; ; n++ {
			dir := filepath.Join(t.TempDir(), "run")
			for name, text := range before {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			dead := killedAt(n, func() {
				d := mustLock(t, dir)
				defer d.Unlock()
				if err := d.Replace(filesOf(next), "report"); err != nil {
					t.Fatal(err)
				}
			})
			got := seen(t, dir, names...)
			isNew := maps.Equal(got, want)
			if !isNew && !maps.Equal(got, before) {
				t.Fatalf("killed before operation %d: neither the old files nor the new ones: %d of them", n, len(got))
			}
			if isNew && states == 0 {
				states = n
			}
			if !isNew && states > 0 {
				t.Fatalf("killed before operation %d: the old files, which operation %d has replaced", n, states)
			}
			// The next process may be killed too, or may only read.
			for m := 0; killedAt(m, func() { mustLock(t, dir).Unlock() }); m++ {
				if again := seen(t, dir, names...); !maps.Equal(again, got) {
					t.Fatalf("killed before operation %d, and repaired up to operation %d: other files", n, m)
				}
			}
			if rest := tree(t, dir); !maps.Equal(rest, got) {
				t.Fatalf("killed before operation %d: in the end the folder holds %d files, want %d", n, len(rest), len(got))
			}
			if !dead {
				if states == 0 || n < 3*len(next) {
					t.Errorf("%d operations, the step at %d: the test has not seen them all", n, states)
				}
				break
			}
		}
	}
}

// An error of a writer, an invalid name or a lock changes nothing.
func TestReplaceError(t *testing.T) {
	dir := t.TempDir()
	d := mustLock(t, dir)
	defer d.Unlock()
	if err := d.Replace(filesOf(map[string]string{"a": "one", "b": "one"})); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	broken := errors.New("broken")
	for _, c := range []struct {
		file File
		gone string
		want string
	}{
		{File{"c", func(io.Writer) error { return broken }}, "a", filepath.Join(dir, "c") + ": broken"},
		{File{"folder", text("x")}, "a", filepath.Join(dir, "folder") + ": is a folder, want a file"},
		{File{"c", text("x")}, "folder", filepath.Join(dir, "folder") + ": is a folder, want a file"},
		{File{filepath.Join("a", "c"), text("x")}, "b", filepath.Join(dir, "a") + " is not a folder"},
		{File{"a", text("x")}, "", "is a folder, want a file"},
	} {
		err := d.Replace(append(filesOf(map[string]string{"a": "two"}), c.file), c.gone)
		if err == nil || !strings.HasPrefix(err.Error(), "write ") || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("error %v, want one that ends in %q", err, c.want)
		}
		if after := tree(t, dir); !maps.Equal(after, before) {
			t.Errorf("after %v there are %d files, or others", err, len(after))
		}
	}
	if _, err := os.Stat(filepath.Join(dir, savedFolder)); err == nil {
		t.Errorf("%s is there", savedFolder)
	}
}

// If a move fails, everything is already on disk: readers find the new files, and the next replacement moves them.
func TestMoveFails(t *testing.T) {
	dir := t.TempDir()
	d := mustLock(t, dir)
	blocked := filepath.Join(dir, "b")
	Before = func(operation, path string) {
		if operation == "rename" && path == blocked {
			os.Mkdir(blocked, 0o755)
		}
	}
	err := d.Replace(filesOf(map[string]string{"a": "one", "b": "one"}))
	Before = nil
	if err == nil || !strings.HasPrefix(err.Error(), "write "+blocked+": ") {
		t.Errorf("error %v, want one that names %s", err, blocked)
	}
	if got := seen(t, dir, "a", "b"); len(got) != 2 || got["a"] != got["b"] {
		t.Errorf("found are %d files", len(got))
	}
	os.Remove(blocked)
	if err := d.Replace(filesOf(map[string]string{"c": "one"})); err != nil {
		t.Fatal(err)
	}
	d.Unlock() // otherwise there may be a lock file
	expectFiles(t, dir, "a", "b", "c")
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	d := mustLock(t, dir)
	if _, err := Lock(dir); err == nil {
		t.Error("locked twice")
	} else if want := "write to " + dir + ": another process is writing there"; !errors.Is(err, ErrInUse) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	d.Unlock()
	mustLock(t, dir).Unlock()
	if _, err := Lock(filepath.Join(oldFile(t), "x")); err == nil {
		t.Error("a folder in a file was made")
	}
}

// noLocks is a disk that does not support locks.
type noLocks struct{}

func (noLocks) TryLock() (bool, error) { return false, errors.ErrUnsupported }
func (noLocks) Unlock() error          { return errors.ErrUnsupported }

// If a folder cannot be locked, as on Windows, a file in it is locked.
func TestLockFile(t *testing.T) {
	dir := t.TempDir()
	again := func() (*Dir, error) { return lock(dir, append([]locker{noLocks{}}, lockers(dir)[1:]...)) }
	d, err := again()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again(); !errors.Is(err, ErrInUse) {
		t.Errorf("locked twice: %v", err)
	}
	d.Unlock()
	if d, err = again(); err != nil {
		t.Fatal(err)
	}
	d.Unlock()
	if err := os.RemoveAll(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, lockFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := again(); err == nil || !strings.HasPrefix(err.Error(), "write to "+dir+": ") {
		t.Errorf("a lock file that cannot be opened: error %v", err)
	}
}

// Without a lock, temporary files are kept, because another process may be writing them.
func TestNoLocks(t *testing.T) {
	dir := t.TempDir()
	var ds [2]*Dir
	err := Write(filepath.Join(dir, "a"), func(w io.Writer) (err error) {
		for i := range ds {
			if ds[i], err = lock(dir, []locker{noLocks{}, noLocks{}}); err != nil {
				return err
			}
		}
		return text("x")(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if err := d.Replace(filesOf(map[string]string{"b": "new"})); err != nil {
			t.Error(err)
		}
		d.Unlock()
	}
	expectFiles(t, dir, "a", "b")
}

// Lock removes the files that killed processes left, and no others.
func TestLockCleans(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, ".attn-0123456789abcdef.tmp")
	if err := errors.Join(os.MkdirAll(filepath.Join(stale, "masked"), 0o755), os.WriteFile(filepath.Join(stale, "masked", "x"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, ".attn-1.tmp"), nil, 0o644), os.WriteFile(filepath.Join(dir, "x.tmp"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, ".attn-notes"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	mustLock(t, dir).Unlock()
	expectFiles(t, dir, ".attn-notes", "x.tmp")
}

// Files of a replacement in progress are found through a link, from within the folder, and with a relative path.
func TestReadFromElsewhere(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "run")
	for n := 0; ; n++ {
		dead := killedAt(n, func() {
			d := mustLock(t, dir)
			defer d.Unlock()
			if err := d.Replace(filesOf(map[string]string{"a": "one", "masked/a": "one"})); err != nil {
				t.Fatal(err)
			}
		})
		if !dead {
			t.Fatal("there was no moment between")
		}
		if _, err := os.Stat(filepath.Join(dir, savedFolder)); err == nil {
			break
		}
		os.RemoveAll(dir)
	}
	t.Chdir(root)
	paths := []string{"run/a", "run/masked/a", "./run/./a"}
	if runtime.GOOS != "windows" {
		if err := errors.Join(os.Mkdir("run/masked", 0o755), os.Symlink("run", "link"), os.Symlink("run/masked", "deep")); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, "link/a", "link/masked/a", "deep/a")
	}
	for _, path := range paths {
		if !Exists(path) {
			t.Errorf("%s is not found", path)
		}
	}
	for _, folder := range []string{dir, filepath.Join(dir, "masked")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Chdir(folder)
		if !Exists("a") {
			t.Errorf("a is not found in %s", folder)
		}
	}
	if Exists("masked/b") || Exists(filepath.Join(root, "nowhere", "a")) {
		t.Error("found what is not there")
	}
}

// Creating a temporary file never overwrites an existing file.
func TestCreateIsExclusive(t *testing.T) {
	path := oldFile(t)
	if f, err := create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created %v over a file, error %v", f, err)
	}
	expect(t, path, before)
}

// abandoning is an environment variable with a folder: this test program writes there and then abandons the write.
const abandoning = "ATTN_TEST_ABANDON"

// A process that abandons a write leaves the old files unchanged.
func TestAbandon(t *testing.T) {
	if dir := os.Getenv(abandoning); dir != "" {
		started, never := make(chan int), make(chan int)
		half := func(w io.Writer) error {
			if _, err := io.WriteString(w, strings.Repeat("x", 2*bufferSize)); err != nil {
				return err
			}
			started <- 1
			<-never
			return nil
		}
		go Write(filepath.Join(dir, "model.safetensors"), half)
		go func() {
			d, err := Lock(filepath.Join(dir, "run"))
			if err == nil {
				d.Replace([]File{{"a", text("new")}, {"b", half}})
			}
		}()
		<-started
		<-started
		Abandon()
		os.Exit(7)
	}
	path := oldFile(t)
	dir := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run", "a"), []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbandon$")
	cmd.Env = append(os.Environ(), abandoning+"="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	if got := tree(t, dir); fmt.Sprint(got) != fmt.Sprint(map[string]string{"model.safetensors": before, "run/a": before}) {
		t.Errorf("left is %.200v", got)
	}
}
