//go:build !js

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "lesson runs in a browser: build the site with go run ./site --out DIR")
	os.Exit(2)
}
