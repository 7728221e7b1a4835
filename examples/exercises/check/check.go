// Package check compares the answer of an exercise with its solution, and names the mistake that leads to another answer.
package check

import (
	"fmt"
	"reflect"
	"testing"
)

// Exercise is a function F that a reader writes.
type Exercise[F any] struct {
	Name     string
	Run      func(f F) any // what a function returns for the data of the exercise
	Solved   F
	Mistakes []struct {
		What string // what is wrong
		F    F
	}
}

// answer is what f returns, with four digits.
func (e Exercise[F]) answer(f F) string { return fmt.Sprintf("%.4v", e.Run(f)) }

// wrong names the mistake that leads to the answer of f; it is empty if the answer is right.
func (e Exercise[F]) wrong(f F) string {
	got, want := e.answer(f), e.answer(e.Solved)
	if got == want {
		return ""
	}
	for _, m := range e.Mistakes {
		if got == e.answer(m.F) {
			return m.What
		}
	}
	return fmt.Sprintf("%s returns\n%s\nwant\n%s", e.Name, got, want)
}

// Test fails with the reader's mistake. It skips a function that returns nil: it is not written yet.
func (e Exercise[F]) Test(t *testing.T, f F) {
	t.Helper()
	if reflect.ValueOf(e.Run(f)).IsNil() {
		t.Skipf("%s is empty: fill it in, in exercise_test.go", e.Name)
	}
	if what := e.wrong(f); what != "" {
		t.Error(what)
	}
}

// TestMistakes fails unless each mistake is named.
func (e Exercise[F]) TestMistakes(t *testing.T) {
	t.Helper()
	for _, m := range e.Mistakes {
		if got := e.wrong(m.F); got != m.What {
			t.Errorf("%q is called %q", m.What, got)
		}
	}
}
