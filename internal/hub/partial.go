package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// advance is how many bytes make an attempt count as one that got somewhere, so that a
// server that sends one byte at a time does not keep anybody for ever.
const advance = 1 << 20

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

// part is the name of a file that is not whole. It has the hash of the whole, so that a part
// of what the file was at another commit is never continued.
func part(f File) string {
	return f.Path + "." + (f.SHA256 + f.Blob)[:16] + ".part"
}

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
			return p.m.bad("%s: the server sends the bytes %s, want those from %d on of %d",
				p.want.Path, quote.Text(said), p.have, p.want.Size)
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
