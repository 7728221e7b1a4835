package tokenizer

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// BenchmarkEncode measures English texts of about 500 bytes, one paragraph each, and a text in many
// languages.
func BenchmarkEncode(b *testing.B) {
	g := readGolden()
	data, err := os.ReadFile("../DESIGN.md")
	if err != nil {
		b.Fatal(err)
	}
	english := strings.Split(string(data), "\n\n")
	for _, input := range []struct {
		name  string
		texts []string
	}{{"english", english}, {"mixed", g.Texts}} {
		for _, name := range []string{"bert uncased", "gpt2", "llama3", "llama2", "t5"} {
			b.Run(input.name+"/"+name, func(b *testing.B) {
				tok := g.load(b, name)
				bytes := 0
				for _, text := range input.texts {
					bytes += len(text)
				}
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				for b.Loop() {
					for _, text := range input.texts {
						if _, err := tok.Encode(text, Options{}); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkRead measures loading a tokenizer.
func BenchmarkRead(b *testing.B) {
	g := readGolden()
	for i := range g.Cases {
		if c := &g.Cases[i]; c.Name == "llama3" {
			file := g.file(b, c)
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if _, err := Read(bytes.NewReader(file)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
