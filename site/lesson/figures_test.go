package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// call calls a handler and converts its result, as a page receives it.
func call[T any](t *testing.T, name string, args any, frame func(T)) T {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	convert := func(from any) (to T) {
		t.Helper()
		text, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(text, &to)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return to
	}
	result, err := run(context.Background(), name, text, func(f any) {
		if frame != nil {
			frame(convert(f))
		}
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return convert(result)
}

type object = map[string]any

// The weights of a place are those of the formula.
func TestRegressionEstimate(t *testing.T) {
	o := call[observations](t, "regression.data", object{"seed": 1, "n": 20, "noise": 0.5}, nil)
	e := call[estimated](t, "regression.estimate", object{"x": o.X, "y": o.Y, "w": 2}, nil)
	for i, at := range e.X {
		var sum, out float64
		for j, x := range o.X {
			w := math.Exp(-math.Pow(2*float64(at-x), 2) / 2)
			sum += w
			out += w * float64(o.Y[j])
		}
		if math.Abs(out/sum-float64(e.Out[i])) > 1e-5 {
			t.Errorf("at %v: %v, want %v", at, e.Out[i], out/sum)
		}
	}
}

// Learning from the others narrows the kernel to a useful width. If observations may use
// themselves, the loss falls, w grows without end, and the distance from the truth is larger.
func TestRegressionLearn(t *testing.T) {
	o := call[observations](t, "regression.data", object{"seed": 1, "n": 50, "noise": 0.5}, nil)
	frames := 0
	args := object{"x": o.X, "y": o.Y, "w": 1, "steps": 200, "rate": 0.5}
	good := call(t, "regression.learn", args, func(learning) { frames++ })
	args["self"] = true
	trap := call[learning](t, "regression.learn", args, nil)
	if frames != 201 || good.Step != 200 {
		t.Errorf("%d frames, %d steps", frames, good.Step)
	}
	// CI runs this test natively and as WebAssembly: the learnt w is the same within 0.001.
	if math.Abs(float64(good.W)-5.6188) > 1e-3 || trap.W < 2*good.W || trap.SelfToo > 0.9*good.SelfToo || trap.Error < good.Error {
		t.Errorf("from others w %v, loss %v, error %v; with itself w %v, loss %v, error %v",
			good.W, good.SelfToo, good.Error, trap.W, trap.SelfToo, trap.Error)
	}
}

// Rows sum to 1, and masked keys have the weight 0.
func TestScoresCompare(t *testing.T) {
	keys := [][2]float32{{1, 0}, {0, 1}, {-1, 0}, {2, 2}}
	args := object{"query": []float32{1, 1}, "keys": keys, "valid": 3, "seed": 1}
	list := call[[]compared](t, "scores.compare", args, nil)
	if len(list) != 7 {
		t.Fatalf("%d scores, want 7", len(list))
	}
	for j, s := range list[4].Scores { // vectors of size 2: the scaled bilinear score is the bilinear one / √2
		if got := list[5].Scores[j]; math.Abs(float64(s)/math.Sqrt2-float64(got)) > 1e-6 {
			t.Errorf("key %d: bilinear %v, scaled %v", j, s, got)
		}
	}
	for _, c := range list {
		sum := float32(0)
		for _, w := range c.Weights {
			sum += w
		}
		if math.Abs(float64(sum)-1) > 1e-6 || c.Weights[3] != 0 {
			t.Errorf("%s: weights %v", c.Name, c.Weights)
		}
	}
	if s := list[0].Scores; !slices.Equal(s, []float32{1, 1, -1, 4}) {
		t.Errorf("dot products %v", s)
	}
}

// Without scaling the largest weight approaches 1 as vectors grow; with it, nothing changes.
func TestScoresScaling(t *testing.T) {
	list := call[[]scaling](t, "scores.scaling", object{"seed": 1}, nil)
	first, last := list[0], list[len(list)-1]
	same := math.Abs(last.Largest[1]-first.Largest[1]) < 0.15
	if last.E != 1024 || last.Largest[0] < 0.95 || !same || last.Slope[0] > 0.1 {
		t.Errorf("E 1: %+v; E 1024: %+v", first, last)
	}
}

// Neither lengths nor NaN in padding change the other sequence.
func TestScoresLengths(t *testing.T) {
	type result struct {
		Weights []float32 `json:"weights"`
		Hidden  []bool    `json:"hidden"`
		Out     float64   `json:"out"`
		Broken  int       `json:"broken"`
	}
	plain := call[result](t, "scores.lengths", object{"lengths": []int{7, 4}}, nil)
	nan := call[result](t, "scores.lengths", object{"lengths": []int{7, 4}, "nan": true}, nil)
	if !slices.Equal(plain.Weights, nan.Weights) || plain.Out != nan.Out || !plain.Hidden[49+4] || plain.Hidden[4] {
		t.Error("NaN in padding changes the result, or the mask is wrong")
	}
	call[result](t, "scores.lengths", object{"lengths": []int{0, 0}, "nan": true}, nil)
	// Masks of keys alone compute the queries of padding too, which changes no other.
	keys := call[result](t, "scores.lengths", object{"lengths": []int{7, 4}, "nan": true, "keysOnly": true}, nil)
	if keys.Out != plain.Out || keys.Broken != 3 || nan.Broken != 0 || keys.Hidden[49+4*7] || !keys.Hidden[49+4] {
		t.Errorf("masks of keys: output %v, want %v, %d vectors with NaN, want 3", keys.Out, plain.Out, keys.Broken)
	}
}

func TestMasks(t *testing.T) {
	type built struct {
		Weights []float32 `json:"weights"`
		Hidden  []bool    `json:"hidden"`
		Mask    string    `json:"mask"`
		Change  string    `json:"change"`
	}
	args := object{"length": 6, "causal": true, "window": []int{2, 0}, "documents": []int{2, 6}}
	b := call[built](t, "masks.build", args, nil)
	if want := "attn.And(mask.Causal(), mask.Window(2, 0), mask.Documents([]int{2, 6}))"; b.Mask != want {
		t.Errorf("%s, want %s", b.Mask, want)
	}
	for i := range 6 {
		for j := range 6 {
			if seen := j <= i && j >= i-2 && (i < 2) == (j < 2); b.Hidden[6*i+j] == seen {
				t.Errorf("query %d, key %d: hidden %v", i, j, b.Hidden[6*i+j])
			}
		}
	}
	b = call[built](t, "masks.build", object{"length": 4, "alibi": 0.5}, nil)
	if ratio := b.Weights[1] / b.Weights[0]; math.Abs(float64(ratio)-math.Exp(-0.5)) > 1e-6 {
		t.Errorf("the next key has %v of the weight, want exp(-0.5)", ratio)
	}
	call[built](t, "masks.build", object{"length": 12, "t5": true, "prefix": 3, "valid": 9, "random": true}, nil)

	layouts := call[struct{ Difference float64 }](t, "masks.layouts", object{"batch": 3, "length": 4, "seed": 1}, nil)
	cache := call[struct{ Same bool }](t, "masks.cache", object{"steps": 8, "seed": 1}, nil)
	if layouts.Difference != 0 || !cache.Same {
		t.Errorf("layouts differ by %v; a cache gives the same bits: %v", layouts.Difference, cache.Same)
	}
}

// Bad input is an error that says what is wanted.
func TestFiguresRefuse(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"regression.estimate", `{"x":[],"y":[],"w":1}`, "at least one key"},
		{"regression.estimate", `{"x":[1],"y":[],"w":1}`, "1 places have 0 values"},
		{"regression.learn", `{"x":[1],"y":[1],"w":1,"steps":1,"rate":0.1}`, "add a second one"},
		{"regression.data", `{"n":100000}`, "want 1 to 500"},
		{"scores.compare", `{"keys":[]}`, "want 1 to 64"},
		{"scores.lengths", `{"lengths":[8,1]}`, "want 0 to 7"},
		{"masks.build", `{"length":0}`, "want 1 to 64"},
		{"masks.build", `{"length":6,"documents":[5,2]}`, "cumulative lengths"},
		{"masks.cache", `{"steps":1000}`, "want 1 to 64"},
		{"shapes.steps", `{"batch":2,"heads":2,"queries":3,"keys":0,"width":8}`, "want 1 to 64"},
		{"masks.layouts", `{"batch":100,"length":1}`, "at most 8 of 16"},
	} {
		_, err := run(context.Background(), c.name, []byte(c.args), func(any) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.name, c.args, err, c.want)
		}
	}
}

