//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Links to pipes and devices are refused, and not waited for.
func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, to := range []string{pipe, "/dev/zero"} {
		link := filepath.Join(dir, "link")
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{to, link} {
			if _, err := ReadFile(path, 5); err == nil || err.Error() != "open "+path+": is not a regular file" {
				t.Errorf("%s: error %v", path, err)
			}
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}
