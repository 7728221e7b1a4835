package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Small is the limit of ReadFile for files of settings, and Large for those with texts, such as vocabularies and records.
const (
	Small = 64 << 20
	Large = 1 << 30
)

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
