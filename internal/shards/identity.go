package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
)

// NewIdentity returns what the lines of a command's output follow from: the version of the program,
// the command line, and the files of the model in a directory.
func NewIdentity(version string, args []string, dir string, files []string) (id Identity, err error) {
	id.Version = version
	for _, arg := range args { // the model may be elsewhere on another machine
		if flag, value, ok := strings.Cut(arg, "="); ok && value == dir {
			id.Command = append(id.Command, flag)
			arg = value
		}
		if arg == dir {
			arg = "MODEL"
		}
		id.Command = append(id.Command, arg)
	}
	h := sha256.New()
	for _, name := range files {
		path := filepath.Join(dir, name)
		err := atomicfile.Read(path, func(place string) error {
			f, err := os.Open(place)
			if err != nil {
				return err
			}
			defer f.Close()
			n, err := io.Copy(h, f)
			fmt.Fprintf(h, " %s %d\n", filepath.ToSlash(name), n)
			return err
		})
		if err != nil {
			return id, notRead(path, err)
		}
	}
	id.Model = hex.EncodeToString(h.Sum(nil))
	return id, nil
}

// notRead says why a file of a model cannot be read.
func notRead(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &input.Error{Name: path, Err: err}
}

// PretrainedFiles returns the files of a pretrained model, with those in the folders of its
// pipeline: what is read, and few others. Weights are left out for a command that reads only
// the tokenizer.
func PretrainedFiles(dir string, weights bool) (names []string, err error) {
	read := []string{".json", ".txt", ".model", ".spm"}
	if weights {
		read = append(read, ".safetensors")
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return notRead(filepath.Join(dir, name), err)
		case name != "." && strings.HasPrefix(e.Name(), "."): // of a version control or a download
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && slices.Contains(read, filepath.Ext(name)):
			names = append(names, filepath.FromSlash(name))
		}
		return nil
	})
	return names, err
}
