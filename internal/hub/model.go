package hub

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Model is a model at a hub, at one commit.
type Model struct {
	Name   string
	Commit string
	// Files are those that a model is read from, of all that the hub has.
	Files []File
	hub   *Hub
}

// File is a file at a hub.
type File struct {
	Path string // with slashes, within the directory
	Size int64
	// SHA256 is the hash of a large file, and Blob that which git has of any other: the
	// SHA-1 of "blob ", the size, a zero byte and the contents. One of them is empty.
	SHA256, Blob string
}

// name is that of a model: its own, or its owner's and its own.
var name = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,95}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

// CheckName returns an error unless a model can have this name.
func CheckName(model string) error {
	if !name.MatchString(model) || strings.Contains(model, "..") || strings.HasSuffix(model, ".git") {
		return fmt.Errorf("%.100q, want a name such as sentence-transformers/all-MiniLM-L6-v2", model)
	}
	return nil
}

// Model asks for the files of a model at a revision: a branch, a tag or a commit.
//
// Errors: a *ModelError if there is no such model, or none that can be read from it;
// temporary failures of the network, after trying several times.
func (h *Hub) Model(ctx context.Context, model, revision string) (*Model, error) {
	if err := CheckName(model); err != nil {
		return nil, &ModelError{model, fmt.Errorf("is no name: %w", err)}
	}
	m := &Model{Name: model, hub: h}
	var err error
	if m.Commit, err = m.commit(ctx, revision); err != nil {
		return nil, err
	}
	all, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	m.Files, err = m.choose(ctx, all)
	return m, err
}

// bad is an error about the model.
func (m *Model) bad(format string, args ...any) error {
	return &ModelError{m.Name, fmt.Errorf(format, args...)}
}

// at returns a URL at the hub. The elements are escaped, but for the slashes of the name.
func (m *Model) at(prefix string, elements ...string) string {
	u := m.hub.endpoint.String() + prefix + "/" + m.Name
	for _, e := range elements {
		u += "/" + e
	}
	return u
}

