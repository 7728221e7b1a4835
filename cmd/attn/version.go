package main

import (
	"fmt"
	"runtime"

	"github.com/attn-go/attn/internal/simd"
)

type versionCommand struct{}

func (versionCommand) Run(c console) error {
	_, err := fmt.Fprintf(c.out, "attn %s %s %s/%s %s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, simd.Implementation())
	return err
}
