package hub

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// File is a file on a hub.
type File struct {
	Path string // slash-separated, within the directory
	Size int64
	// SHA256 is the hash of a large file. Blob is the git hash of any other file: the SHA-1 of "blob ", the size, a
	// zero byte and the contents. One of them is empty.
	SHA256, Blob string
}

// Limits for a list of files.
const (
	mostFiles = 100_000
	mostList  = 64 << 20 // bytes
	mostSize  = 1 << 45  // bytes of a file; mostFiles such files fit in an int64
)

// list returns all files of the model at a revision, and sets the commit, so that all files are of the same one.
func (m *Model) list(ctx context.Context, revision string) ([]File, error) {
	at := fmt.Sprintf("%s/api/models/%s/revision/%s?blobs=true", m.hub.endpoint, m.Name, url.PathEscape(revision))
	data, err := m.read(ctx, at, mostList)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Commit string  `json:"sha"`
		Files  []entry `json:"siblings"`
	}
	if err := strictjson.Lenient(data, &answer); err != nil {
		return nil, m.bad("the list of its files: %w", err)
	}
	if m.Commit = answer.Commit; !isHex(m.Commit, 20) {
		return nil, m.bad("revision %s has the commit %s, want 40 hexadecimal digits", quote.Text(revision), quote.Text(m.Commit))
	}
	if n := len(answer.Files); n > mostFiles {
		return nil, m.bad("has %d files, want at most %d", n, mostFiles)
	}
	var files []File
	seen := map[string]bool{}
	for _, e := range answer.Files {
		f, err := e.file()
		if err == nil && seen[f.Path] {
			err = fmt.Errorf("file %s is listed twice", quote.Text(f.Path))
		}
		if err != nil {
			return nil, m.bad("%w", err)
		}
		seen[f.Path] = true
		files = append(files, f)
	}
	return files, nil
}

// entry is an entry in the list of files. The last fields are of a large file, whose Blob is that of a pointer to it.
type entry struct {
	Path string `json:"rfilename"`
	Size int64  `json:"size"`
	Blob string `json:"blobId"`
	LFS  *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// file returns the file that an entry describes.
func (e entry) file() (File, error) {
	f := File{Path: e.Path, Size: e.Size, Blob: e.Blob}
	if e.LFS != nil {
		f.Size, f.SHA256, f.Blob = e.LFS.Size, e.LFS.SHA256, ""
	}
	switch {
	case !within(f.Path):
		return f, fmt.Errorf("lists the file %s, want paths within the directory", quote.Text(f.Path))
	case f.Size < 0 || f.Size > mostSize:
		return f, fmt.Errorf("lists the file %s with %d bytes, want 0 to %d", quote.Text(f.Path), f.Size, int64(mostSize))
	case f.Blob != "" && !isHex(f.Blob, 20) || f.Blob == "" && !isHex(f.SHA256, 32):
		return f, fmt.Errorf("lists the file %s without a hash", quote.Text(f.Path))
	}
	return f, nil
}

// within reports whether a path stays in its directory, on every operating system, and is safe to print to a terminal.
func within(p string) bool {
	return quote.Fit(p) && p == path.Clean(p) && !strings.ContainsAny(p, `\:`) && filepath.IsLocal(filepath.FromSlash(p)) && p != "."
}

func isHex(s string, bytes int) bool {
	x, err := hex.DecodeString(s)
	return err == nil && len(x) == bytes && s == strings.ToLower(s)
}
