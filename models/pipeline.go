package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/modeldir"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// ErrNoPipeline is the error of LoadEmbedder for a directory without modules.json.
var ErrNoPipeline = errors.New("has no modules.json, which defines how hidden states are pooled into a vector; " +
	"want modules.json, or a pooling: Options.Pooling, or --pooling of attn embed, such as mean")

// LoadEmbedder loads a sentence-transformers pipeline from a directory: modules.json and the
// modules that it names, which are a transformer, a pooling, dense layers and a normalisation; a
// SparseEncoder; a StaticEmbedding; or, with Options.Route, those of a Router. With Options.Pooling, it
// loads a model and pools its hidden states.
//
// Errors: those of Load; a *FormatError about the files of the pipeline, among them a
// directory without modules.json.
func LoadEmbedder(dir string, o Options) (*Embedder, error) {
	o.encoder = true
	if o.Pooling != "" {
		p, err := PoolingByName(o.Pooling)
		if err != nil && o.Pooling != splade {
			return nil, fmt.Errorf("models: Options.Pooling is %w", err)
		}
		m, err := loadReader(dir, o)
		if err != nil {
			return nil, err
		}
		e := NewEmbedder(m, []Pooling{p})
		if o.Pooling == splade {
			return e, e.poolSplade(false, false)
		}
		return e, cmp.Or(e.setTask(""), e.readDimensions())
	}
	if IsLate(dir) && !hasM3(dir) {
		return nil, &FormatError{dir, errors.New("is a model of late interaction, whose vectors are those of tokens, " +
			"want LoadLateEmbedder, or attn rerank")}
	}
	list := filepath.Join(dir, PipelineFile)
	modules, err := readModules(dir)
	if err != nil {
		if why := modeldir.Explain(dir, configFile, PipelineFile); why != nil {
			return nil, &FormatError{dir, why}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(missing(dir), error(&FormatError{dir, ErrNoPipeline}))
	}
	if err != nil {
		return nil, err
	}
	if modules, _, err = followRoute(dir, modules, o.Route); err != nil {
		return nil, err
	}
	if err := checkModules(modules); err != nil {
		return nil, &FormatError{list, err}
	}
	var e *Embedder
	var y tail
	var kinds []string
	for _, m := range modules {
		kinds = append(kinds, m.kind())
	}
	for i, m := range modules {
		at := filepath.Join(dir, m.Path)
		switch kinds[i] {
		case "Transformer", "MLMTransformer":
			e, err = loadTransformer(at, o, kinds[0], kinds[1])
		case "StaticEmbedding":
			e, err = loadStatic(at, o, slices.Contains(kinds, "Normalize"))
		case "SparseStaticEmbedding":
			e, err = loadWeights(at, o)
		case "Pooling":
			err = e.readPooling(at)
		case "SpladePooling":
			err = e.readSplade(at)
		case "Dense":
			err = y.readDense(at, path.Clean(m.Path), sentenceVector)
		case "Normalize":
			err = y.readNormalize(at, sentenceVector)
		}
		if err != nil {
			return nil, err
		}
		if y.layers == nil { // the pooling may have some
			y.layers, y.width = e.Layers, e.width
		}
	}
	e.Layers, e.width, e.params, e.files = y.layers, y.width, y.params, appendPipeline(nil, dir)
	kind := sentenceTransformer
	if e.sparse {
		kind = sparseEncoder
	}
	prompts, usual, first, err := readPrompts(dir, kind)
	e.Prompts, e.Prompt = prompts, prompts[usual]
	if err = cmp.Or(err, e.setTask(modules[0].Type)); err == nil && hasM3(dir) {
		err = e.readM3(dir)
	}
	if err = cmp.Or(err, e.readDimensions()); first > 0 && first < e.width {
		e.Layers, e.width = append(e.Layers, firstElements(first)), first
		e.Dimensions = slices.DeleteFunc(e.Dimensions, func(n int) bool { return n > first })
	}
	return e, err
}

// module is an entry of modules.json.
type module struct {
	Path, Type string
	Idx        int    // its number
	Name       string // the same
	Kwargs     []string
}

// readModules reads the modules.json of a directory.
func readModules(dir string) (list []module, err error) {
	return list, readJSON(filepath.Join(dir, PipelineFile), &list)
}

// checkModules returns an error for modules that LoadEmbedder does not support.
func checkModules(modules []module) error {
	for i, m := range modules {
		if err := m.checkPath(i); err != nil {
			return err
		}
	}
	before := ""
	for i, m := range modules {
		if known := following[before]; !slices.Contains(known, m.kind()) {
			return fmt.Errorf("module %d is %s, want %s", i, quote.Text(m.Type), cmp.Or(strings.Join(known, ", "), "no module behind "+before))
		}
		before = m.kind()
	}
	if slices.Contains(following[before], "Pooling") || before == "" || before == "MLMTransformer" {
		return fmt.Errorf("has %d modules, want a Transformer and a Pooling at least", len(modules))
	}
	return nil
}

// checkPath returns an error if the path of module i is not within the directory.
func (m module) checkPath(i int) error {
	if m.Path != "" && !(filepath.IsLocal(m.Path) && quote.Fit(m.Path)) {
		return fmt.Errorf("module %d has path %s, want one within the directory", i, quote.Text(m.Path))
	}
	return nil
}

// following are the classes of modules that may be behind a module, by its class; empty is the beginning. Dropout only
// matters in training.
var following = map[string][]string{
	"":                {"Transformer", "MLMTransformer", "StaticEmbedding", "SparseStaticEmbedding"},
	"Transformer":     {"Pooling", "SpladePooling"},
	"MLMTransformer":  {"SpladePooling"},
	"Pooling":         {"Dense", "Normalize", "Dropout"},
	"StaticEmbedding": {"Dense", "Normalize", "Dropout"},
	"Dense":           {"Dense", "Normalize", "Dropout"},
	"Normalize":       {"Dense", "Normalize", "Dropout"},
	"Dropout":         {"Dense", "Normalize", "Dropout"},
}

// routeFile lists the modules of a Router, by route.
const routeFile = "router_config.json"

// readRouter reads the settings of a Router, nil with an error if there are none.
func readRouter(dir string, m module) (*Settings, error) {
	if err := m.checkPath(0); err != nil {
		return nil, &FormatError{filepath.Join(dir, PipelineFile), err}
	}
	s, err := openSettings(filepath.Join(dir, m.Path, routeFile))
	if errors.Is(err, fs.ErrNotExist) { // its name in versions before 5
		s, err = openSettings(filepath.Join(dir, m.Path, configFile))
	}
	return s, err
}

// types returns the classes of the modules of a Router, by their folders.
func (s *Settings) types() map[string]string {
	return get[map[string]string](s, "types", "an object of classes by module", nil)
}

// followRoute returns the modules of a pipeline with those of a route in place of a Router, if that is the first module.
// An empty name is the default route. routes are the names of all routes, beginning with that one.
//
// Source: Router of sentence-transformers.
func followRoute(dir string, modules []module, name string) (list []module, routes []string, err error) {
	if len(modules) == 0 || modules[0].kind() != "Router" {
		if name != "" && (len(modules) == 0 || modules[0].Type != customTransformer) {
			return nil, nil, &FormatError{dir, fmt.Errorf("has no Router, want no route; got %s", quote.Text(name))}
		}
		return modules, nil, nil
	}
	s, err := readRouter(dir, modules[0])
	if err != nil {
		return nil, nil, err
	}
	types := s.types()
	all := get[map[string][]string](s, "structure", "an object of lists of modules by route", nil)
	if p := s.Part("parameters"); p != nil {
		name = cmp.Or(name, p.Text("default_route", ""))
		p.Ignore("allow_empty_key", "default_route")
		p.Only("route_mappings", map[string]any{})
	}
	route, ok := all[name]
	if !ok {
		s.Fail("structure", "has no route %s, want one of %s", quote.Text(name), quote.Texts(slices.Sorted(maps.Keys(all))))
	}
	list = make([]module, len(route))
	for i, id := range route {
		list[i] = module{Path: path.Join(modules[0].Path, id), Type: types[id]}
	}
	delete(all, name)
	return append(list, modules[1:]...), append([]string{name}, slices.Sorted(maps.Keys(all))...), s.check()
}

// transformerFolder returns the folder of the transformer according to modules.json. It is empty
// if that is the directory itself or unknown.
func transformerFolder(dir string) string {
	modules, err := readModules(dir)
	if err != nil || len(modules) == 0 || !filepath.IsLocal(modules[0].Path) {
		return ""
	}
	return modules[0].Path
}

// appendPipeline appends the paths of the files of a pipeline, if a directory has one:
// modules.json, related files beside it, and all files in the folders of modules.
func appendPipeline(files []string, dir string) []string {
	modules, err := readModules(dir)
	if err != nil && !errors.As(err, new(*FormatError)) { // LoadEmbedder reports invalid modules
		return files
	}
	files = appendExisting(files, dir, append([]string{PipelineFile, promptsFile, routeFile}, lengthFiles...)...)
	if len(modules) > 0 && modules[0].kind() == "Router" {
		if s, err := readRouter(dir, modules[0]); err == nil {
			for id := range s.types() {
				modules = append(modules, module{Path: path.Join(modules[0].Path, id)})
			}
		}
	}
	for _, m := range modules {
		if !filepath.IsLocal(m.Path) || filepath.Clean(m.Path) == "." { // the model's own folder
			continue
		}
		folder := filepath.Join(dir, m.Path)
		entries, _ := os.ReadDir(folder) // old pipelines have no folder for a module without settings
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(folder, e.Name()))
			}
		}
	}
	return files
}

