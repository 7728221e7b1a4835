package par

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Usable is the number of processors that the process may use. Tests raise it, to run more threads than processors.
var Usable = min(runtime.NumCPU(), quota(os.DirFS("/")))

// quota returns the processors that the control groups of a Linux process allow, rounded up, as Go's default of
// GOMAXPROCS does. It is for processes that set GOMAXPROCS themselves. Where nothing is limited or known, it is
// math.MaxInt.
func quota(root fs.FS) int {
	if runtime.GOOS != "linux" {
		return math.MaxInt
	}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.MaxInt
	}
	least := math.Inf(1)
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		mount, version2 := "sys/fs/cgroup", controllers == ""
		if !version2 {
			mount += "/cpu"
		}
		if !version2 && !strings.Contains(","+controllers+",", ",cpu,") {
			continue
		}
		// Each group limits those within it. In a container, the group may be known by another name outside.
		for dir := path.Join(mount, group); strings.HasPrefix(dir, mount); dir = path.Dir(dir) {
			least = min(least, limit(root, dir, version2))
		}
	}
	if n := math.Ceil(least); n < math.MaxInt32 {
		return max(1, int(n))
	}
	return math.MaxInt
}

// limit returns the processors that a control group allows, and infinity if it does not say.
func limit(root fs.FS, dir string, version2 bool) float64 {
	names := []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"}
	if version2 {
		names = []string{"cpu.max"} // both in one file
	}
	var fields []string
	for _, name := range names {
		text, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return math.Inf(1)
		}
		fields = append(fields, strings.Fields(string(text))...)
	}
	if len(fields) != 2 {
		return math.Inf(1)
	}
	of, err := strconv.ParseFloat(fields[0], 64) // "max" or -1 for no limit
	period, err2 := strconv.ParseFloat(fields[1], 64)
	if err != nil || err2 != nil || of <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return of / period
}
