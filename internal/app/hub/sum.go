package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// sum is the hash of a file being downloaded.
type sum struct {
	hash.Hash
	file File
}

func newSum(f File) sum {
	if f.SHA256 != "" {
		return sum{sha256.New(), f}
	}
	s := sum{sha1.New(), f}
	fmt.Fprintf(s, "blob %d\x00", f.Size)
	return s
}

// check returns an error unless the hash is the right one.
func (s sum) check() error {
	got, want, kind := hex.EncodeToString(s.Sum(nil)), s.file.SHA256, "SHA-256"
	if want == "" {
		want, kind = s.file.Blob, "git's hash"
	}
	if got != want {
		return fmt.Errorf("%s has %s %.12s…, want %.12s…", s.file.Path, kind, got, want)
	}
	return nil
}

// readAll copies a file to a hash, until the context is cancelled.
func readAll(ctx context.Context, to io.Writer, from io.Reader) error {
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		to.Write(buf[:n])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
