package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/attn-go/attn/internal/quote"
)

// advance is the number of bytes after which an attempt counts as progress, so that a server that sends one byte at a
// time cannot delay a download forever.
const advance = 1 << 20

// file downloads one file to its partial file, and checks the size and hash of the result.
func (d *download) file(ctx context.Context, f File) error {
	file, err := d.root.OpenFile(part(f), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // Windows requires that before a rename
	p := &partial{download: d, file: file, want: f}
	if err := p.continued(ctx); err != nil {
		return err
	}
	for again := false; ; again = true {
		// The bytes of one response are of one file. Between several responses the file may have changed, so a
		// mismatch is worth a second start.
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
	d.watch.Whole(f)
	return file.Close()
}

// part returns the name of a partial file. It contains the hash of the complete file, so that a partial file of
// another commit is never resumed.
func part(f File) string {
	return f.Path + "." + (f.SHA256 + f.Blob)[:16] + ".part"
}

// partial is a file being downloaded.
type partial struct {
	*download
	file *os.File
	want File
	have int64
	sum  sum
}

// restart discards the downloaded bytes.
func (p *partial) restart() error {
	p.tell(-p.have)
	p.have, p.sum = 0, newSum(p.want)
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// continued reads the partial file of an earlier download.
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

// more requests the missing bytes.
func (p *partial) more(ctx context.Context) error {
	if p.have == p.want.Size {
		return nil
	}
	header := http.Header{}
	if p.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", p.have))
	}
	at := p.m.address(p.want)
	answer, err := p.m.get(ctx, at, header)
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

// begins checks the headers of a response: it must continue at the end of the partial file, or start again, and give
// the size of the file.
func (p *partial) begins(answer *http.Response) error {
	if answer.StatusCode == http.StatusPartialContent {
		var first, last, all int64
		said := answer.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(said, "bytes %d-%d/%d", &first, &last, &all); err != nil || first != p.have || last < first || all != p.want.Size {
			return p.m.bad("%s: the server sends the bytes %s, want the bytes from %d of %d",
				p.want.Path, quote.Text(said), p.have, p.want.Size)
		}
	} else {
		if p.have > 0 { // the server does not support ranges, or the file has changed
			if err := p.restart(); err != nil {
				return err
			}
		}
		if n := answer.ContentLength; n >= 0 && n != p.want.Size {
			return p.m.bad("%s has %d bytes on the server, want %d, as listed", p.want.Path, n, p.want.Size)
		}
	}
	return nil
}

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
