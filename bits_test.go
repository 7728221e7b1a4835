package attn_test

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
)

var bits = flag.String("bits", "", "file for the bits of the combinations, on every set of instructions")

// TestBits checks that a combination gives the same bits twice. With -bits, it also writes them,
// to compare two commits: run it before and after a change that must not change any bit, and diff
// the files.
//
//	go test -run TestBits -bits before.txt -combinations 2000 .
func TestBits(t *testing.T) {
	out := bufio.NewWriter(os.Stderr)
	share := 20
	if *bits != "" {
		f, err := os.Create(*bits)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, share = bufio.NewWriter(f), 1
		defer out.Flush()
	}
	for seed := range seeds(share) {
		simd.Each(func(set string) {
			calls := []func() trace{
				func() trace {
					c := drawCombination(uint64(seed))
					c.procs, c.simd = 2, set
					score := c.score()
					var y trace
					c.backend.run(func() { y = c.run(attn.Attend, score, paramsOf(score)) })
					return y
				},
				func() trace {
					c := drawLayerCombination(t, uint64(seed))
					c.procs, c.simd = 2, set
					var y trace
					c.backend.run(func() { y = c.run(c.layer) })
					return y
				},
			}
			for i, call := range calls {
				first := call()
				if *bits == "" {
					same(t, fmt.Sprintf("%d on %s", seed, set), call(), first)
					continue
				}
				fmt.Fprint(out, []string{"attend", "layer"}[i], " ", seed, " ", set)
				for _, name := range slices.Sorted(maps.Keys(first)) {
					h := fnv.New64a()
					for _, x := range first[name].Data() {
						h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
					}
					fmt.Fprintf(out, " %s:%x", name, h.Sum64())
				}
				fmt.Fprintln(out)
			}
		})
	}
}
