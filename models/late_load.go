package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tokenizer"
)

const (
	// colbertClass is the class in config.json of a model of the library of ColBERT, and colbertFile has its settings.
	colbertClass, colbertFile = "HF_ColBERT", "artifact.metadata"
	// pylateDense is the module of PyLate for a map of each token.
	pylateDense = "pylate.models.Dense.Dense"
	// multiVector is the model_type of late interaction in sentence-transformers.
	multiVector = "MultiVectorEncoder"
	// punctuation are the characters that documents of ColBERT and PyLate skip by default.
	punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// lateSettings are the settings of late interaction.
type lateSettings struct {
	queries, documents lateText
	native, mean       bool
	fill               int
	fixed, attend      bool   // longer queries are truncated to fill; other tokens attend to those that fill
	filling            string // their token, empty for the mask token
	skip               []string
}

// lateText are the settings of one side.
type lateText struct {
	prompt, marker string // the prompt begins with the marker, which may be a token that the tokenizer does not find in text
	length         int    // 0 for that of the model
	skips          bool
}

// LoadLateEmbedder loads a model of late interaction from a directory: a MultiVectorEncoder of sentence-transformers, a
// model of PyLate, BGE-M3, or one of the library of ColBERT, whose config.json has the class HF_ColBERT, and whose weights have
// the tensor linear.weight.
//
// Errors: those of LoadEmbedder; a *FormatError about a directory of another kind.
//
// Source: MultiVectorEncoder of sentence-transformers 6.2, which reads all three.
func LoadLateEmbedder(dir string, o Options) (*LateEmbedder, error) {
	if hasM3(dir) {
		o.Pooling = "" // of other directories
		e, err := LoadEmbedder(dir, o)
		if err != nil {
			return nil, err
		}
		return e.Late, nil
	}
	modules, err := readModules(dir)
	colbert := errors.Is(err, fs.ErrNotExist)
	if err != nil && !colbert {
		return nil, err
	}
	s, at := lateSettings{documents: lateText{skips: true}}, dir
	if !colbert {
		if err := s.readPipeline(dir, modules); err != nil {
			return nil, err
		}
		at = filepath.Join(dir, modules[0].Path)
	}
	m, err := loadReader(at, o)
	if err != nil {
		return nil, err
	}
	y := tail{width: m.Sizes().Width}
	if colbert {
		if y, err = s.readColBERT(m); err != nil {
			return nil, err
		}
	}
	most, err := m.readTransformer("feature-extraction", "feature-extraction", tokenVectors, s.readLengths)
	if err != nil {
		return nil, err
	}
	scored := colbert || !s.native
	for _, module := range modules {
		at, name := filepath.Join(dir, module.Path), path.Clean(module.Path)
		switch kind := module.kind(); {
		case module.Type == pylateDense: // which does not use the name
			err = y.readDense(at, name, tokenVectors, sentenceVector)
		case kind == "Dense":
			err = y.readDense(at, name, tokenVectors)
		case kind == "Normalize":
			err = y.readNormalize(at, tokenVectors)
		case kind == "MultiVectorMask":
			scored, err = true, s.readMask(at)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.fill > 0 && !scored {
		return nil, &FormatError{filepath.Join(dir, PipelineFile), errors.New("has no MultiVectorMask, want one for query_expansion")}
	}
	if !s.native {
		y.layers = append(y.layers, normalized)
	}
	e := &LateEmbedder{Model: m, Layers: y.layers, Mean: s.mean, width: y.width, params: y.params}
	e.files = appendExisting(appendPipeline(nil, dir), dir, colbertFile)
	if err := s.apply(e, most); err != nil {
		return nil, &FormatError{dir, err}
	}
	return e, nil
}

// IsLate reports whether a directory is that of a model of late interaction, for LoadLateEmbedder, rather than of a
// Classifier. BGE-M3 is also an Embedder.
func IsLate(dir string) bool {
	if hasM3(dir) {
		return true
	}
	modules, err := readModules(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s, err := openSettings(filepath.Join(dir, configFile))
		return err == nil && slices.Contains(s.Texts("architectures"), colbertClass)
	}
	s, err := optionalSettings(filepath.Join(dir, promptsFile))
	return slices.ContainsFunc(modules, func(m module) bool { return m.Type == pylateDense }) ||
		err == nil && slices.Contains([]string{multiVector, "ColBERT"}, s.Text("model_type", ""))
}

// readPipeline reads the settings and the list of modules of a pipeline.
func (s *lateSettings) readPipeline(dir string, modules []module) error {
	if !IsLate(dir) || len(modules) == 0 {
		return &FormatError{dir, fmt.Errorf("is not a model of late interaction, want model_type %s or ColBERT in %s, or a "+
			"module %s", multiVector, promptsFile, pylateDense)}
	}
	f, err := openSettings(filepath.Join(dir, promptsFile))
	if err != nil {
		return err
	}
	f.Ignore("__version__", "requirements")
	s.native = f.Text("model_type", "") == multiVector
	f.Only("model_type", multiVector, "ColBERT", "SentenceTransformer")
	switch name := f.Text("similarity_fn_name", ""); name {
	case "", "maxsim", "MaxSim", "cosine", "dot": // as PyLate has written it
	case "meanmaxsim":
		s.mean = true
	default:
		f.Fail("similarity_fn_name", "is %s, want maxsim or meanmaxsim", quote.Text(name))
	}
	prompts, _ := f.prompts() // no default: a text is a query or a document
	s.queries.prompt, s.documents.prompt = prompts["query"], prompts["document"]
	known := []string{"Dense", "MultiVectorMask", "Normalize", "Dropout"}
	if !s.native {
		known = []string{"Dense"}
		s.readPyLate(f)
	}
	if err := f.check(); err != nil {
		return err
	}
	for i, m := range modules {
		if err := m.checkPath(i); err != nil {
			return &FormatError{filepath.Join(dir, PipelineFile), err}
		}
		if first := m.kind() == "Transformer"; first != (i == 0) || !first && m.Type != pylateDense && !slices.Contains(known, m.kind()) {
			return &FormatError{filepath.Join(dir, PipelineFile), fmt.Errorf("module %d is %s, want a Transformer and then any of %s",
				i, quote.Text(m.Type), strings.Join(known, ", "))}
		}
	}
	return nil
}

// readPyLate reads the settings that PyLate adds to a pipeline.
func (s *lateSettings) readPyLate(f *Settings) {
	for key, side := range map[string]*lateText{"query_prefix": &s.queries, "document_prefix": &s.documents} {
		f.need(key, "the text before each text")
		side.marker = f.Text(key, "")
		side.prompt = side.marker + strings.TrimPrefix(side.prompt, side.marker)
	}
	s.documents.length = f.SizeOr("document_length", 0)
	expands := f.Bool("do_query_expansion", true)
	attend := f.Bool("attend_to_expansion_tokens", f.Bool("attend_to_mask_tokens", false))
	if length := f.SizeOr("query_length", 0); expands {
		s.fill, s.fixed, s.attend = cmp.Or(length, 32), true, attend
	} else {
		s.queries.length = length
	}
	if s.skip = strings.Split(punctuation, ""); f.Has("skiplist_words") {
		s.skip = f.Texts("skiplist_words")
	}
}

// readColBERT reads artifact.metadata of the library of ColBERT, and returns the map of hidden states to vectors.
func (s *lateSettings) readColBERT(m *Model) (tail, error) {
	net, ok := m.Network.(*stack)
	if !ok || net.tokens.layers == nil {
		return tail{}, &FormatError{m.Dir, fmt.Errorf("is not a model of late interaction, want %s, or a BERT of the class %s "+
			"with the tensor linear.weight", PipelineFile, colbertClass)}
	}
	f, err := optionalSettings(filepath.Join(m.Dir, colbertFile))
	if err != nil {
		return tail{}, err
	}
	s.queries.marker = cmp.Or(f.Text("query_token_id", ""), "[unused0]") + " "
	s.documents.marker = cmp.Or(f.Text("doc_token_id", ""), "[unused1]") + " "
	s.queries.prompt, s.documents.prompt = s.queries.marker, s.documents.marker
	s.fill, s.fixed, s.attend = f.SizeOr("query_maxlen", 32), true, f.Bool("attend_to_mask_tokens", false)
	s.documents.length = f.SizeOr("doc_maxlen", 0)
	if f.Bool("mask_punctuation", true) {
		s.skip = strings.Split(punctuation, "")
	}
	f.Only("dim", net.tokens.width)
	f.Only("interaction", "colbert")
	f.Only("similarity", "cosine")
	f.Ignore(harmlessColBERT...)
	return net.tokens, f.check()
}

// harmlessColBERT are settings of artifact.metadata that concern training, an index, or the search in it.
var harmlessColBERT = []string{
	"accumsteps", "amp", "avoid_fork_if_possible", "bsize", "centroid_score_threshold", "checkpoint", "clustering_mode",
	"collection", "distillation_alpha", "doc_token", "experiment", "gpus", "ignore_scores", "index_bsize", "index_name",
	"index_path", "index_root", "kmeans_niters", "load_index_with_mmap", "lr", "maxsteps", "meta", "model_name", "name",
	"nbits", "ncells", "ndocs", "nranks", "nway", "overwrite", "pool_factor", "protected_tokens", "queries", "query_token",
	"rank", "relu", "reranker", "resume", "root", "save_every", "total_visible_gpus", "triples", "use_ib_negatives",
	"warmup", "warmup_bert",
}

// readLengths reads the settings of late interaction of a Transformer. limited says that the length in its
// processing_kwargs replaces those of queries and documents.
func (s *lateSettings) readLengths(f *Settings, limited bool) {
	s.queries.length = f.SizeOr("query_length", s.queries.length)
	s.documents.length = f.SizeOr("document_length", s.documents.length)
	if f.null("query_expansion") {
		s.fill = 0
	}
	if x := f.Part("query_expansion"); x != nil {
		x.need("strategy", "fixed or min")
		x.Only("strategy", "fixed", "min")
		s.fill, s.fixed, s.attend, s.filling = x.Size("length"), x.Text("strategy", "") == "fixed", x.Bool("attend", false), x.Text("token", "")
	}
	if n := s.queries.length; n > 0 && n < s.fill {
		f.Fail("query_length", "is %d, want at least the length of query_expansion, %d", n, s.fill)
	}
	if limited && s.queries.length+s.documents.length > 0 {
		f.Fail("processing_kwargs", "has max_length beside query_length or document_length, want one of them")
	}
}

// readMask reads a MultiVectorMask.
func (s *lateSettings) readMask(dir string) error {
	f, err := optionalSettings(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	s.skip = f.Texts("skiplist_words")
	f.Only("keep_only_token_ids", []int{})
	tasks := []string{"document"}
	if f.Has("skiplist_tasks") {
		tasks = f.textOrTexts("skiplist_tasks")
	}
	for _, name := range tasks {
		if name != "query" && name != "document" {
			f.Fail("skiplist_tasks", "has %s, want query or document", quote.Text(name))
		}
	}
	s.queries.skips, s.documents.skips = slices.Contains(tasks, "query"), slices.Contains(tasks, "document")
	return f.check()
}

// apply sets the two sides of e. most is the length of the model.
func (s *lateSettings) apply(e *LateEmbedder, most int) (err error) {
	t, err := e.Model.Tokenizer()
	if err != nil {
		return err
	}
	if e.Queries, err = s.queries.texts(e, t, most, s.skip); err != nil {
		return err
	}
	if e.Documents, err = s.documents.texts(e, t, most, s.skip); err != nil || s.fill == 0 {
		return err
	}
	q, ok := e.Queries, true
	switch q.fill, q.attend = s.fill, s.attend; {
	case s.fixed:
		q.MostTokens = s.fill
	case s.queries.length == 0:
		q.MostTokens = max(most, s.fill)
	}
	if s.filling == "" {
		q.filling, err = e.Model.MaskToken()
	} else if q.filling, ok = t.ID(s.filling); !ok {
		err = fmt.Errorf("query_expansion has the token %s, want one of the vocabulary", quote.Text(s.filling))
	}
	if z := e.Model.Sizes(); err == nil && z.Positions > 0 && q.MostTokens > z.Positions {
		err = fmt.Errorf("queries have %d tokens, want at most %d", q.MostTokens, z.Positions)
	}
	if beside := e.Model.tokens; err == nil && beside != nil && beside.Text("padding_side", "") == "left" {
		err = errors.New("padding_side is left, want right for queries that are filled")
	}
	if err == nil && !q.attend {
		err = e.Model.wantUnseen(q.fill)
	}
	return err
}

// wantUnseen returns an error unless queries that are filled to n tokens can have tokens that no other attends to. Each of
// them must see the first token of a text, since transformers has no rule for a token that sees nothing.
func (m *Model) wantUnseen(n int) error {
	net, ok := m.Network.(*stack)
	if !ok || slices.ContainsFunc(net.blocks, func(b *block) bool { return b.mixer != nil }) {
		return errors.New("has layers without a mask, want tokens that fill a query to be attended to")
	}
	for _, b := range net.blocks {
		if b.window > 0 && n > b.window/2+1 {
			return fmt.Errorf("fills queries to %d tokens, to which no other attends, want at most %d, half the window of a layer", n, b.window/2+1)
		}
	}
	return nil
}

// texts returns one side of e.
func (s lateText) texts(e *LateEmbedder, t *tokenizer.Tokenizer, most int, skip []string) (*LateTexts, error) {
	y := &LateTexts{embedder: e, MostTokens: cmp.Or(s.length, most), Prompt: s.prompt, skip: map[int]bool{}}
	if n := e.Model.Sizes().Positions; n > 0 {
		y.MostTokens = min(y.MostTokens, n)
	}
	for _, word := range skip {
		if id, ok := t.ID(word); ok && s.skips {
			y.skip[id] = true
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s.marker), " ")
	if first == "" {
		return y, nil
	}
	plain := tokenizer.Options{NoSpecial: true, NoTruncation: true, NoPadding: true}
	for _, name := range []string{s.marker, first} {
		id, ok := t.ID(name)
		if !ok {
			continue
		}
		if x, err := t.Encode(name, plain); err == nil && slices.Equal(x.IDs, []int{id}) {
			break // the tokenizer finds it
		}
		plain.NoSpecial = false
		x, err := t.Encode("a", plain)
		if err != nil {
			return nil, err
		}
		if y.begin = slices.Index(x.Texts, 0); y.begin < 0 {
			return nil, fmt.Errorf("the marker %s needs a token before which it is, want one for the letter a", quote.Text(name))
		}
		y.marker, y.Prompt = []int{id}, strings.Replace(s.prompt, name, "", 1)
		break
	}
	return y, nil
}
