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
	"github.com/attn-go/attn/models"
)

// NewIdentity returns the identity of a job: the version of the program, the command line, and the hash of the
// model's files in a directory, without those of a pretrained model's weights if weights is false. Together with the input
// they determine the output.
func NewIdentity(version string, args []string, dir string, weights bool) (id Identity, err error) {
	files := models.TranslatorFiles()
	if target := filepath.Join(dir, files[2]); !atomicfile.Exists(target) && atomicfile.Exists(dir) {
		if files, err = pretrainedFiles(dir, weights); err != nil {
			return id, err
		}
	}
	id.Version = version
	isModel := func(name string) bool { found, err := models.Find(name); return err == nil && found == dir }
	for _, arg := range args { // the model's path may differ on another machine
		if flag, value, ok := strings.Cut(arg, "="); ok && isModel(value) {
			id.Command = append(id.Command, flag)
			arg = value
		}
		if isModel(arg) {
			arg = "MODEL"
		}
		id.Command = append(id.Command, arg)
	}
	h := sha256.New()
	for _, name := range files {
		path := filepath.Join(dir, name)
		f, err := atomicfile.Open(path)
		if err != nil {
			return id, notRead(path, err)
		}
		n, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return id, notRead(path, err)
		}
		fmt.Fprintf(h, " %s %d\n", filepath.ToSlash(name), n)
	}
	id.Model = hex.EncodeToString(h.Sum(nil))
	return id, nil
}

// notRead returns an error that says why a file of a model cannot be read.
func notRead(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &input.Error{Name: path, Err: err}
}

// pretrainedFiles returns the files of a pretrained model, including those in the folders of its pipeline: all files
// that are read, and few others. Set weights to false for a command that reads only the tokenizer.
func pretrainedFiles(dir string, weights bool) (names []string, err error) {
	read := []string{".json", ".txt", ".model", ".spm"}
	if weights {
		read = append(read, ".safetensors")
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return notRead(filepath.Join(dir, name), err)
		case name != "." && strings.HasPrefix(e.Name(), "."): // for instance of version control or of a download
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