// appendExisting appends the paths of the named files that exist in a directory.
func appendExisting(files []string, dir string, names ...string) []string {
	for _, name := range names {
		if path := filepath.Join(dir, name); !slices.Contains(files, path) {
			if _, err := os.Stat(path); err == nil {
				files = append(files, path)
			}
		}
	}
	return files
}

// kind returns the class name of a sentence-transformers module, whose package path differs
// between versions. It is empty for a class of another package.
func (m module) kind() string {
	if m.Type == customTransformer { // setTask checks what the model is
		return "Transformer"
	}
	if !strings.HasPrefix(m.Type, "sentence_transformers.") {
		return ""
	}
	return m.Type[strings.LastIndex(m.Type, ".")+1:]
}

// PipelineFile lists the modules of a sentence-transformers pipeline; other directories lack it.
const PipelineFile = "modules.json"

// promptsFile has the kind of a pipeline and its prompts.
const promptsFile = "config_sentence_transformers.json"

// lengthFiles are the names of the settings of a transformer, the newest first; a pipeline has one.
var lengthFiles = []string{
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
	"sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
	"sentence_xlnet_config.json",
}

// mostTokens returns the token limit of the model or, if that is smaller, of its tokenizer.
func (m *Model) mostTokens() int {
	most := cmp.Or(m.Sizes().Positions, math.MaxInt32)
	return int(min(float64(most), m.limit))
}

