// Command conformance runs test cases for other systems' operators on package attn: the operator Attention of ONNX,
// opsets 23 to 25.
//
//	go run ./internal/conformance DIR
//
// runs the files *.safetensors of a directory. For each it prints whether it passes and its largest error, relative
// to 1 plus the magnitude of the expected element. It exits with 0 if all pass, 1 if any fails, and 2 on a usage
// error.
//
// A file is one case. Its metadata contain op, which is Attention, opset, name and, as JSON, the attributes of the
// node. Its tensors are in.NAME and out.NAME, with the operator's names. Unknown contents of a file are an error, and
// so is anything that the operator does not have in that opset.
//
// Each case is computed twice, the second time with its scores given as an array, and passes if both results pass.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: go run ./internal/conformance DIR")
		return 2
	}
	entries, err := os.ReadDir(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "conformance:", err)
		return 1
	}
	total, passed := 0, 0
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".safetensors" {
			continue
		}
		total++
		c, err := readCase(filepath.Join(args[0], entry.Name()))
		if err != nil {
			fmt.Fprintf(stdout, "fail  %s: %v\n", entry.Name(), err)
			continue
		}
		largest, err := c.run()
		if err != nil {
			fmt.Fprintf(stdout, "fail  %s: %v\n", c.name, err)
			continue
		}
		passed++
		fmt.Fprintf(stdout, "pass  %-70s %.1e\n", c.name, largest)
	}
	if total == 0 {
		fmt.Fprintf(stderr, "conformance: %s has no files *.safetensors\n", args[0])
		return 1
	}
	fmt.Fprintf(stdout, "%d of %d cases pass\n", passed, total)
	if passed < total {
		return 1
	}
	return 0
}
