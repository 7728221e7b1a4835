package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// The tests in this file compare with the libraries sentencepiece and transformers, see
// testdata/tokenizer_sentencepiece.py.

// pieceGolden is the content of sentencepiece.json.gz.
type pieceGolden struct {
	Texts  []string `json:"texts"`
	Models []struct {
		Name  string `json:"name"`
		Model []byte `json:"model"`
		pieceResults
		Tied string `json:"tied"`
	} `json:"models"`
	Directories []struct {
		Name  string            `json:"name"`
		Files map[string][]byte `json:"files"`
		pieceResults
		Target *pieceResults `json:"target"`
		Pair   []int         `json:"pair"`
	} `json:"directories"`
}

type pieceResults struct {
	Texts []struct {
		IDs     []int    `json:"i"`
		Tokens  []string `json:"t"`
		Offsets []int    `json:"o"`
		Decoded string   `json:"d"`
	} `json:"texts"`
	Random string `json:"random"`
	Every  string `json:"every"`
}

var readPieceGolden = sync.OnceValue(func() *pieceGolden {
	data, err := os.ReadFile("../testdata/tokenizer/sentencepiece.json.gz")
	if err != nil {
		panic(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	g := new(pieceGolden)
	if err := json.NewDecoder(z).Decode(g); err != nil {
		panic(err)
	}
	return g
})

// readPieceModel builds a tokenizer from a model without other files.
func readPieceModel(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := pieceTokenizer(data)
	if err == nil {
		err = tok.setSpecial(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// writeFiles writes files to a new directory.
func writeFiles(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPieceModels(t *testing.T) {
	g := readPieceGolden()
	for _, c := range g.Models {
		t.Run(c.Name, func(t *testing.T) {
			tok := readPieceModel(t, c.Model)
			comparePieces(t, tok, g.Texts, c.pieceResults, true)
			compareBlocks(t, c.Tied, tiedTexts(tok), 0, 1, hashedPieces(t, tok, true))
		})
	}
}

// tiedTexts returns the same texts as testdata/tokenizer_sentencepiece.py: repeated tokens of a model, with many paths
// that have nearly equal sums of scores.
func tiedTexts(tok *Tokenizer) []string {
	tokens := tok.decoder.(*pieceDecoder).model.tokens
	texts := make([]string, 320)
	for i := range texts {
		draw := draws(i)
		parts := make([]string, 1+draw(3))
		for k := range parts {
			parts[k] = strings.ReplaceAll(tokens[draw(len(tokens))], metaSpace, " ")
		}
		if draw(2) == 1 {
			for k, part := range parts {
				_, n := utf8.DecodeRuneInString(part)
				parts[k] = part[:n]
			}
		}
		var b strings.Builder
		for range 1 + draw(40) {
			part := parts[draw(len(parts))]
			b.WriteString(strings.Repeat(part, 1+draw(9)))
		}
		texts[i] = b.String()
	}
	return texts
}

func TestPieceDirectories(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: TestPieceModels has their models")
	}
	g := readPieceGolden()
	for _, c := range g.Directories {
		t.Run(c.Name, func(t *testing.T) {
			tok, err := Load(writeFiles(t, c.Files))
			if err != nil {
				t.Fatal(err)
			}
			comparePieces(t, tok, g.Texts, c.pieceResults, false)
			if c.Target != nil {
				comparePieces(t, tok.Target(), g.Texts, *c.Target, false)
			} else if tok.Target() != tok {
				t.Error("has a tokenizer of the target")
			}
			if c.Pair == nil {
				return
			}
			e, err := tok.EncodePair("Hello", "world", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(e.IDs), fmt.Sprint(c.Pair); got != want {
				t.Errorf("a pair has %s, want %s", got, want)
			}
		})
	}
}

// comparePieces compares the results for texts, and hashes of the results for many others.
func comparePieces(t *testing.T, tok *Tokenizer, texts []string, want pieceResults, all bool) {
	t.Helper()
	encode := func(text string) *Encoding {
		e, err := tok.Encode(text, Options{})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return e
	}
	if len(want.Texts) != len(texts) {
		t.Fatalf("%d texts, want %d", len(want.Texts), len(texts))
	}
	for i, text := range texts {
		e, w := encode(text), want.Texts[i]
		got, wanted := fmt.Sprint(e.IDs), fmt.Sprint(w.IDs)
		if all {
			var offsets []int
			for _, o := range e.Offsets {
				offsets = append(offsets, o.Start, o.End)
			}
			got, wanted = fmt.Sprintf("%s %q %v", got, e.Tokens, offsets), fmt.Sprintf("%s %q %v", wanted, w.Tokens, w.Offsets)
		}
		if got != wanted {
			t.Errorf("%q: tokens are\n%s, want\n%s", text, got, wanted)
		}
		if got := decodePieces(tok, e, all); got != w.Decoded {
			t.Errorf("%q: decoded is %q, want %q", text, got, w.Decoded)
		}
	}
	line := hashedPieces(t, tok, all)
	randoms := readGolden().random(1600)
	if !all || want.Every != "" {
		randoms = readGolden().random(10000)
	}
	compareRandom(t, want.Random, randoms, line)
	if want.Every != "" {
		compareBlocks(t, want.Every, everyCharacter(), 0, 1, line)
	}
}

// hashedPieces returns a function that appends the line of a text's encoding, with tokens and offsets if all is set.
func hashedPieces(t *testing.T, tok *Tokenizer, all bool) func([]byte, string) []byte {
	return func(b []byte, text string) []byte {
		e, err := tok.Encode(text, Options{})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for i, id := range e.IDs {
			if i > 0 {
				b = append(b, 0x1e)
			}
			b = strconv.AppendInt(b, int64(id), 10)
			if all {
				b = append(append(b, 0x1f), e.Tokens[i]...)
				b = strconv.AppendInt(append(b, 0x1f), int64(e.Offsets[i].Start), 10)
				b = strconv.AppendInt(append(b, 0x1f), int64(e.Offsets[i].End), 10)
			}
		}
		return append(append(append(b, 0x1d), decodePieces(tok, e, all)...), 0x1c)
	}
}

// decodePieces returns the text of tokens. The library decodes from pieces, and keeps the text of unknown
// pieces.
func decodePieces(tok *Tokenizer, e *Encoding, asPieces bool) string {
	if asPieces {
		return tok.decoder.decode(e.Tokens)[0]
	}
	return tok.Decode(e.IDs)
}

// wirePieces returns a small SentencePiece model.
func wirePieces(pieces ...string) []byte {
	var data []byte
	for i, text := range pieces {
		piece := append([]byte{1<<3 | wireBytes, byte(len(text))}, text...)
		piece = append(piece, 2<<3|wireFixed32, 0, 0, 0x80, 0xbf) // −1
		kind := normalPiece
		if i == 0 {
			kind = unknownPiece
		}
		piece = append(piece, 3<<3, byte(kind))
		data = append(append(data, 1<<3|wireBytes, byte(len(piece))), piece...)
	}
	return data
}

// longRules returns a field of a SentencePiece model with rules that replace "a" by a text of n bytes.
func longRules(field, n int) []byte {
	units := make([]uint32, 98)
	units[0] = 1 << 10
	units[1^'a'] = 'a' | 1<<8 | 1<<10 // its text is at the place in the next unit, 0
	data := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		data = binary.LittleEndian.AppendUint32(data, u)
	}
	data = append(append(data, strings.Repeat("x", n)...), 0)
	wire := func(number int, data []byte) []byte {
		return append(binary.AppendUvarint([]byte{byte(number<<3 | wireBytes)}, uint64(len(data))), data...)
	}
	return wire(field, wire(2, data))
}

func TestPieceFilesRefused(t *testing.T) {
	good := wirePieces("<unk>", "a", "b")
	if _, err := pieceTokenizer(good); err != nil {
		t.Fatal(err)
	}
	field := func(number int, bytes ...byte) []byte {
		return append([]byte{byte(number<<3 | wireBytes), byte(len(bytes))}, bytes...)
	}
	with := func(more ...[]byte) []byte { return append(slices.Clone(good), bytes.Join(more, nil)...) }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "has no pieces"},
		"text":          {[]byte("hello world"), "field 13 has form 0, want 2"},
		"cut":           {good[:len(good)-1], "ends in the middle of field 1"},
		"group":         {with([]byte{1<<3 | 3}), "field 1 has form 3"},
		"field":         {with(field(6, 0)), "has the unknown field 6"},
		"trainer field": {with(field(2, 0xe0, 3, 1)), "trainer_spec: has the unknown field 60"},
		"rules field":   {with(field(3, 7<<3, 1)), "normalizer_spec: has the unknown field 7"},
		"decoder field": {with(field(5, 7<<3, 1)), "denormalizer_spec: has the unknown field 7"},
		"long decoder":  {with(longRules(5, 65)), "denormalizer_spec: replaces a text by one of 65 bytes, want at most 64"},
		"piece field":   {with(field(1, 4<<3, 1)), "piece 3: has the unknown field 4"},
		"words":         {with(field(2, 3<<3, 3)), "model_type is 3, want 1 \\(unigram\\) or 2 \\(BPE\\)"},
		"piece type":    {with(field(1, 3<<3, 7)), "piece 3: has type 7, want 1 to 6"},
		"empty piece":   {with(field(1, 3<<3, 1)), `piece 3: is "", want a text`},
		"no UTF-8":      {with(field(1, 1<<3|wireBytes, 1, 0xff)), `piece 3: is "\\xff", want a text in UTF-8`},
		"surface":       {with(field(2, 44<<3&0x7f|0x80|wireBytes, 44>>4, 1, 0xff)), `trainer_spec: unk_surface is "\\xff", want a text in UTF-8`},
		"NaN":           {with(field(1, 1<<3|wireBytes, 1, 'c', 2<<3|wireFixed32, 0, 0, 0xc0, 0x7f)), `piece 3: "c" has score NaN`},
		"score":         {with(field(1, 1<<3|wireBytes, 1, 'c', 2<<3|wireBytes, 1, 0)), "piece 3: field 2 has form 2, want 5"},
		"twice":         {with(field(1, 1<<3|wireBytes, 1, 'a')), `pieces 1 and 3 are both "a"`},
		"two unknown":   {with(field(1, 1<<3|wireBytes, 1, 'c', 3<<3, 2)), "pieces 0 and 3 are both unknown pieces"},
		"no unknown":    {wirePieces("<unk>", "a")[16:], "has no unknown piece"},
		"bytes":         {with(field(2, 35<<3&0x7f|0x80, 35>>4, 1)), "has byte_fallback, but no piece for the byte 0x00"},
		"byte":          {with(field(1, 1<<3|wireBytes, 1, 'c', 3<<3, 6)), `piece 3, "c", is a byte, want byte_fallback`},
		"rules":         {with(field(3, 2<<3|wireBytes, 3, 1, 2, 3)), "normalizer_spec: precompiled_charsmap ends before its size"},
		"rules' form":   {with(field(3, 2<<3|wireFixed32, 1, 2, 3, 4)), "normalizer_spec: field 2 has form 5, want 2$"},
		"a large field": {with([]byte{1<<3 | wireBytes, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), "ends in the middle of field 1"},
	} {
		if _, err := pieceTokenizer(c.data); err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

func TestPieceDirectoriesRefused(t *testing.T) {
	g := readPieceGolden()
	files := func(name string) map[string][]byte {
		for _, c := range g.Directories {
			if c.Name == name {
				return maps.Clone(c.Files)
			}
		}
		t.Fatalf("no directory %q", name)
		return nil
	}
	for _, c := range []struct{ dir, file, content, want string }{
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "AlbertTokenizer"}`, `spiece\.model: belongs to a tokenizer of class "AlbertTokenizer", want tokenizer_config\.json with tokenizer_class T5Tokenizer or LlamaTokenizer or GemmaTokenizer`},
		{"t5", "tokenizer_config.json", `{}`, `belongs to a tokenizer of class ""`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "extra_ids": -1}`, `extra_ids of tokenizer_config\.json is -1`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "sp_model_kwargs": {"enable_sampling": true}}`, `sp_model_kwargs of tokenizer_config\.json has enable_sampling, want none`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "split_special_tokens": true}`, `split_special_tokens is true`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "eos_token": "<end>"}`, `lacks the special token "<end>"`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "additional_special_tokens": ["<extra_id_0>", "<more>"]}`, `has no id for the special token "<more>", want one in added_tokens_decoder`},
		{"t5", "special_tokens_map.json", `{"additional_special_tokens": ["<more>"]}`, `has no id for the special token "<more>"`},
		{"t5", "special_tokens_map.json", `{"sep_token": {"content": "<more>"}}`, `has no id for the special token "<more>"`},
		{"t5", "special_tokens_map.json", `{"eos_token": 7}`, `special_tokens_map\.json: the settings have a special token 7, want a text`},
		{"t5", "tokenizer_config.json", `{"tokenizer_class": "T5Tokenizer", "add_prefix_space": false}`, `has add_dummy_prefix true, but tokenizer_config\.json add_prefix_space false`},
		{"t5", "added_tokens.json", `{"<far>": 5000}`, `added token "<far>" has id 5000`},
		{"llama", "added_tokens.json", `{"other": 640}`, `added_tokens\.json: has "other" with id 640, which is the id of "\[MASK\]"`},
		{"marian", "vocab.json", `{"</s>": 0, "<unk>": 1}`, `vocab\.json: lacks the special token "<pad>"`},
		{"marian", "vocab.json", "", `vocab\.json: is missing`},
		{"marian", "target.spm", "", `target\.spm: is missing, want it next to source\.spm`},
		{"marian", "target.spm", "x", `target\.spm: ends in the middle`},
		{"marian", "tokenizer_config.json", `{"tokenizer_class": "MBartTokenizer"}`, `source\.spm: belongs to a tokenizer of class "MBartTokenizer", want tokenizer_config\.json with tokenizer_class MarianTokenizer`},
		{"marian separate", "target_vocab.json", "", `target_vocab\.json: is missing`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "MBartTokenizer"}`, `sentencepiece\.bpe\.model: belongs to a tokenizer of class "MBartTokenizer", want tokenizer_config\.json with tokenizer_class CamembertTokenizer or XLMRobertaTokenizer, or a tokenizer\.json`},
		{"xlm-roberta", "tokenizer_config.json", "", `belongs to a tokenizer of class ""`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "XLMRobertaTokenizerFast", "bos_token": "▁"}`, `has the special token "▁" in place of <s>, want a tokenizer\.json`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "XLMRobertaTokenizer", "mask_token": "[MASK]"}`, `lacks the special token "\[MASK\]"`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": false}`, `has add_dummy_prefix true, but tokenizer_config\.json add_prefix_space false`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "XLMRobertaTokenizer", "sp_model_kwargs": {"alpha": 1}}`, `sp_model_kwargs of tokenizer_config\.json has alpha`},
		{"xlm-roberta", "added_tokens.json", `{"other": 0}`, `added_tokens\.json: has "other" with id 0, which is the id of "<s>"`},
		{"xlm-roberta", "tokenizer_config.json", `{"tokenizer_class": "NllbTokenizer"}`, `class "NllbTokenizer", want .* or a tokenizer\.json, which AutoTokenizer\.from_pretrained\(DIR\)\.save_pretrained\(DIR\) of transformers writes for most classes$`},
		{"camembert", "config.json", `{"model_type": "mbart"}`, `belongs to a tokenizer of class ""`},
	} {
		all := files(c.dir)
		if all[c.file] = []byte(c.content); c.content == "" {
			delete(all, c.file)
		}
		_, err := Load(writeFiles(t, all))
		if err == nil || !errors.As(err, new(*FormatError)) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s with %s %s: error %v, want a FormatError with %s", c.dir, c.file, c.content, err, c.want)
		}
	}
}

// fairseqPiecesOf returns a model whose first pieces are those that fairseq requires, followed by more.
func fairseqPiecesOf(more ...string) []byte {
	return wirePieces(slices.Concat([]string{"<unk>", "<s>", "</s>"}, more)...)
}

// asControl changes the second and the third piece of a model from wirePieces to control pieces.
func asControl(data []byte) []byte {
	data = slices.Clone(data)
	for _, piece := range []string{"<s>", "</s>"} {
		at := bytes.Index(data, append([]byte{byte(len(piece))}, piece...)) + 1 + len(piece)
		data[at+6] = byte(controlPiece) // after the score and the field's number
	}
	return data
}

// Pieces and special tokens have the numbers with which XLM-R and CamemBERT were trained.
func TestFairseqNumbers(t *testing.T) {
	model := asControl(fairseqPiecesOf("▁", "a", "▁b", "s", "N"))
	for class, want := range map[string]string{
		// The unknown piece, the special tokens, the four pieces after them, <mask>.
		"XLMRobertaTokenizer": "[0 4 5 9 6 3 2] [0 4 5 2 2 6 2] [0 4 3 0 2 1 3 2]",
		"CamembertTokenizer":  "[5 7 8 12 9 3 6] [5 7 8 6 6 9 6] [5 7 3 5 6 1 3 6]",
	} {
		tok, err := Load(writeFiles(t, map[string][]byte{
			"sentencepiece.bpe.model": model, "tokenizer_config.json": fmt.Appendf(nil, `{"tokenizer_class": %q}`, class),
		}))
		if err != nil {
			t.Fatal(err)
		}
		encode := func(text string) []int {
			e, err := tok.Encode(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return e.IDs
		}
		pair, err := tok.EncodePair("a", "b", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(encode("a <mask> bx"), pair.IDs, encode("é<s></s><pad><unk>")); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
		if got, want := tok.DecodeSpecial(encode("a<mask> b")), map[string]string{
			"XLMRobertaTokenizer": "<s>a<mask>b</s>", "CamembertTokenizer": "<s>a<mask>b</s>",
		}[class]; got != want {
			t.Errorf("%s: decoded is %q, want %q", class, got, want)
		}
	}
	for want, data := range map[string][]byte{
		`has the piece "a" with number 1, want <s>`:                                       wirePieces("<unk>", "a", "b"),
		`has the piece "" with number 2, want </s>`:                                       wirePieces("<unk>", "<s>"),
		"begins with pieces of other kinds, want an unknown piece and two control pieces": fairseqPiecesOf("a"),
		`has the piece "<mask>" with number 4, which is not allowed in this class`:        asControl(fairseqPiecesOf("a", "<mask>")),
		`has the piece "<pad>" with number 3, which is not allowed in this class`:         asControl(fairseqPiecesOf("<pad>")),
		"ends in the middle of field 1":                                                   asControl(fairseqPiecesOf("a"))[:40],
	} {
		_, err := Load(writeFiles(t, map[string][]byte{
			"sentencepiece.bpe.model": data, "config.json": []byte(`{"model_type": "xlm-roberta"}`),
		}))
		if err == nil || !errors.As(err, new(*FormatError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Special tokens of XLM-R have the flags of the settings, those at the front of the vocabulary too.
func TestFairseqFlags(t *testing.T) {
	for settings, want := range map[string]string{
		``: "<s> ▁ a </s> </s>",
		`"eos_token": {"content": "</s>", "lstrip": true}, "sep_token": {"content": "</s>", "lstrip": true}`: "<s> ▁ a   </s> </s>",
	} {
		config := strings.TrimSuffix(`{"tokenizer_class": "XLMRobertaTokenizer", `+settings, ", ") + "}"
		tok, err := Load(writeFiles(t, map[string][]byte{
			"sentencepiece.bpe.model": asControl(fairseqPiecesOf("▁", "a")), "tokenizer_config.json": []byte(config),
		}))
		if err != nil {
			t.Fatal(err)
		}
		e, err := tok.Encode("a  </s>", Options{})
		if got := strings.Join(e.Tokens, " "); err != nil || got != want {
			t.Errorf("%s: %s, want %s; %v", settings, got, want, err)
		}
	}
}

// No file causes a panic or uses more memory than its size justifies.
func FuzzPieces(f *testing.F) {
	f.Add(wirePieces("<unk>", "a", "ab", "b", "▁"), "ab ac")
	f.Add(asControl(fairseqPiecesOf("a", "ab", "b", "▁")), "ab ac")
	f.Add(append(wirePieces("<unk>", "a", "ab", "b", "▁"), 2<<3|wireBytes, 2, 3<<3, pieceBPE), "ab ac")
	for _, c := range readPieceGolden().Models {
		if len(c.Model) < 6000 {
			f.Add(c.Model, "Hello, wörld 123")
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD") // FuzzEncode has others, which are errors
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tok, err := pieceTokenizer(file)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+1000*len(file)); got > most {
			t.Fatalf("%d bytes for a file of %d, want at most %d", got, len(file), most)
		}
		if err != nil {
			return
		}
		for _, class := range fairseqClasses {
			m, err := class.number(tok.model, tok.decoder.(*pieceDecoder).model)
			if err != nil {
				continue
			}
			numbered := *tok
			numbered.model = m
			if err := numbered.setSpecial(nil); err != nil {
				t.Fatal(err)
			}
			e, err := numbered.Encode(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range e.IDs {
				if _, ok := m.token(id); !ok {
					t.Fatalf("%q has the token %d, which does not exist", text, id)
				}
			}
			numbered.Decode(e.IDs)
		}
		if err := tok.setSpecial(nil); err != nil {
			t.Fatal(err)
		}
		e, err := tok.Encode(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range e.Offsets {
			if at.Start < 0 || at.Start > at.End || at.End > len(text) {
				t.Fatalf("token %d is at %v of %d bytes", i, at, len(text))
			}
		}
		tok.Decode(e.IDs)
	})
}

// An unused piece is split into the parts it was merged from, at most 101 times, as in the library.
func TestDeepPieces(t *testing.T) {
	f := &pieceFile{pieces: []filePiece{{text: "<unk>", kind: unknownPiece}, {"a", -1, normalPiece}}}
	for n := 2; n < 150; n++ {
		f.pieces = append(f.pieces, filePiece{strings.Repeat("a", n), float32(n), unusedPiece})
	}
	m, err := newPieceModel(f)
	if err != nil {
		t.Fatal(err)
	}
	for n, first := range map[int]int{101: 1, 102: 1, 103: 2, 149: 48} {
		p := newPiece(strings.Repeat("a", n))
		list, err := newPieceJoins(m).tokenize(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		if got := list[0].at.End; got != first || len(list) != n-first+1 {
			t.Errorf("%d characters: %d tokens, the first of %d, want %d and %d", n, len(list), got, n-first+1, first)
		}
	}
}

// With byte_fallback each byte needs a piece, and its kind must be the one that never occurs in a text.
func TestBytePieces(t *testing.T) {
	f := &pieceFile{fallback: true, pieces: []filePiece{{text: "<unk>", kind: unknownPiece}}}
	for b := range 256 {
		f.pieces = append(f.pieces, filePiece{text: fmt.Sprintf("<0x%02X>", b), kind: bytePiece})
	}
	if _, err := newPieceModel(f); err != nil {
		t.Fatal(err)
	}
	f.pieces[1+0x7f].kind = normalPiece
	if _, err := newPieceModel(f); err == nil || err.Error() != "has byte_fallback, but no piece for the byte 0x7F" {
		t.Errorf("error %v", err)
	}
}