// commit returns the commit that a revision stands for, so that all files are of one.
func (m *Model) commit(ctx context.Context, revision string) (string, error) {
	const most = 16 << 20 // it lists the files too
	data, _, err := m.hub.read(ctx, m.Name, m.at("/api/models", "revision", url.PathEscape(revision)), most)
	if err != nil {
		return "", err
	}
	var answer struct {
		Commit string `json:"sha"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || !isHex(answer.Commit, 20) {
		return "", m.bad("the hub does not say which commit %.60q is: %.60q, want one of 40 digits", revision, answer.Commit)
	}
	return answer.Commit, nil
}

func isHex(s string, bytes int) bool {
	x, err := hex.DecodeString(s)
	return err == nil && len(x) == bytes && s == strings.ToLower(s)
}

// Bounds of a list of files.
const (
	mostPages = 1000
	mostFiles = 100_000
	mostPage  = 16 << 20
)

// list returns all files of the model.
func (m *Model) list(ctx context.Context) ([]File, error) {
	var files []File
	seen := map[string]bool{}
	at := m.at("/api/models", "tree", m.Commit) + "?recursive=1"
	for range mostPages {
		data, header, err := m.hub.read(ctx, m.Name, at, mostPage)
		if err != nil {
			return nil, err
		}
		var page []entry
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, m.bad("the list of its files is not one of JSON objects: %w", err)
		}
		for _, e := range page {
			if e.Type == "directory" {
				continue
			}
			f, err := e.file()
			if err == nil && seen[f.Path] {
				err = fmt.Errorf("file %.100q is listed twice", f.Path)
			}
			if err != nil {
				return nil, m.bad("%w", err)
			}
			seen[f.Path] = true
			if files = append(files, f); len(files) > mostFiles {
				return nil, m.bad("has more than %d files", mostFiles)
			}
		}
		next := nextPage(header)
		if next == "" {
			return files, nil
		}
		base, err := url.Parse(at)
		if err == nil {
			base, err = base.Parse(next)
		}
		if err != nil || base.Host != m.hub.endpoint.Host {
			return nil, m.bad("the list of its files goes on at %.100q, want a URL at %s", next, m.hub.endpoint.Host)
		}
		at = base.String()
	}
	return nil, m.bad("the list of its files has more than %d pages", mostPages)
}

// entry is one of the list of files.
type entry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// file returns the file that an entry describes.
func (e entry) file() (File, error) {
	f := File{Path: e.Path, Size: e.Size, Blob: e.OID}
	if e.LFS != nil {
		f.Size, f.SHA256, f.Blob = e.LFS.Size, e.LFS.OID, ""
	}
	switch {
	case !within(f.Path):
		return f, fmt.Errorf("lists the file %.100q, want paths within the directory", f.Path)
	case e.Type != "file":
		return f, fmt.Errorf("lists %.100q, which is a %.20q, want files and directories", f.Path, e.Type)
	case f.Size < 0:
		return f, fmt.Errorf("lists the file %.100q with %d bytes", f.Path, f.Size)
	case f.Blob != "" && !isHex(f.Blob, 20) || f.Blob == "" && !isHex(f.SHA256, 32):
		return f, fmt.Errorf("lists the file %.100q without a hash", f.Path)
	}
	return f, nil
}

// within reports whether a path stays in its directory, on every system.
func within(p string) bool {
	return p != "" && p == path.Clean(p) && !strings.ContainsAny(p, "\\:\x00") && filepath.IsLocal(filepath.FromSlash(p)) && p != "."
}

// link is an element of a header Link that leads to the next page.
var link = regexp.MustCompile(`<([^>]*)>\s*;\s*rel="?next"?`)

func nextPage(header http.Header) string {
	if found := link.FindStringSubmatch(header.Get("Link")); found != nil {
		return found[1]
	}
	return ""
}

// small are the files beside the weights that models and tokenizers are read from.
var small = []string{
	"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "sentencepiece.bpe.model", "spiece.model",
	"source.spm", "target.spm", "target_vocab.json",
	"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json",
}

// Names of weights.
const (
	weights = "model.safetensors"
	index   = "model.safetensors.index.json"
	modules = "modules.json"
)

// pickles are weights that attn does not read.
var pickles = []string{"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack", "model.ckpt.index"}

// choose returns those of all files that the model is read from.
func (m *Model) choose(ctx context.Context, all []File) ([]File, error) {
	files := map[string]File{}
	for _, f := range all {
		files[f.Path] = f
	}
	if _, ok := files["config.json"]; !ok {
		return nil, m.bad("has no config.json, want a model in the form of transformers")
	}
	folders := []string{""}
	if f, ok := files[modules]; ok { // of sentence-transformers, which has modules in folders
		var list []struct{ Path string }
		if err := m.parse(ctx, f, &list); err != nil {
			return nil, err
		}
		for _, module := range list {
			if module.Path != "" && !within(module.Path) {
				return nil, m.bad("modules.json names the folder %.100q, want one within the directory", module.Path)
			}
			folders = append(folders, module.Path)
		}
	}
	chosen := map[string]File{}
	for _, folder := range folders {
		for _, name := range small {
			if f, ok := files[path.Join(folder, name)]; ok {
				chosen[f.Path] = f
			}
		}
		found, err := m.weights(ctx, files, folder)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			chosen[f.Path] = f
		}
	}
	if !slices.ContainsFunc(all, func(f File) bool { _, ok := chosen[f.Path]; return ok && strings.HasSuffix(f.Path, ".safetensors") }) {
		return nil, m.bad("has no model.safetensors and no model.safetensors.index.json")
	}
	var list []File
	for _, f := range chosen {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b File) int { // what is small first: it tells of errors soon
		return cmp.Or(isWeights(a)-isWeights(b), strings.Compare(a.Path, b.Path))
	})
	return list, nil
}

func isWeights(f File) int {
	if strings.HasSuffix(f.Path, ".safetensors") {
		return 1
	}
	return 0
}

// weights returns the files with the weights of a folder, none if it has none.
func (m *Model) weights(ctx context.Context, files map[string]File, folder string) ([]File, error) {
	if f, ok := files[path.Join(folder, weights)]; ok { // an index beside it would be of the same tensors
		return []File{f}, nil
	}
	if f, ok := files[path.Join(folder, index)]; ok {
		found := []File{f}
		var list struct {
			Shards map[string]string `json:"weight_map"`
		}
		if err := m.parse(ctx, f, &list); err != nil {
			return nil, err
		}
		names := map[string]bool{}
		for _, name := range list.Shards {
			if names[name] {
				continue
			}
			names[name] = true
			shard, ok := files[path.Join(folder, name)]
			if !ok || !within(name) || !strings.HasSuffix(name, ".safetensors") {
				return nil, m.bad("%s names the file %.100q, which the model does not have", f.Path, name)
			}
			found = append(found, shard)
		}
		return found, nil
	}
	for _, name := range pickles {
		if f, ok := files[path.Join(folder, name)]; ok {
			return nil, m.bad("has its weights in %s and not in model.safetensors: a pickle can run code, and attn reads none; "+
				"docs/models.md has the Python lines that write model.safetensors", f.Path)
		}
	}
	return nil, nil
}

// parse reads a file of JSON.
func (m *Model) parse(ctx context.Context, f File, v any) error {
	const most = 64 << 20
	if f.Size > most {
		return m.bad("%s has %d bytes, want at most %d", f.Path, f.Size, most)
	}
	data, _, err := m.hub.read(ctx, m.Name, m.address(f), f.Size)
	if err != nil {
		return err
	}
	sum := newSum(f)
	sum.Write(data)
	if err := sum.check(); err != nil {
		return m.bad("%w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return m.bad("%s: %w", f.Path, err)
	}
	return nil
}

// address returns where a file is.
func (m *Model) address(f File) string {
	elements := []string{"resolve", m.Commit}
	for e := range strings.SplitSeq(f.Path, "/") {
		elements = append(elements, url.PathEscape(e))
	}
	return m.at("", elements...)
}