// The arrays of the lesson on shapes: each is computed from the one before, and their end is what the layer gives.
func TestShapes(t *testing.T) {
	type steps struct {
		Arrays []struct {
			Step, Name   string
			Shape, Shown []int
			Data         []*float32
		}
		Refused    string
		Difference float64
	}
	args := object{"batch": 3, "heads": 4, "queries": 5, "keys": 6, "width": 8, "lengths": []int{2, 9}, "seed": 1}
	s := call[steps](t, "shapes.steps", args, nil)
	if s.Difference > 1e-6 || len(s.Arrays) != 20 {
		t.Errorf("%d arrays, difference %g", len(s.Arrays), s.Difference)
	}
	for i, a := range s.Arrays {
		n := 1
		for _, d := range a.Shown {
			n *= d
		}
		if n != len(a.Data) || a.Step == "d2l" && !slices.Equal(a.Shape, []int{12, 5, 6}) || a.Step == "d2l" && a.Shown[0] != 8 {
			t.Errorf("array %d, %s %s: shape %v, shown %v of %d numbers", i, a.Step, a.Name, a.Shape, a.Shown, len(a.Data))
		}
		switch a.Step {
		case "mask", "softmax": // of the first sequence 2 keys are valid, of the second all 6
			for k, x := range a.Data {
				masked := k < len(a.Data)/2 && k%6 >= 2
				if a.Step == "mask" && (x == nil) != masked || a.Step == "softmax" && (*x == 0) != masked {
					t.Errorf("%s: number %d is %v", a.Step, k, x)
				}
			}
		case "labml": // [Lq Lk B H] of [B H Lq Lk]
			w := s.Arrays[i-2].Data
			for k, x := range a.Data {
				h, b, j, i := k%4, k/4%2, k/8%6, k/48
				if *x != *w[((b*4+h)*5+i)*6+j] {
					t.Fatalf("weight %d is %v", k, *x)
				}
			}
		}
	}
	args["width"] = 9
	if s := call[steps](t, "shapes.steps", args, nil); !strings.Contains(s.Refused, "width 9 is not divisible by 4 heads") {
		t.Errorf("width 9 and 4 heads: %q", s.Refused)
	}
}

