// Command fma finds products that the Go compiler fuses with a sum.
//
// On arm64, ppc64le, s390x, riscv64 and loong64 the compiler may compute x*y+z with one rounding instead of two. Two
// loops for the same formula may then differ in their last bits, and x*y-x*y is the rounding error of the product
// instead of 0. An explicit conversion, float32(x*y)+z, prevents the fusion.
//
// Run it in the root of the repository. It compiles for arm64 the packages whose results other code relies on, and
// fails if it finds a fused multiply-add that is not in allowed. A build for amd64 or a type checker could not find
// them, because the compiler fuses after inlining.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// checked are the packages whose results are guaranteed bit for bit, or on which comparisons depend. Packages that
// draw or report are left out.
var checked = []string{
	".", "./score", "./position", "./observe", "./tensor", "./nn", "./optim", "./statedict", "./heads", "./prune", "./seq2seq", "./models", "./probe", "./train",
	"./mask", "./bench/compare", "./internal/app/apply", "./internal/app/figures", "./internal/app/film", "./internal/app/importance",
	"./internal/app/recording", "./internal/app/tasks", "./internal/app/trace", "./site/lesson",
	"./safetensors", "./onnx", "./tokenizer", "./internal/stats", "./internal/curve",
	"./linear", "./internal/recurrence", "./internal/app/chart", "./internal/exact", "./internal/app/filter", "./internal/flash", "./npy",
	"./internal/app/pruning", "./internal/app/shards", "./internal/simd", "./internal/app/view", "./lens", "./internal/app/lens",
}

// The reasons for which a fused multiply-add is allowed.
const (
	exact  = "the product of two float32 is exact in float64, so there is nothing to round"
	whole  = "products and sums of whole numbers below 2^53 are exact"
	single = "a float64 formula that exists in one function only, more accurate than its float32 result"
)

// allowed maps functions that may contain fused multiply-adds, each with the directory of its package, to the reason.
var allowed = map[string]string{
	"prune.(*ranking).weightNorm":          exact,
	"internal/simd.exp64":                  single,
	"internal/simd.expSplit":               single,
	"internal/simd.tanh32":                 single,
	"internal/simd.geluGradGeneric":        single,
	"internal/simd.fmaLoopGeneric":         "it measures how fast the machine multiplies and adds",
	"score.times":                          exact,
	"probe.(*Probe).Loss":                  exact,
	"internal/app/pruning.Count":           whole,
	"internal/app/pruning.layerOperations": whole,
	"models.(*recurrent).Operations":       whole,
	"models.transformer.Operations":        whole,
}

func main() {
	found, err := find(checked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fma:", err)
		os.Exit(2)
	}
	if complaints := judge(found, allowed); len(complaints) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(complaints, "\n"))
		os.Exit(1)
	}
}

// place is where a product is fused: a line of a file, and the function that contains that line in the source, even
// if it is inlined elsewhere.
type place struct {
	file     string // relative to the root
	line     int
	function string // with its directory, as in allowed
}

// find compiles packages and returns the places, sorted by file and line.
func find(packages []string) ([]place, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", append([]string{"build", "-gcflags=-S"}, packages...)...)
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64")
	listing, err := build.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, listing)
	}
	if !bytes.Contains(listing, []byte(" STEXT ")) {
		return nil, fmt.Errorf("go build -gcflags=-S prints no assembly:\n%.300s", listing)
	}
	return places(listing, root)
}

// instruction matches a fused multiply-add of scalars in an assembly listing.
var instruction = regexp.MustCompile(`(?m)^\t0x[0-9a-f]+ [0-9]+ \((.+):([0-9]+)\)\tFN?M(?:ADD|SUB)[SD]\t`)

// places parses an assembly listing of files below root.
func places(listing []byte, root string) ([]place, error) {
	lines := map[string]map[int]bool{}
	for _, m := range instruction.FindAllSubmatch(listing, -1) {
		file := string(m[1])
		line, err := strconv.Atoi(string(m[2]))
		if err != nil {
			return nil, err
		}
		if lines[file] == nil {
			lines[file] = map[int]bool{}
		}
		lines[file][line] = true
	}
	var list []place
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		file, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		file = filepath.ToSlash(file)
		functions, err := functionsOf(path)
		if err != nil {
			return nil, err
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		if dir == "." {
			dir = "attn"
		}
		for _, line := range slices.Sorted(maps.Keys(lines[path])) {
			list = append(list, place{file, line, dir + "." + functions(line)})
		}
	}
	return list, nil
}

// functionsOf returns a function that maps a line of a file to the name of its function.
func functionsOf(path string) (func(line int) string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return nil, err
	}
	return func(line int) string {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && set.Position(f.Pos()).Line <= line && line <= set.Position(f.End()).Line {
				return receiver(f) + f.Name.Name
			}
		}
		return "init"
	}, nil
}

// receiver returns the prefix of a method's name: "(*T)." or "T.".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	switch t := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return fmt.Sprintf("(*%v).", t.X)
	default:
		return fmt.Sprintf("%v.", t)
	}
}

// judge returns a complaint for each place that is not allowed, and for each allowed function without a fused
// multiply-add.
func judge(found []place, allowed map[string]string) []string {
	var complaints []string
	used := map[string]bool{}
	for _, p := range found {
		used[p.function] = true
		if allowed[p.function] == "" {
			complaints = append(complaints, fmt.Sprintf(
				"%s:%d: %s: on arm64 a product is fused with a sum; write float32(x*y) or float64(x*y), or allow it in internal/tools/fma with a reason",
				p.file, p.line, p.function))
		}
	}
	for _, function := range slices.Sorted(maps.Keys(allowed)) {
		if !used[function] {
			complaints = append(complaints, fmt.Sprintf("internal/tools/fma: %s is allowed, but nothing is fused there", function))
		}
	}
	return complaints
}
