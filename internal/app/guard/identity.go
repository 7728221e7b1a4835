package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// identity is the location of a path: its longest existing part, and the remaining part as text.
type identity struct {
	exists fs.FileInfo
	rest   string // the part of the path that does not exist
}

// identify returns the location of a path. A dangling link is a separate location: writing replaces
// the link.
func identify(path string) identity {
	rest := ""
	for at := path; ; {
		if info, err := os.Stat(at); err == nil {
			return identity{info, rest}
		}
		at = strings.TrimRight(at, string(filepath.Separator))
		dir, base := filepath.Split(at)
		if base == "." || base == ".." || base == "" { // relative to a missing directory
			if clean := filepath.Join(at, rest); clean != path {
				return identify(clean)
			}
			return identity{nil, path}
		}
		if dir == "" {
			dir = "."
		} else if short := strings.TrimRight(dir, string(filepath.Separator)); short != filepath.VolumeName(dir) {
			dir = short // os.Stat fails for a file with a trailing separator
		}
		at, rest = dir, filepath.Join(base, rest)
	}
}

// is reports whether two paths are the same location. Names of new files that differ only in case
// count as the same, because they are on some file systems.
func (a identity) is(b identity) bool {
	if (a.exists == nil) != (b.exists == nil) || a.exists != nil && !os.SameFile(a.exists, b.exists) {
		return false
	}
	return strings.EqualFold(a.rest, b.rest)
}

// Same reports whether two paths, of existing or new files, are the same location.
func Same(a, b string) bool { return identify(a).is(identify(b)) }

// streamIdentity returns the regular file that a standard stream is redirected to, if any.
func streamIdentity(stream any) (identity, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return identity{}, false
	}
	info, err := f.Stat()
	return identity{exists: info}, err == nil && info.Mode().IsRegular()
}
