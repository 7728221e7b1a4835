package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/attn-go/attn/internal/simd"
)

type versionCommand struct{}

func (versionCommand) Run(c console) error {
	kernels := strings.Join(append([]string{simd.Implementation()}, simd.Reduced()...), " ")
	_, err := fmt.Fprintf(c.out, "attn %s %s %s/%s %s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, kernels)
	return err
}