// Numbers that are not finite become null, which pages show as –: JSON has no NaN.
func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		from any
		want string
	}{
		{reals{0.25, nan, inf, -1e-7, 0}, `[0.25,null,null,-1e-07,0]`},
		{reals(nil), `[]`},
		{[]real{real(nan), 2, -real(inf)}, `[null,2,null]`},
		{learning{Step: 1, W: real(nan)}, `{"step":1,"w":null,"x":[],"truth":[],"out":[],"weights":[],"error":0,"loss":0,"selfToo":0}`},
	} {
		if got, err := json.Marshal(c.from); err != nil || string(got) != c.want {
			t.Errorf("%v: %s, %v, want %s", c.from, got, err, c.want)
		}
	}
	// A kernel of any width is an answer, not an error.
	for _, w := range []float32{0, 1e30, math.MaxFloat32} {
		e := call[map[string]any](t, "regression.estimate", object{"x": []float32{1, 2}, "y": []float32{3, 4}, "w": w}, nil)
		if len(e["weights"].([]any)) != 2*places {
			t.Errorf("w %v: %d weights", w, len(e["weights"].([]any)))
		}
	}
}

// The figure of lesson 1 learns the width that the lesson states.
func TestStatedWidth(t *testing.T) {
	o := call[observations](t, "regression.data", object{"seed": 1, "n": 50, "noise": 0.5}, nil)
	end := call[struct{ W float64 }](t, "regression.learn", object{"x": o.X, "y": o.Y, "w": 1, "steps": 300, "rate": 0.5, "self": false}, nil)
	text, err := os.ReadFile("../../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("*w* becomes %.1f", end.W); !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
		t.Errorf("docs/lessons.md does not state what the figure learns: %q", want)
	}
}

// The trained scores of lesson 2 end with the losses that the lesson states: each learns what its formula can express.
func TestStatedScores(t *testing.T) {
	text, err := os.ReadFile("../../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	for near, row := range map[bool]string{false: "the largest product with a hidden map", true: "the nearest first element"} {
		want := "| " + row + " |"
		for _, losses := range call[[][]float64](t, "scores.train", object{"e": 16, "near": near}, nil) {
			sum := 0.
			for _, loss := range losses[380:] {
				sum += loss / 20
			}
			want += fmt.Sprintf(" %.1f |", sum)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/lessons.md does not state %q", want)
		}
	}
}
