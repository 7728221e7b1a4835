package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
)

// Watch contains callbacks for the progress of a download.
type Watch struct {
	// Bytes is called with the number of bytes downloaded and the total, over all files.
	Bytes func(have, all int64)
	// Whole is called with each completed file.
	Whole func(f File)
}

// Download downloads the files of a model to a directory. Existing files with the right hash are kept. The others are
// written under temporary names and renamed when all are complete, so an incomplete model never looks complete. After
// an error, the downloaded data are kept, and the next Download resumes there.
//
// Errors: an *input.Error if bytes do not have the size and hash that the hub lists; a directory with files of another
// model; too little space on the disk; I/O and network errors.
func (m *Model) Download(ctx context.Context, dir string, w Watch) error {
	lock, err := atomicfile.Lock(dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	d := &download{m: m, root: root, dir: dir, watch: w, stale: map[string]bool{}}
	if err := d.survey(ctx); err != nil {
		return d.at(err)
	}
	defer func() {
		for name := range d.stale {
			root.Remove(name)
		}
	}()
	for _, f := range d.missing {
		if err := d.file(ctx, f); err != nil {
			return d.at(err)
		}
	}
	for _, f := range d.missing {
		if err := root.Rename(part(f), f.Path); err != nil {
			return d.at(err)
		}
	}
	return nil
}

// download is one call of Download.
type download struct {
	m         *Model
	root      *os.Root
	dir       string
	watch     Watch
	missing   []File
	stale     map[string]bool // partial files that will not be used
	have, all int64
}

// ofPart extracts the name of the file from the name of its partial file.
var ofPart = regexp.MustCompile(`^(.+)\.[0-9a-f]{16}\.part$`)

// at adds the directory to I/O errors.
func (d *download) at(err error) error {
	var broken *fs.PathError
	var renamed *os.LinkError
	switch {
	case errors.As(err, &broken) && strings.HasPrefix(broken.Path, d.dir):
		return fmt.Errorf("write %s: %w", broken.Path, broken.Err)
	case errors.As(err, &broken):
		return fmt.Errorf("write %s: %w", filepath.Join(d.dir, broken.Path), broken.Err)
	case errors.As(err, &renamed):
		return fmt.Errorf("write %s: %w", filepath.Join(d.dir, renamed.New), renamed.Err)
	}
	return err
}

// survey finds the missing files. It returns an error if the directory contains other files.
func (d *download) survey(ctx context.Context) error {
	folders := map[string]bool{}
	for _, f := range d.m.Files {
		d.all += f.Size
		if folder := path.Dir(f.Path); !folders[folder] {
			folders[folder] = true
			if err := d.root.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
	}
	for folder := range folders {
		if err := d.strangers(folder); err != nil {
			return err
		}
	}
	need := int64(0)
	for _, f := range d.m.Files {
		there, err := d.whole(ctx, f)
		if err != nil {
			return err
		}
		if there {
			d.have += f.Size
			continue
		}
		d.missing = append(d.missing, f)
		delete(d.stale, part(f))
		need += f.Size
		if info, err := d.root.Stat(part(f)); err == nil {
			need -= min(info.Size(), f.Size)
		}
	}
	if free, known := freeBytes(d.dir); known && need > 0 && uint64(need) > free {
		return fmt.Errorf("write to %s: %.1f GB are needed and %.1f GB are free", d.dir, float64(need)/1e9, float64(free)/1e9)
	}
	d.tell(0)
	return nil
}

// strangers returns an error if a folder has files of another model, because mixing them with this model's files
// would give a third model. It also records partial files that will not be used.
func (d *download) strangers(folder string) error {
	entries, err := fs.ReadDir(d.root.FS(), folder)
	if err != nil {
		return err
	}
	ours := func(name string) bool {
		return slices.ContainsFunc(d.m.Files, func(f File) bool { return f.Path == path.Join(folder, name) })
	}
	for _, e := range entries {
		if p := ofPart.FindStringSubmatch(e.Name()); p != nil && ours(p[1]) {
			d.stale[path.Join(folder, e.Name())] = true
			continue
		}
		better := strings.TrimSuffix(e.Name(), ".index.json") == weights[0].name // than weights of torch.save
		if !ours(e.Name()) && (slices.Contains(small, e.Name()) || better) {
			return fmt.Errorf("%s does not belong to %s, want an empty directory, or one with this model", filepath.Join(d.dir, folder, e.Name()), d.m.Name)
		}
	}
	return nil
}

// whole reports whether the complete file exists.
func (d *download) whole(ctx context.Context, f File) (bool, error) {
	info, err := d.root.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().IsRegular() && info.Size() == f.Size {
		file, err := d.root.Open(f.Path)
		if err != nil {
			return false, err
		}
		defer file.Close()
		sum := newSum(f)
		if err := readAll(ctx, sum, file); err != nil {
			return false, err
		}
		if sum.check() == nil {
			return true, nil
		}
	}
	return false, fmt.Errorf("%s differs from commit %.12s of %s, want an empty directory, or one with this model",
		filepath.Join(d.dir, f.Path), d.m.Commit, d.m.Name)
}

// tell reports that n more bytes have arrived.
func (d *download) tell(n int64) {
	d.have += n
	d.watch.Bytes(d.have, d.all)
}