// limitKey is the setting of a tokenizer that readBeside returns.
const limitKey = "model_max_length"

// loadTransformer reads the first module of a pipeline. kind is its class, and behind that of the second module.
func loadTransformer(dir string, o Options, kind, behind string) (*Embedder, error) {
	task, usual := "feature-extraction", "feature-extraction"
	if behind == "SpladePooling" {
		task = "fill-mask"
	}
	if kind == "MLMTransformer" {
		usual = "fill-mask"
	}
	m, err := loadReader(dir, o)
	if err != nil {
		return nil, err
	}
	e := NewEmbedder(m, nil)
	e.MostTokens, err = m.readTransformer(task, usual, tokenVectors, nil)
	return e, err
}

// readTransformer reads the settings of the transformer of a pipeline, in the first file that there is, and returns the
// length to which it truncates texts. task is what the pipeline uses the model for, usual the task if the settings name
// none, and output the name of its output. late, if not nil, reads the settings of late interaction, with the other
// settings of lengths.
func (m *Model) readTransformer(task, usual, output string, late func(s *Settings, limited bool)) (most int, err error) {
	most = m.mostTokens()
	file, key := tokenizerConfigFile, limitKey
	var s *Settings
	for _, file := range lengthFiles {
		if s, err = optionalSettings(filepath.Join(m.Dir, file)); err != nil || len(s.values) > 0 {
			break
		}
	}
	switch {
	case err != nil:
		return 0, err
	case s.values == nil && task != usual:
		return 0, &FormatError{m.Dir, fmt.Errorf("has no %s, want one with transformer_task %s", lengthFiles[0], task)}
	case s.values == nil:
		return most, m.checkMost(most, file, key)
	}
	limit := func(from *Settings, name, full string) { // each overrides the one before
		if from.Has(name) {
			most, file, key = from.SizeOr(name, most), filepath.Base(s.path), full
		}
		from.Ignore(name)
	}
	limit(s, "max_seq_length", "max_seq_length")
	if calls := s.Part("processing_kwargs"); calls != nil {
		calls.Ignore("audio", "image", "video", "chat_template") // package chat reads the last
		for _, name := range []string{"text", "common"} {
			if call := calls.Part(name); call != nil {
				limit(call, "max_length", "processing_kwargs."+name+".max_length")
				call.Only("truncation", true, "longest_first")
				call.Only("add_special_tokens", true)
				call.Only("logits_to_keep", 1)
				call.Ignore("padding", "pad_to_multiple_of", "return_tensors", "return_attention_mask")
			}
		}
	}
	if n := m.Sizes().Positions; n > 0 {
		most = min(most, n)
	}
	if t, err := m.Tokenizer(); s.Bool("do_lower_case", false) && err == nil && !lowers(t) {
		s.Fail("do_lower_case", "is true, but the tokenizer keeps capital letters, want false, or a tokenizer with lower case")
	}
	s.readModalities(task)
	if got := s.Text("transformer_task", usual); got != task {
		s.Fail("transformer_task", "is %s, want %s", quote.Text(got), quote.Text(task))
	}
	s.Only("module_output_name", output)
	if late != nil {
		late(s, strings.HasPrefix(key, "processing_kwargs."))
	} else {
		for _, key := range []string{"query_expansion", "query_length", "document_length"} {
			s.Only(key)
		}
	}
	for _, key := range []string{"model", "config", "tokenizer", "processor"} {
		s.Only(key+"_args", map[string]any{})
		s.Only(key+"_kwargs", map[string]any{})
	}
	s.Ignore("unpad_inputs")
	return most, cmp.Or(s.check(), m.checkMost(most, file, key))
}

