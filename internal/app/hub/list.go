package hub

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
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
	mostPages = 1000
	mostFiles = 100_000
	mostList  = 64 << 20 // bytes of all pages
	mostSize  = 1 << 45  // bytes of a file; mostFiles such files fit in an int64
)

// list returns all files of the model.
func (m *Model) list(ctx context.Context) ([]File, error) {
	var files []File
	seen := map[string]bool{}
	at := m.at("/api/models", "tree", m.Commit) + "?recursive=1"
	left := int64(mostList)
	for range mostPages {
		data, header, err := m.hub.read(ctx, m.Name, at, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		var page []entry
		if err := strictjson.Lenient(data, &page); err != nil {
			return nil, m.bad("the list of its files: %w", err)
		}
		for _, e := range page {
			if e.Type == "directory" {
				continue
			}
			f, err := e.file()
			if err == nil && seen[f.Path] {
				err = fmt.Errorf("file %s is listed twice", quote.Text(f.Path))
			}
			if err != nil {
				return nil, m.bad("%w", err)
			}
			seen[f.Path] = true
			if files = append(files, f); len(files) > mostFiles {
				return nil, m.bad("has more than %d files", mostFiles)
			}
		}
		found := link.FindStringSubmatch(header.Get("Link"))
		if found == nil {
			return files, nil
		}
		next := found[1]
		base, err := url.Parse(at)
		if err == nil {
			base, err = base.Parse(next)
		}
		if err != nil || base.Host != m.hub.endpoint.Host || base.Scheme != m.hub.endpoint.Scheme {
			return nil, m.bad("the list of its files continues at %s, want a URL at %s://%s",
				quote.Text(next), m.hub.endpoint.Scheme, m.hub.endpoint.Host)
		}
		at = base.String()
	}
	return nil, m.bad("the list of its files has more than %d pages", mostPages)
}

// entry is an entry in the list of files.
type entry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// file returns the file that an entry describes.
func (e entry) file() (File, error) {
	f := File{Path: e.Path, Size: e.Size, Blob: e.OID}
	if e.LFS != nil {
		f.Size, f.SHA256, f.Blob = e.LFS.Size, e.LFS.OID, ""
	}
	switch {
	case !within(f.Path):
		return f, fmt.Errorf("lists the file %s, want paths within the directory", quote.Text(f.Path))
	case e.Type != "file":
		return f, fmt.Errorf("lists %s, which is a %s, want files and directories", quote.Text(f.Path), quote.Text(e.Type))
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

// link matches an element of a Link header that leads to the next page.
var link = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?next"?`)

func isHex(s string, bytes int) bool {
	x, err := hex.DecodeString(s)
	return err == nil && len(x) == bytes && s == strings.ToLower(s)
}
