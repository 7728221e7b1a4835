package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/attn-go/attn/internal/app/hub"
	"github.com/attn-go/attn/internal/quote"
)

// Download shows the progress of a download: a bar on a terminal, otherwise a line for each file.
type Download struct {
	line
	begun     time.Time
	first     int64 // bytes that an earlier command downloaded
	have, all int64
}

// NewDownload returns the progress of a download that writes its messages to w.
func NewDownload(w io.Writer) *Download { return &Download{line: newLine(w)} }

// Watch returns the functions to call during the download.
func (d *Download) Watch() hub.Watch { return hub.Watch{Bytes: d.bytes, Whole: d.whole} }

// Size returns the number of bytes downloaded and the total, as text.
func (d *Download) Size() (have, all string) { return quote.Bytes(d.have), quote.Bytes(d.all) }

func (d *Download) bytes(have, all int64) {
	if d.begun.IsZero() {
		d.begun, d.first = time.Now(), have
	}
	d.have, d.all = have, all
	if d.due() {
		rate := float64(have-d.first) / max(time.Since(d.begun).Seconds(), 0.1)
		before, after := quote.Bytes(have)+" of "+quote.Bytes(all), quote.Bytes(int64(rate))+"/s"
		d.bar(before, after, float64(have)/float64(max(all, 1)))
	}
}

func (d *Download) whole(f hub.File) {
	if d.columns == nil {
		fmt.Fprintf(d.w, "%s  %s\n", f.Path, quote.Bytes(f.Size))
	}
}

// Retry reports that a request failed and is repeated after some time.
func (d *Download) Retry(err error, after time.Duration) {
	d.Clear()
	fmt.Fprintf(d.w, "%s; retrying in %v\n", quote.Message(err.Error()), after.Round(time.Second))
}
