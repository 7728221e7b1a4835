package pruning

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/seq2seq"
)

// thisMachine describes the machine.
func thisMachine() reports.Machine {
	return reports.Machine{
		OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: bench.CPUName(), Threads: runtime.GOMAXPROCS(0),
		Kernels: simd.Implementation(), Go: runtime.Version(),
	}
}

// hashFiles returns the SHA-256 of the concatenated files in hexadecimal digits.
func hashFiles(paths ...string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		if err := cmp.Or(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashPairs returns the SHA-256 of pairs as lines of a file: source, tab, target.
func hashPairs(pairs []seq2seq.Pair) string {
	h := sha256.New()
	for _, p := range pairs {
		io.WriteString(h, p.Source+"\t"+p.Target+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}
