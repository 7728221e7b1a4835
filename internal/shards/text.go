package shards

import (
	"fmt"
	"strings"
	"time"
)

// String returns a line with the results of a shard.
func (m *Manifest) String() string {
	return fmt.Sprintf("shard %d of %d: %d lines, %d rejected, %v",
		m.Shard, m.Shards, m.Output.Lines, m.Rejected, seconds(m.Seconds, 100*time.Millisecond))
}

// String returns a line with the results of all shards, and a second one if their last digits may differ.
func (m Merged) String() string {
	text := fmt.Sprintf("%d shards: %d lines, %d rejected, %v", m.Shards, m.Lines, m.Rejected, seconds(m.Seconds, time.Second))
	if len(m.Kernels) > 1 {
		text += fmt.Sprintf("\ncomputed with kernels %s: the last digits may differ between them", strings.Join(m.Kernels, ", "))
	}
	return text
}

func seconds(s float64, unit time.Duration) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(unit)
}
