package cells

import (
	"slices"
	"testing"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "é": 1, "e\u0301": 1, "日本": 4, "กำ": 2, "नमस्ते": 4, "한국": 4, "\u1112\u1161\u11ab": 2,
		"❤": 1, "❤\ufe0f": 2, "👩\u200d👩\u200d👧": 2, "👍🏽": 2, "🇩🇪": 2, "▁█": 2, "…": 1,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"ab", 0, ""}, {"ab", 1, "…"}, {"ab", 2, "ab"}, {"abc", 2, "a…"},
		{"日本", 3, "日…"}, {"日本", 2, "…"}, {"e\u0301tude", 3, "e\u0301t…"},
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		parts []string
		most  int
		want  []string
	}{
		{nil, 5, []string{""}},
		{[]string{"ab", "cd", "ef"}, 5, []string{"ab cd", "ef"}},
		{[]string{"ab", "cd", "ef"}, 4, []string{"ab", "cd", "ef"}},
		{[]string{"abcdef", "日本", "e"}, 5, []string{"abcdef", "日本", "e"}},
		{[]string{"abcdef", "日本", "e"}, 6, []string{"abcdef", "日本 e"}},
	} {
		if got := Lines(c.parts, " ", c.most); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q, want %q", c.parts, c.most, got, c.want)
		}
	}
}