// readModalities checks that texts reach the model as they are or, if it writes text, in its chat template.
func (s *Settings) readModalities(task string) {
	all := s.Part("modality_config")
	if task == writesText && (all == nil || !all.Has("message")) {
		s.Fail("modality_config", "has no message, want one: pairs of texts are put into the chat template")
	}
	if all == nil {
		return
	}
	output := "last_hidden_state"
	if task != "feature-extraction" {
		output = "logits"
	}
	for _, name := range []string{"text", "message"} {
		if one := all.Part(name); one != nil {
			one.Only("method", "forward")
			one.Only("method_output_name", output)
			one.Only("format", "flat")
		}
	}
	if task != writesText {
		all.Only("message") // all texts would be put into the chat template
	}
	for key := range all.values { // images and sounds, also beside a text: "image+text"
		if !slices.ContainsFunc(strings.Split(key, "+"), func(name string) bool { return !slices.Contains(modalities, name) }) {
			all.Ignore(key)
		}
	}
}

// modalities are those of sentence-transformers, for inputs that are not conversations.
var modalities = []string{"text", "image", "audio", "video"}

// writesText is the task of a decoder in a pipeline.
const writesText = "text-generation"

// loadReader loads a model that reads texts, and returns an error for an encoder–decoder or files of an invalid tokenizer.
func loadReader(dir string, o Options) (*Model, error) {
	m, err := Load(dir, o)
	if err != nil {
		return nil, err
	}
	return m, cmp.Or(m.wantStates(), m.wantTokens())
}

// wantStates returns an error for an encoder-decoder.
func (m *Model) wantStates() error {
	if m.Sizes().Decoder == nil {
		return nil
	}
	return fmt.Errorf("%s is an encoder-decoder, whose states depend on its output, want an encoder or a decoder",
		m.Family.Name)
}

// wantTokens returns the error in the files of the tokenizer, nil if there are none: the model then takes numbers only.
func (m *Model) wantTokens() error {
	var bad *tokenizer.FormatError
	if errors.As(m.untokened, &bad) && bad.Path == m.Dir {
		return nil
	}
	return m.untokened
}

