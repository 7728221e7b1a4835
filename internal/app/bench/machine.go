package bench

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/attn-go/attn/internal/simd"
)

// Machine describes where and with which software results were measured.
type Machine struct {
	CPU     string `json:"cpu"`               // model name, or the architecture if the system does not provide it
	OS      string `json:"os"`                // such as linux/amd64
	Kernels string `json:"kernels"`           // the implementation: generic, avx2, avx512, neon or wasm
	Reduced string `json:"reduced,omitempty"` // the instructions of products in bfloat16 and int8, such as AVX512-VNNI
	Go      string `json:"go"`                // version
	Attn    string `json:"attn"`              // version
}

// ThisMachine describes the machine and the program that runs on it.
func ThisMachine() Machine {
	m := Machine{
		CPU: CPUName(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Kernels: simd.Implementation(), Reduced: strings.Join(simd.Reduced(), " "),
		Go: runtime.Version(), Attn: Version(),
	}
	if m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	return m
}

// Version returns the version of this program.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}

// CPUName returns the processor's name from /proc/cpuinfo, or "" if there is none.
func CPUName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
