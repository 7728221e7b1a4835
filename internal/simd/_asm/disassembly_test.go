package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A word of assembly and the instruction in its comment.
type word struct {
	at   string // file and line
	bits uint32
	text string
}

var wordLine = regexp.MustCompile(`^\tWORD \$0x([0-9a-f]{8}) // (.+)$`)

// words returns the words of a file of assembly. A line with WORD that does not match the pattern
// is an error, because it would not be compared.
func words(t *testing.T, name string, text []byte) []word {
	t.Helper()
	var all []word
	for i, line := range strings.Split(string(text), "\n") {
		m := wordLine.FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, "WORD") {
				t.Errorf("%s:%d: %q is not a word with a comment", name, i+1, line)
			}
			continue
		}
		bits, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, word{name + ":" + strconv.Itoa(i+1), uint32(bits), m[2]})
	}
	return all
}

// disassemble returns the text that objdump prints for each word, or skips the test.
func disassemble(t *testing.T, all []word) []string {
	t.Helper()
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("SKIPPED: there is no aarch64-linux-gnu-objdump (Debian: binutils-aarch64-linux-gnu): the words for arm64 are not compared with their comments")
	}
	var code bytes.Buffer
	for _, w := range all {
		if err := binary.Write(&code, binary.LittleEndian, w.bits); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, code.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-z", "-b", "binary", "-m", "aarch64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	line := regexp.MustCompile(`(?m)^ *[0-9a-f]+:\t[0-9a-f]{8} \t(.*)$`)
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		texts = append(texts, strings.Join(strings.Fields(m[1]), " "))
	}
	if len(texts) != len(all) {
		t.Fatalf("objdump shows %d instructions of %d:\n%.500s", len(texts), len(all), out)
	}
	return texts
}

// Each word for arm64 is the instruction in its comment.
func TestWordsAreTheirComments(t *testing.T) {
	var all []word
	for name, text := range assemblyARM64() {
		all = append(all, words(t, name, text)...)
	}
	if len(all) < 1000 {
		t.Fatalf("only %d words", len(all))
	}
	wrong := map[string]bool{} // each instruction once
	for i, got := range disassemble(t, all) {
		if w := all[i]; got != w.text && !wrong[strings.Fields(w.text)[0]] {
			wrong[strings.Fields(w.text)[0]] = true
			t.Errorf("%s: %08x is %q, and its comment is %q", w.at, w.bits, got, w.text)
		}
	}
}

// The encodings of instructions for amd64 that Go's assembler lacks are those of GNU as.
func TestEncodeMissing(t *testing.T) {
	for text, want := range map[string]string{
		"VDPBF16PS Z13, Z12, Z0":       "LONG $0x481ed262; WORD $0xc552",
		"VDPBF16PS Z31, Z0, Z17":       "LONG $0x487e8262; WORD $0xcf52",
		"VDPBF16PS Z8, Z31, Z9":        "LONG $0x40065262; WORD $0xc852",
		"VDPBF16PS Z16, Z15, Z30":      "LONG $0x48062262; WORD $0xf052",
		"VPDPBUSDVEX Y13, Y12, Y0":     "LONG $0x501dc2c4; BYTE $0xc5",
		"VPDPBUSDVEX Y1, Y2, Y3":       "LONG $0x506de2c4; BYTE $0xd9",
		"VPDPBUSDVEX Y8, Y15, Y9":      "LONG $0x500542c4; BYTE $0xc8",
		"VCVTNE2PS2BF16 Z13, Z12, Z0":  "LONG $0x481fd262; WORD $0xc572",
		"VCVTNE2PS2BF16 Z31, Z0, Z17":  "LONG $0x487f8262; WORD $0xcf72",
		"VCVTNE2PS2BF16 Z8, Z31, Z9":   "LONG $0x40075262; WORD $0xc872",
		"VCVTNE2PS2BF16 Z16, Z15, Z30": "LONG $0x48072262; WORD $0xf072",
	} {
		if got := encodeMissing("\t" + text + "\n"); !strings.Contains(got, want+" // "+text+"\n") {
			t.Errorf("%s: %q, want %s", text, got, want)
		}
	}
}