// checkMost returns an error, about a setting of a file, if a length has no room for the special tokens.
func (m *Model) checkMost(most int, file, key string) error {
	t, err := m.Tokenizer()
	if err != nil {
		return nil // Encode reports it
	}
	x, err := t.Encode("", tokenizer.Options{NoPadding: true, NoTruncation: true})
	if err != nil || len(x.IDs) <= most {
		return err
	}
	err = fmt.Errorf("%s is %d, want room for %d special tokens", key, most, len(x.IDs))
	return &FormatError{filepath.Join(m.Dir, file), err}
}

// lowers reports whether a tokenizer writes texts in lower case.
func lowers(t *tokenizer.Tokenizer) bool {
	const capitals = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
	upper, err := t.Encode(capitals, tokenizer.Options{NoTruncation: true, NoPadding: true})
	lower, err2 := t.Encode(strings.ToLower(capitals), tokenizer.Options{NoTruncation: true, NoPadding: true})
	return err == nil && err2 == nil && slices.Equal(upper.IDs, lower.IDs)
}

// readPooling reads the second module.
func (e *Embedder) readPooling(dir string) error {
	s, err := openSettings(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	width := e.Model.Sizes().Width
	s.wantWidth(width, "the model's hidden states have %d elements")
	e.leaveOut = !s.Bool("include_prompt", true)
	table := Poolings()
	for _, p := range table {
		if s.Bool(p.flag, false) && !s.Has("pooling_mode") {
			e.Poolings = append(e.Poolings, p)
		}
	}
	names := s.textOrTexts("pooling_mode")
	if !s.Has("pooling_mode") && e.Poolings == nil {
		names = []string{"mean"}
	}
	if len(names)+len(e.Poolings) == 0 {
		s.Fail("pooling_mode", "is [], want the name of a pooling, or a list of names")
	}
	for _, name := range names {
		p, err := PoolingByName(name)
		if err != nil {
			s.Fail("pooling_mode", "has %w", err)
			continue
		}
		e.Poolings = append(e.Poolings, p)
	}
	weighted := slices.ContainsFunc(e.Poolings, func(p Pooling) bool { return p.Name == "weightedmean" })
	if e.leaveOut && weighted { // the weights would begin after the prompt
		s.Fail("include_prompt", "is false, want true for the pooling weightedmean")
	}
	e.width = width * len(e.Poolings)
	return s.check()
}

// wantWidth checks the width of the input of a pooling. what says what has it.
func (s *Settings) wantWidth(width int, what string) {
	for _, key := range []string{"word_embedding_dimension", "embedding_dimension"} {
		if n := s.SizeOr(key, width); n != width {
			s.Fail(key, "is %d, but "+what, n, width)
		}
	}
}

// torchActivations are the activations of dense layers, by their class in PyTorch.
var torchActivations = map[string]Layer{
	"torch.nn.modules.linear.Identity":    inTurn{},
	"torch.nn.modules.activation.Tanh":    Activation(tensor.Tanh),
	"torch.nn.modules.activation.ReLU":    Activation(tensor.ReLU),
	"torch.nn.modules.activation.GELU":    Activation(tensor.GELU),
	"torch.nn.modules.activation.Sigmoid": Activation(tensor.Sigmoid),
	"torch.nn.modules.activation.SiLU":    Activation(tensor.SiLU),
}

// tail are the layers of a pipeline that are applied to a vector, in order.
type tail struct {
	layers []Layer
	width  int // of the last vector
	params nn.Vars
}

// residual adds its input, or a map of it, to the output of a layer.
type residual struct{ layer, own Layer }

func (r residual) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Add(t, r.layer.Forward(t, x), optional(t, r.own, x))
}

