package recording

import (
	"errors"
	"io/fs"
	"os"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/train"
)

// Film returns the recording of the run in a directory.
func Film(dir string) (*heads.Film, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, input.Errorf(dir, "is a file, want the directory of a run; use --weights for a file")
	}
	f, err := train.ReadFilm(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, input.Errorf(dir, "contains no %s, which attn train writes", train.FilmFile)
	}
	return f, err
}

// Weights returns the record in a file of weights. If the file is a film, Weights returns the record of the last frame,
// and the film.
func Weights(path string) (*heads.Record, *heads.Film, error) {
	f, err := heads.ReadFilm(path)
	if errors.Is(err, heads.ErrNotFilm) {
		r, err := heads.Read(path)
		return r, nil, err
	} else if err != nil {
		return nil, nil, err
	}
	return f.Frames[len(f.Frames)-1].Record, f, nil
}
