package par

import (
	"math"
	"runtime"
	"testing"
	"testing/fstest"
)

// The quota is the smallest of those of the groups that the process is in.
func TestQuota(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: control groups are of Linux")
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"no groups": {nil, math.MaxInt},
		"none":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, math.MaxInt},
		"container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2},
		"outer": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "800000 100000\n", "sys/fs/cgroup/a/cpu.max": "300000 100000\n",
		}, 3},
		"small": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "20000 100000\n"}, 1},
		"version 1": {map[string]string{
			"proc/self/cgroup":                        "5:memory:/a\n4:cpu,cpuacct:/a\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":    "400000\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_period_us":   "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":      "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":     "100000\n",
			"sys/fs/cgroup/memory/a/cpu.cfs_quota_us": "100000\n",
		}, 4},
		"damaged": {map[string]string{"proc/self/cgroup": "0\n::\n0::/\n", "sys/fs/cgroup/cpu.max": "x\n"}, math.MaxInt},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := quota(root); got != c.want {
			t.Errorf("%s: %d processors, want %d", name, got, c.want)
		}
	}
}