// readDense reads a dense layer, whose input and output have one of the given names. name is its folder.
func (e *tail) readDense(dir, name string, inputs ...any) error {
	d, err := openDirectory(dir, func(*Settings) error { return nil })
	if err != nil {
		return err
	}
	defer d.r.Close()
	var out int
	layer, b, err := build(d, func(b *Builder) Layer {
		s := b.Config
		in := s.Size("in_features")
		out = s.Size("out_features")
		if in != e.width {
			s.Fail("in_features", "is %d, but the vector before has %d elements", in, e.width)
		}
		s.Only("module_input_name", inputs...)
		s.Only("module_output_name", inputs...)
		class := s.Text("activation_function", "torch.nn.modules.activation.Tanh")
		if len(inputs) > 1 && !s.Has("activation_function") { // the defaults of the libraries differ
			s.Fail("activation_function", "is missing, want the class of one")
		}
		act := torchActivations[class]
		if act == nil {
			s.Fail("activation_function", "is %s, want one of %s",
				quote.Text(class), strings.Join(slices.Sorted(maps.Keys(torchActivations)), ", "))
			act = Activation(tensor.Tanh)
		}
		linear := b.Matrix("linear", in, out)
		if s.Bool("bias", true) {
			linear.Bias = b.Tensor("linear.bias", out)
		}
		switch dense := (inTurn{linear, act}); {
		case !s.Bool("use_residual", false):
			return dense
		case in == out:
			return residual{dense, nil}
		default:
			return residual{dense, b.Matrix("residual", in, out)}
		}
	})
	if err != nil {
		return err
	}
	for _, p := range b.params {
		e.params = append(e.params, nn.Var{Name: name + "." + p.Name, Tensor: p.Tensor})
	}
	e.layers = append(e.layers, layer)
	e.width = out
	return nil
}

// readNormalize reads a normalisation of vectors of the given name, for which old pipelines have no folder.
func (e *tail) readNormalize(dir, input string) error {
	e.layers = append(e.layers, normalized)
	s, err := optionalSettings(filepath.Join(dir, configFile))
	if err != nil || s.values == nil {
		return err
	}
	if input != sentenceVector && !s.Has("module_input_name") {
		s.Fail("module_input_name", "is missing, want %q", input)
	}
	s.Only("module_input_name", input)
	s.Only("module_output_name", input)
	return s.check()
}

// sentenceVector and tokenVectors are the names of vectors in pipelines.
const (
	sentenceVector = "sentence_embedding"
	tokenVectors   = "token_embeddings"
)

// Prompts returns a directory's prompts by name, and the name of the default prompt or "". Both
// are empty if the directory defines no prompts.
//
// Errors: a *FormatError, or one of the operating system.
func Prompts(dir string) (byName map[string]string, usual string, err error) {
	byName, usual, _, err = readPrompts(dir, sentenceTransformer, sparseEncoder)
	return byName, usual, err
}

// readPrompts is Prompts for a pipeline of one of some kinds. It also returns the number of elements to which vectors are
// cut after all modules, 0 if they are not.
func readPrompts(dir string, kinds ...any) (byName map[string]string, usual string, first int, err error) {
	s, err := optionalSettings(filepath.Join(dir, promptsFile))
	if err != nil {
		return nil, "", 0, err
	}
	s.Ignore("__version__", "similarity_fn_name", "requirements")
	s.Only("model_type", kinds...)
	s.Only("max_active_dims")                      // of a sparse encoder
	if slices.Contains(kinds, any(crossEncoder)) { // whose logits are scores: none of these functions changes their order
		const nn = "torch.nn.modules."
		s.Only("activation_fn", nn+"linear.Identity", nn+"activation.Sigmoid", nn+"activation.Tanh")
		s.Ignore("keep_in_fp32_modules")
	}
	if slices.Contains(kinds, any(sentenceTransformer)) {
		first = s.SizeOr("truncate_dim", 0)
	}
	byName, usual = s.prompts()
	return byName, usual, first, s.check()
}

// prompts returns the prompts by name, and the name of the default prompt or "".
func (s *Settings) prompts() (byName map[string]string, usual string) {
	byName = get[map[string]string](s, "prompts", "an object of texts", nil)
	if usual = s.Text("default_prompt_name", ""); usual != "" {
		if _, ok := byName[usual]; !ok {
			s.Fail("default_prompt_name", "is %s, which is not among the prompts", quote.Text(usual))
		}
	}
	return byName, usual
}

// Kinds of pipelines.
const (
	sentenceTransformer = "SentenceTransformer"
	sparseEncoder       = "SparseEncoder"
	crossEncoder        = "CrossEncoder"
)
