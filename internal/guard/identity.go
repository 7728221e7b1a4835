package guard

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// identity is where a path leads: to what exists, or below it to a place where there
// is nothing yet.
type identity struct {
	exists fs.FileInfo
	rest   string // of the path, below what exists
}

// identify follows a path as far as there is something. A link to nothing is a
// place of its own: writing replaces it.
func identify(path string) identity {
	rest := ""
	for at := path; ; {
		if info, err := os.Stat(at); err == nil {
			return identity{info, rest}
		}
		at = strings.TrimRight(at, string(filepath.Separator))
		dir, base := filepath.Split(at)
		if base == "." || base == ".." || base == "" { // of what is not there
			if clean := filepath.Join(at, rest); clean != path {
				return identify(clean)
			}
			return identity{nil, path}
		}
		if dir == "" {
			dir = "."
		} else if short := strings.TrimRight(dir, string(filepath.Separator)); short != filepath.VolumeName(dir) {
			dir = short // with a separator behind it, a file is not found
		}
		at, rest = dir, filepath.Join(base, rest)
	}
}

// is reports whether two paths lead to one place. Names that differ only in case
// are one place on some file systems; where both are still to be made that is
// reason enough.
func (a identity) is(b identity) bool {
	if (a.exists == nil) != (b.exists == nil) || a.exists != nil && !os.SameFile(a.exists, b.exists) {
		return false
	}
	return strings.EqualFold(a.rest, b.rest)
}

// Same reports whether two paths lead to one place, where there may be nothing
// yet.
func Same(a, b string) bool { return identify(a).is(identify(b)) }

// streamIdentity returns the regular file that a standard stream comes from or goes
// to, if there is one.
func streamIdentity(stream any) (identity, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return identity{}, false
	}
	info, err := f.Stat()
	return identity{exists: info}, err == nil && info.Mode().IsRegular()
}
