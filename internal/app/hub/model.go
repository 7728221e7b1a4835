package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// Model is a model on a hub, at one commit.
type Model struct {
	Name   string
	Commit string
	// Files are the files that attn reads a model from, among all files on the hub.
	Files []File
	hub   *Hub
}

// validName returns an expression for the name of a model, optionally preceded by its owner's name.
var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,95}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
})

// CheckName returns an error unless model is a valid name.
func CheckName(model string) error {
	if !validName().MatchString(model) || strings.Contains(model, "..") || strings.HasSuffix(model, ".git") {
		return fmt.Errorf("%s, want a name such as sentence-transformers/all-MiniLM-L6-v2", quote.Text(model))
	}
	return nil
}

// Model requests the list of files of a model at a revision: a branch, a tag or a commit.
//
// Errors: an *input.Error if there is no such model, or if attn cannot read it; temporary network failures, after
// several attempts.
func (h *Hub) Model(ctx context.Context, model, revision string) (*Model, error) {
	m := &Model{Name: model, hub: h}
	if err := CheckName(model); err != nil {
		return nil, m.bad("invalid name: %w", err)
	}
	all, err := m.list(ctx, revision)
	if err != nil {
		return nil, err
	}
	m.Files, err = m.choose(ctx, all)
	return m, err
}

// bad returns the error for a problem with the contents of a hub or with the permission to read them. Retrying does not
// help.
func (m *Model) bad(format string, args ...any) error {
	return input.Errorf("hub: "+quote.Name(m.Name), format, args...)
}

// small are the files besides the weights that models and tokenizers are read from.
var small = append([]string{
	"config.json", "generation_config.json", modules, "config_sentence_transformers.json", router,
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json", "sentence_camembert_config.json",
	"sentence_albert_config.json", "sentence_xlm-roberta_config.json", "sentence_xlnet_config.json",
	"artifact.metadata", "sparse_linear.pt", "colbert_linear.pt", // of ColBERT, and of BGE-M3
}, modeldir.TokenizerFiles...)

const (
	modules = "modules.json"
	router  = "router_config.json"
)

// weights are the files that attn reads weights from, with the names of the parts that an index lists, the best first.
var weights = []struct{ name, suffix string }{{"model.safetensors", ".safetensors"}, {"pytorch_model.bin", ".bin"}}

// foreign are weights that attn does not read.
var foreign = []string{"tf_model.h5", "flax_model.msgpack", "model.ckpt.index"}

// choose returns the files that the model is read from, among all its files.
func (m *Model) choose(ctx context.Context, all []File) ([]File, error) {
	files := map[string]File{}
	for _, f := range all {
		files[f.Path] = f
	}
	_, single := files["config.json"]
	if _, ok := files[modules]; !ok && !single {
		return nil, m.bad("has no config.json, want a model in the form of transformers")
	}
	folders := []string{""}
	if f, ok := files[modules]; ok { // sentence-transformers has modules in folders
		var list []struct{ Path string }
		if err := m.parse(ctx, f, &list); err != nil {
			return nil, err
		}
		for _, module := range list {
			if module.Path != "" && module.Path != "." && !within(module.Path) {
				return nil, m.bad("modules.json names the folder %s, want one within the directory", quote.Text(module.Path))
			}
			folders = append(folders, module.Path)
			if f, ok := files[path.Join(module.Path, router)]; ok { // which has modules in folders, too
				var routes struct{ Types map[string]string }
				if err := m.parse(ctx, f, &routes); err != nil {
					return nil, err
				}
				for id := range routes.Types {
					if !within(id) {
						return nil, m.bad("%s names the folder %s, want one within the directory", f.Path, quote.Text(id))
					}
					folders = append(folders, path.Join(module.Path, id))
				}
			}
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
	list := slices.Collect(maps.Values(chosen))
	if !slices.ContainsFunc(list, func(f File) bool { return isWeights(f) > 0 }) {
		return nil, m.bad("has no model.safetensors, model.safetensors.index.json or pytorch_model.bin")
	}
	slices.SortFunc(list, func(a, b File) int { // small files first: errors in them are found early
		return cmp.Or(isWeights(a)-isWeights(b), strings.Compare(a.Path, b.Path))
	})
	return list, nil
}

func isWeights(f File) int {
	for _, w := range weights {
		if strings.HasSuffix(f.Path, w.suffix) {
			return 1
		}
	}
	return 0
}

// weights returns the files with the weights of a folder, or none.
func (m *Model) weights(ctx context.Context, files map[string]File, folder string) ([]File, error) {
	for _, w := range weights {
		if f, ok := files[path.Join(folder, w.name)]; ok { // then an index beside it lists the same tensors
			return []File{f}, nil
		}
		f, ok := files[path.Join(folder, w.name+".index.json")]
		if !ok {
			continue
		}
		found := []File{f}
		var list struct {
			Shards map[string]string `json:"weight_map"`
		}
		if err := m.parse(ctx, f, &list); err != nil {
			return nil, err
		}
		for _, name := range slices.Compact(slices.Sorted(maps.Values(list.Shards))) {
			shard, ok := files[path.Join(folder, name)]
			if !ok || !within(name) || !strings.HasSuffix(name, w.suffix) {
				return nil, m.bad("%s names the file %s, which the model does not have", f.Path, quote.Text(name))
			}
			found = append(found, shard)
		}
		return found, nil
	}
	for _, name := range foreign {
		if f, ok := files[path.Join(folder, name)]; ok {
			return nil, m.bad("has its weights in %s, which attn does not read, and not in model.safetensors: "+
				"docs/models.md has the Python lines that write model.safetensors", f.Path)
		}
	}
	return nil, nil
}

// parse parses a JSON file.
func (m *Model) parse(ctx context.Context, f File, v any) error {
	const most = 64 << 20
	if f.Size > most {
		return m.bad("%s has %d bytes, want at most %d", f.Path, f.Size, most)
	}
	data, err := m.read(ctx, m.address(f), f.Size)
	if err != nil {
		return err
	}
	sum := newSum(f)
	sum.Write(data)
	if err := sum.check(); err != nil {
		return m.bad("%w", err)
	}
	if err := strictjson.Lenient(data, v); err != nil {
		return m.bad("%s: %w", f.Path, err)
	}
	return nil
}

// address returns the URL of a file.
func (m *Model) address(f File) string {
	at := fmt.Sprintf("%s/%s/resolve/%s", m.hub.endpoint, m.Name, m.Commit)
	for e := range strings.SplitSeq(f.Path, "/") {
		at += "/" + url.PathEscape(e)
	}
	return at
}
