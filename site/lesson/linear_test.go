//go:build !js || translator

package main

import (
	"math"
	"runtime"
	"testing"
)

// The curve that is read from a state is that of the formula, and the state does not grow.
func TestLinearState(t *testing.T) {
	type result struct {
		Out            []*float64
		Softmax, State []float64
		W              float64
	}
	for _, n := range []int{5, 50} {
		o := call[observations](t, "regression.data", object{"seed": 1, "n": n, "noise": 0.5}, nil)
		r := call[result](t, "linear.state", object{"x": o.X, "y": o.Y, "p": 10}, nil)
		if len(r.State) != 42 || math.Abs(r.W-1.405) > 1e-3 {
			t.Errorf("a state of %d numbers, w %v", len(r.State), r.W)
		}
		exact := call[estimated](t, "regression.estimate", object{"x": o.X, "y": o.Y, "w": r.W}, nil)
		for i := range r.Out {
			var sum, out float64
			for j, x := range o.X {
				w := math.Pow(math.Cos(math.Pi*(float64(i)/20-float64(x))/10), 20)
				sum += w
				out += w * float64(o.Y[j])
			}
			if sum < 1e-5 != (r.Out[i] == nil) && math.Abs(sum-1e-5) > 1e-6 {
				t.Errorf("%d observations, at %v, the weights sum to %v: %v", n, float64(i)/20, sum, r.Out[i])
			}
			if r.Out[i] != nil && math.Abs(out/sum-*r.Out[i])*sum > 1e-4 || math.Abs(float64(exact.Out[i])-r.Softmax[i]) > 1e-6 {
				t.Errorf("%d observations, at %v: %v and %v, want %v and %v", n, float64(i)/20, *r.Out[i], r.Softmax[i], out/sum, exact.Out[i])
			}
		}
	}
}

// Two tokens of gated delta, by hand: after the first, S is (4, 0). It shrinks to (2, 0), from which the second key reads
// 1.2, so half of 0.8 is added along that key. What does not fit is an error.
func TestLinearRule(t *testing.T) {
	type result struct{ State, Out []float64 }
	k := [][]float64{{1, 0}, {0.6, 0.8}}
	args := object{"queries": k, "keys": k, "values": []float64{4, 2}, "decay": []float64{0, -math.Ln2}, "beta": []float64{1, 0.5}}
	r := call[result](t, "linear.rule", args, nil)
	for i, want := range []float64{2.24, 0.32, 4, 1.6} {
		if got := append(r.State, r.Out...); len(got) != 4 || math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("number %d of %v, want %v", i, got, want)
		}
	}
	delete(args, "beta")
	if r = call[result](t, "linear.rule", args, nil); math.Abs(r.Out[1]-3.2) > 1e-6 {
		t.Errorf("without beta the query reads %v, want 3.2", r.Out[1])
	}
	for _, wrong := range []string{`{"queries":[[1]],"keys":[[1],[2]],"values":[4],"decay":[0]}`, `{"queries":[],"keys":[],"values":[],"decay":[]}`} {
		if text := failure("linear.rule", wrong); text == "" {
			t.Errorf("%s is no error", wrong)
		}
	}
}

// recalled trains the four models and returns their shares by the number of pairs, in the order of factor.Rules.
func recalled(t *testing.T, again bool) [][]float64 {
	t.Helper()
	frames := 0
	r := call(t, "linear.recall", object{"size": 8, "seed": 1, "again": again}, func(recalling) { frames++ })
	if r.Step != 400 || frames != 20 || len(r.Tokens) != 16 || len(r.Answers) != 8 {
		t.Errorf("%d steps, %d frames, tokens %v, answers %v", r.Step, frames, r.Tokens, r.Answers)
	}
	t.Logf("again %v: %.1f s", again, r.Seconds)
	var list [][]float64
	for _, one := range r.Rules {
		var shares []float64
		for _, x := range one.Recalled {
			shares = append(shares, float64(x))
		}
		t.Logf("%-12s %d parameters, loss %.3f, %.3f", one.Name, one.Params, one.Loss, shares)
		if len(one.Matrix) != 8*16 {
			t.Errorf("a matrix of %d numbers", len(one.Matrix))
		}
		list = append(list, shares)
	}
	return list
}

// A softmax recalls all pairs if letters differ; if they come again, the delta rule does, and a softmax does not.
func TestLinearRecall(t *testing.T) {
	if testing.Short() || runtime.GOOS == "js" { // where TestStatedRecall trains the same
		t.Skip("trains for seconds")
	}
	const pairs8, pairs16 = 3, 7
	r := recalled(t, false)
	if r[0][pairs16] < 0.99 || r[1][pairs16] > 0.7 || r[2][pairs8] < 0.9 || r[3][pairs8] < 0.93 || r[3][pairs16] > 0.95 {
		t.Errorf("letters that differ: %.2f", r)
	}
	r = recalled(t, true)
	if r[0][pairs16] > 0.7 || r[1][pairs16] > 0.7 || r[2][pairs8] < 0.9 || r[3][pairs16] < 0.99 {
		t.Errorf("letters that come again: %.2f", r)
	}
}
