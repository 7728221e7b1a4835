package partest

import (
	"context"
	"sync/atomic"
)

// Countdown is a context that ends at a given check. It measures by counts what happens when a caller leaves: how much
// work is done between two checks, and how many more checks follow the end.
type Countdown struct {
	context.Context
	checks, end atomic.Int64
}

// NewCountdown returns a context that ends at the check with the given number, from 1.
func NewCountdown(end int) *Countdown {
	c := &Countdown{Context: context.Background()}
	c.end.Store(int64(end))
	return c
}

// Err counts a check, and returns context.Canceled from the end on.
func (c *Countdown) Err() error {
	if c.checks.Add(1) >= c.end.Load() {
		return context.Canceled
	}
	return nil
}

// Checks returns the number of checks.
func (c *Countdown) Checks() int { return int(c.checks.Load()) }

// Late returns the number of checks after the one at which the context ended.
func (c *Countdown) Late() int { return int(max(0, c.checks.Load()-c.end.Load())) }
