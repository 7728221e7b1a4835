package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is read up to a limit, and where a replacement of its directory has put it.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadFile(path, 4); err == nil || err.Error() != "read "+path+": has more than 4 bytes" {
		t.Errorf("error %v", err)
	}
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	if err := os.WriteFile(path, []byte(pointer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, Small); !errors.Is(err, ErrPointer) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v for a Git LFS pointer", err)
	}
	if _, err := ReadFile(filepath.Dir(path), 5); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("error %v for a directory", err)
	}
	if _, err := ReadFile(path+"b", 5); !os.IsNotExist(err) {
		t.Errorf("error %v for a file that does not exist", err)
	}
}
