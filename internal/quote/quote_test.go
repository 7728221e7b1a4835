package quote

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	long := strings.Repeat("é", 100)
	for s, want := range map[string]string{
		"":                       `""`,
		`say "x"`:                `"say \"x\""`,
		"日本語 😀":                  `"日本語 😀"`,
		"\x1b]0;x\a\n\u202e\xff": `"\x1b]0;x\a\n\u202e\xff"`,
		"\u009b\u00ad\u2028":     `"\u009b\u00ad\u2028"`,
		long:                     `"` + long + `"`,
		long + "x":               `"` + long + `"…`,
	} {
		if got := Text(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for s, want := range map[string]string{
		"": `""`, "a b/ü.json": "a b/ü.json", "a\nb": `"a\nb"`, "a\u202eb": `"a\u202eb"`,
		strings.Repeat("x/", 500): strings.Repeat("x/", 500), strings.Repeat("x", 1001): `"` + strings.Repeat("x", 100) + `"…`,
	} {
		if got := Name(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	for s, want := range map[string]string{
		"{\n  \"a\": [\n    1,\n    \"b c\"\n  ]\n}": `{"a":[1,"b c"]}`,
		"[\"\u202e\u007f\"]":                         `["\u202e\x7f"]`,
		"[" + strings.Repeat("\n10,", 100) + "1]":    "[" + strings.Repeat("10,", 33) + "…",
		"nothing\n": `"nothing\n"`,
	} {
		if got := JSON([]byte(s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	if got, want := Message("open a\x1b[1mb\n: no \"such\" file"), `open a\x1b[1mb\n: no "such" file`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fits := strings.Repeat("é", mostMessage)
	if got := Message(fits); got != fits {
		t.Errorf("got %s", got)
	}
	got := Message("begins " + fits + fits + " ends")
	if n := utf8.RuneCountInString(got); n != mostMessage+1 || !strings.HasPrefix(got, "begins ") || !strings.HasSuffix(got, " ends") {
		t.Errorf("%d characters: %s", n, got)
	}
}

func TestLines(t *testing.T) {
	if got, want := Lines("<p>a\u00a0b\u202e\n日本語\u3000\xff\r\n\n"), "<p>a\\u00a0b\\u202e\n日本語\\u3000\\xff\\r\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("\x1b[2J\u202e\r\n\xff\\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Text(s), Name(s), JSON([]byte(s)), Message(s)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) || unicode.Is(unicode.Cf, r) }) {
				t.Errorf("%q: got %q", s, got)
			}
		}
		if got, err := strconv.Unquote(Text(s)); err == nil && got != s {
			t.Errorf("%q: quoted as %q", s, got)
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 999: "999 bytes", 1000: "1 kB", 18836: "18.8 kB", 999_499: "999 kB", 999_500: "1 MB",
		91_000_000: "91 MB", 5_400_000_000: "5.4 GB", 7e15: "7e+03 TB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}

func TestA(t *testing.T) {
	for name, want := range map[string]string{
		"": "a", "BERT": "a", "ALBERT": "an", "ELECTRA": "an", "EuroBERT": "a", "GTE": "a", "LFM2": "an", "Llama": "a", "M2M100": "an",
		"MPNet": "an", "Mixtral": "a", "OLMo 2": "an", "RoBERTa": "a", "SmolLM3": "a", "T5": "a", "UMT5": "a", "XLM-RoBERTa": "an", "mT5": "an",
		"transformer translator": "a",
	} {
		if got := A(name); got != want+" "+name {
			t.Errorf("%q: got %q, want %s", name, got, want)
		}
	}
}
