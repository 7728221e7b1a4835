package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
)

// Watch is told how a download goes. Its zero value tells nobody.
type Watch struct {
	// Bytes is told how many bytes of all files there are now.
	Bytes func(have, all int64)
	// Whole is told of each file that is whole.
	Whole func(f File)
}

// Download brings the files of a model to a directory. A file that is there with the right
// hash stays. Others are written beside their names, and get them when all are whole, so
// that a directory never is a part of a model that looks like all of it. After an error,
// what has come stays, and the next Download goes on from there.
//
// Errors: a *ModelError if bytes do not have the size and hash that the hub lists; a
// directory that holds files of another model; too little room on the disk; those of the
// disk and of the network.
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
	stale     map[string]bool // parts that nothing is to become of
	have, all int64
}

// part is the name of a file that is not whole. It has the hash of the whole, so that a part
// of what the file was at another commit is never continued.
func part(f File) string {
	return f.Path + "." + (f.SHA256 + f.Blob)[:16] + ".part"
}

// ofPart finds the name of the file in that of a part.
var ofPart = regexp.MustCompile(`^(.+)\.[0-9a-f]{16}\.part$`)

// at adds the directory to errors of the disk.
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

// survey finds what is missing, and refuses a directory with something else.
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

// strangers returns an error if a folder has files of a model that this one does not have:
// with these, they would make a third. It finds parts that nothing is to become of.
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
		if !ours(e.Name()) && (slices.Contains(small, e.Name()) || e.Name() == weights || e.Name() == index) {
			return fmt.Errorf("%s is there, and is not of %s, want an empty directory, or one with this model", filepath.Join(d.dir, folder, e.Name()), d.m.Name)
		}
	}
	return nil
}

// whole reports whether a file is there.
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
	return false, fmt.Errorf("%s is there with other contents than at commit %.12s of %s, want an empty directory, or one with this model",
		filepath.Join(d.dir, f.Path), d.m.Commit, d.m.Name)
}

// tell tells of more bytes.
func (d *download) tell(n int64) {
	d.have += n
	if d.watch.Bytes != nil {
		d.watch.Bytes(d.have, d.all)
	}
}

// file brings one file: its part is whole and has the right hash in the end.
func (d *download) file(ctx context.Context, f File) error {
	delete(d.stale, part(f))
	file, err := d.root.OpenFile(part(f), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // which a rename on Windows wants
	p := &partial{download: d, file: file, want: f}
	if err := p.continued(ctx); err != nil {
		return err
	}
	for again := false; ; again = true {
		// Bytes of one answer are of one file. Those of several can be of a file that changed
		// between them, and are worth a second start.
		joined := p.have > 0
		err := d.m.hub.persistently(ctx, func() (bool, error) {
			before := p.have
			if before > 0 {
				joined = true
			}
			err := p.more(ctx)
			return p.have-before >= advance, err
		})
		if err != nil {
			return err
		}
		err = p.sum.check()
		if err == nil {
			break
		}
		if bad := p.restart(); bad != nil {
			return bad
		}
		if !joined || again {
			d.stale[part(f)] = true
			return d.m.bad("%w", err)
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if d.watch.Whole != nil {
		d.watch.Whole(f)
	}
	return file.Close()
}

// advance is how many bytes make an attempt count as one that got somewhere, so that a
// server that sends one byte at a time does not keep anybody for ever.
const advance = 1 << 20

// partial is a file on its way.
type partial struct {
	*download
	file *os.File
	want File
	have int64
	sum  sum
	etag string // of the answer that the bytes came with
}

// restart throws away what has come.
func (p *partial) restart() error {
	p.tell(-p.have)
	p.have, p.sum, p.etag = 0, newSum(p.want), ""
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// continued takes what an earlier download has left.
func (p *partial) continued(ctx context.Context) error {
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	p.sum = newSum(p.want)
	if info.Size() > p.want.Size {
		return p.restart()
	}
	if err := readAll(ctx, p.sum, p.file); err != nil {
		return err
	}
	p.have = info.Size()
	p.tell(p.have)
	return nil
}

// more asks for the bytes that are missing.
func (p *partial) more(ctx context.Context) error {
	if p.have == p.want.Size {
		return nil
	}
	header := http.Header{}
	if p.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", p.have))
		if p.etag != "" {
			header.Set("If-Range", p.etag)
		}
	}
	at := p.m.address(p.want)
	answer, err := p.m.hub.get(ctx, p.m.Name, at, header)
	if err != nil {
		return err
	}
	body := answer.Body
	defer body.Close()
	if err := p.begins(answer); err != nil {
		return err
	}
	buf := make([]byte, 1<<18)
	for {
		n, err := body.Read(buf)
		if p.have+int64(n) > p.want.Size {
			return p.m.bad("%s has more than the %d bytes that are listed", p.want.Path, p.want.Size)
		}
		if n > 0 {
			if _, err := p.file.Write(buf[:n]); err != nil {
				return err
			}
			p.sum.Write(buf[:n])
			p.have += int64(n)
			p.tell(int64(n))
		}
		if err == nil {
			continue
		}
		if err == io.EOF && p.have == p.want.Size {
			return nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return unreachable(&url.Error{Op: "Get", URL: at, Err: fmt.Errorf("the connection ended after %d of %d bytes of %s: %w", p.have, p.want.Size, p.want.Path, err)})
	}
}

// begins checks what an answer says of itself: that it goes on where the part ends, or
// begins anew, and is as long as the file.
func (p *partial) begins(answer *http.Response) error {
	if answer.StatusCode == http.StatusPartialContent {
		var first, last, all int64
		said := answer.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(said, "bytes %d-%d/%d", &first, &last, &all); err != nil || first != p.have || last < first || all != p.want.Size {
			return p.m.bad("%s: the server sends the bytes %.60q, want those from %d on of %d", p.want.Path, said, p.have, p.want.Size)
		}
	} else {
		if p.have > 0 { // a server without ranges, or a file that has changed
			if err := p.restart(); err != nil {
				return err
			}
		}
		if n := answer.ContentLength; n >= 0 && n != p.want.Size {
			return p.m.bad("%s has %d bytes at the server, and %d are listed", p.want.Path, n, p.want.Size)
		}
	}
	if p.etag = answer.Header.Get("ETag"); strings.HasPrefix(p.etag, "W/") { // which If-Range does not take
		p.etag = ""
	}
	return nil
}

// readAll copies a file to a hash, until the context ends.
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

// sum is the hash of a file on its way.
type sum struct {
	hash.Hash
	of File
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
	got, want, kind := hex.EncodeToString(s.Sum(nil)), s.of.SHA256, "SHA-256"
	if want == "" {
		want, kind = s.of.Blob, "git's hash"
	}
	if got != want {
		return fmt.Errorf("%s came with %s %.12s…, want %.12s…", s.of.Path, kind, got, want)
	}
	return nil
}
