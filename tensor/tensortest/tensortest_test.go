package tensortest

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// recorder is a test that notes its failures.
type recorder struct {
	testing.TB
	log []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any)                 { r.log = append(r.log, fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }

// failures runs f and returns the failures that it reported.
func failures(f func(tb testing.TB)) string {
	r, done := new(recorder), make(chan bool)
	go func() { // for Goexit to end
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.log, "\n")
}

// check fails unless f reports something that matches want, or nothing where
// want is empty.
func check(t *testing.T, what, want string, f func(tb testing.TB)) {
	t.Helper()
	got := failures(f)
	if (want == "") != (got == "") || !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("%s: reported %q, want %q", what, got, want)
	}
}

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestClose(t *testing.T) {
	const floor = 1.0 / (1 << 20)
	for _, c := range []struct {
		what   string
		got    []float32
		want   []float64
		budget float64
		fails  string
	}{
		{"equal", []float32{1, 2}, []float64{1, 2}, 0, ""},
		{"lengths", []float32{1, 2}, []float64{1}, 0, `^x: 2 elements, want 1$`},
		{"within the floor", []float32{1 + floor/2}, []float64{1}, 0, ""},
		{"outside the floor", []float32{0, 1 + 2*floor}, []float64{0, 1}, 0,
			`^x: element 1 of 2 is 1\.0000019, want 1: off by 1\.91e-06, allowed 9\.54e-07 \(budget 0\); 1 elements are off$`},
		{"floor of a large neighbour", []float32{1000, 1.0005}, []float64{1000, 1}, 0, ""},
		{"within the budget", []float32{1.02}, []float64{1}, 0.01, ""},
		{"outside the budget", []float32{1.03, 1.05}, []float64{1, 1}, 0.01, `element 1 of 2 is 1\.05.*; 2 elements`},
		{"a NaN", []float32{float32(nan)}, []float64{1}, 100, `element 0 of 1 is NaN, want 1`},
		{"a number for a NaN", []float32{1}, []float64{nan}, 100, `want NaN`},
		{"both NaN", []float32{float32(nan)}, []float64{nan}, 0, ""},
		{"both infinite", []float32{float32(inf), 1}, []float64{inf, 1}, 0, ""},
		{"another infinity", []float32{float32(inf)}, []float64{-inf}, 0, `want -Inf`},
		{"infinity beside numbers", []float32{float32(inf), 2}, []float64{inf, 1}, 0, `element 1 of 2`},
	} {
		check(t, c.what, c.fails, func(tb testing.TB) { Close(tb, "x", c.got, c.want, c.budget) })
	}
}

func TestSame(t *testing.T) {
	n := float32(nan)
	for _, c := range []struct {
		got, want []float32
		fails     string
	}{
		{[]float32{1, n}, []float32{1, n}, ""},
		{[]float32{n}, []float32{-n}, ""},
		{[]float32{1}, []float32{1, 2}, `1 elements, want 2`},
		{[]float32{0}, []float32{float32(math.Copysign(0, -1))}, `element 0 of 1 is 0 \(0x00000000\), want the bits of -0 \(0x80000000\); 1 elements differ`},
		{[]float32{1, 2, n}, []float32{1, 2.0000002, 3}, `element 1 of 3 .*; 2 elements differ`},
	} {
		check(t, fmt.Sprint(c.got, c.want), c.fails, func(tb testing.TB) { Same(tb, "x", c.got, c.want) })
	}
	near := func(got ...float32) func(tb testing.TB) {
		return func(tb testing.TB) { Near(tb, "x", tensor.New(got, len(got)), tensor.New([]float32{1, 2}, 2)) }
	}
	check(t, "nearly the same", "", near(1.000002, 2))
	check(t, "not nearly", `^x: element 1 of 2 is 2.00001, want 2`, near(1, 2.00001))
	check(t, "another size", `^x: 3 elements, want 2`, near(1, 2, 3))
}

func TestTapeIsPoisoned(t *testing.T) {
	tape := Tape(tensor.Eval)
	if tape.Training() {
		t.Error("the tape has another mode")
	}
	for _, v := range tape.Make(67, 3).Data() {
		if v == v {
			t.Fatalf("fresh memory holds %v", v)
		}
	}
}

// cube returns x³ from an operation whose backward pass and result can be got
// wrong.
func cube(t *tensor.Tape, x *tensor.Tensor, back func(dx, dy, x []float32)) *tensor.Tensor {
	y := t.Make(x.Shape()...)
	for i, v := range x.Data() {
		y.Data()[i] = v * v * v
	}
	if t.Needs(x) {
		t.Record(y, func(dy []float32) { back(t.GradOf(x), dy, x.Data()) })
	}
	return y
}

func cubeBack(dx, dy, x []float32) {
	for i, v := range x {
		dx[i] += 3 * v * v * dy[i]
	}
}

func TestGradCheck(t *testing.T) {
	x := tensor.New([]float32{-1.5, 0, 0.25, 2, 3}, 5)
	before := x.Clone()
	type op = func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor
	with := func(back func(dx, dy, x []float32)) op {
		return func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor { return cube(t, in[0], back) }
	}
	calls := 0
	for _, c := range []struct {
		what  string
		f     op
		fails string
	}{
		{"right", with(cubeBack), ""},
		{"dropout", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return tensor.Dropout(t, cube(t, in[0], cubeBack), 0.5)
		}, ""},
		{"one per cent off", with(func(dx, dy, x []float32) {
			for i, v := range x {
				dx[i] += 2.97 * v * v * dy[i]
			}
		}), `x: gradient of input 0, shape \[5\], element \d is .*, differences say .*: off by .*, allowed`},
		{"a NaN", with(func(dx, dy, x []float32) { cubeBack(dx, dy, x); dx[3] = float32(nan) }), `element \d is NaN`},
		{"no gradient", with(func(dx, dy, x []float32) {}), `element 0 is 0, differences say`},
		{"not recorded", func(_ *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor { return tensor.Square(nil, in[0]) }, `element 0 is 0`},
		{"gradients that do not add up", with(func(dx, dy, x []float32) {
			for i, v := range x {
				dx[i] = 3 * v * v * dy[i]
			}
		}), `^x: gradient after two backward passes of input 0, element 0 .*\nx: gradient of two uses on one tape of input 0, element 0 is .*, want the sum .*$`},
		{"memory taken for zeroed", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			y := cube(t, in[0], cubeBack)
			z := t.Make(5)
			for i, v := range y.Data() {
				z.Data()[i] += v
			}
			return z
		}, `on a tape in mode Infer: element 0 of 5 is NaN`},
		{"a mode that shows", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			if t.Training() {
				return tensor.Scale(t, in[0], 2)
			}
			return tensor.Scale(t, in[0], 3)
		}, `^x: on a tape in mode Train: element 0`},
		{"a result that changes", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			calls++
			return tensor.Scale(t, in[0], float32(calls))
		}, `in reused memory`},
	} {
		check(t, c.what, c.fails, func(tb testing.TB) { GradCheck(tb, "x", c.f, []*tensor.Tensor{x}) })
		Same(t, c.what+": the input afterwards", x.Data(), before.Data())
		Same(t, c.what+": its gradient afterwards", x.Grad().Data(), make([]float32, 5))
	}
}

func TestGradCheckOfManyElements(t *testing.T) {
	x := tensor.Full(0.5, 3*sample)
	wrong := func(dx, dy, x []float32) { // for half of the elements
		cubeBack(dx[:len(dx)/2], dy[:len(dx)/2], x[:len(dx)/2])
	}
	check(t, "half wrong", `gradient of input 0`, func(tb testing.TB) {
		GradCheck(tb, "x", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor { return cube(t, in[0], wrong) }, []*tensor.Tensor{x})
	})
	unused := tensor.Full(1, 3)
	GradCheck(t, "an input without influence", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor { return cube(t, in[0], cubeBack) },
		[]*tensor.Tensor{x, unused})
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.safetensors")
	file := &safetensors.File{
		Metadata: map[string]string{"heads": "3", "eps": "1e-05", "budget.want.out": "0.01", "budget.grad.q": "0"},
		Tensors: []safetensors.Tensor{
			safetensors.FromFloat32s("in.q", []int{2, 1}, []float32{1, 2}),
			safetensors.FromFloat64s("want.out", []int{1, 2}, []float64{3, 4}),
			safetensors.FromFloat64s("grad.q", []int{2, 1}, []float64{0, 0}),
			safetensors.FromInts("in.lens", []int{2}, []int{7, -1}),
			safetensors.FromBools("in.mask", []int{2}, []bool{true, false}),
		},
	}
	if err := file.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	g := Open(t, path)
	q := g.Tensor("in.q")
	if q.String() != "[[1] [2]]" || q.NeedsGrad() || !slices.Equal(g.Float64s("want.out"), []float64{3, 4}) ||
		!slices.Equal(g.Ints("in.lens"), []int{7, -1}) || !slices.Equal(g.Bools("in.mask"), []bool{true, false}) {
		t.Error("the tensors are not those of the file")
	}
	if !g.Has("in.q") || g.Has("in.k") || !slices.Equal(g.Shape("want.out"), []int{1, 2}) ||
		g.Setting("heads") != "3" || g.Setting("softcap") != "" || g.Number("eps") != 1e-5 {
		t.Error("names, shapes or settings are not those of the file")
	}
	g.Check("want.out", tensor.New([]float32{3, 4.015}, 2))
	g.CheckGrad("grad.q", q) // has none
	g.Done()

	bad := tensor.New([]float32{0.1, 0}, 2, 1)
	tape := tensor.NewTape(tensor.Eval)
	p := tensor.Full(1, 2, 1).Param()
	tape.Backward(tensor.Scale(tape, p, 1), bad)
	for what, c := range map[string]struct {
		want string
		f    func(g *Golden)
	}{
		"absent":         {`^case.safetensors: no tensor "in.k"$`, func(g *Golden) { g.Tensor("in.k") }},
		"another type":   {`^case.safetensors: .*in.lens.*I64`, func(g *Golden) { g.Float64s("in.lens") }},
		"no number":      {`^case.safetensors: setting "scale": .*invalid syntax`, func(g *Golden) { g.Number("scale") }},
		"another size":   {`^case.safetensors: want.out: shape \[3\], want the size of \[1 2\]$`, func(g *Golden) { g.Check("want.out", tensor.Zeros(3)) }},
		"other numbers":  {`^case.safetensors: want.out: element 1 of 2 is 4.03, want 4`, func(g *Golden) { g.Check("want.out", tensor.New([]float32{3, 4.03}, 2)) }},
		"wrong gradient": {`^case.safetensors: grad.q: element 0 of 2`, func(g *Golden) { g.CheckGrad("grad.q", p) }},
		"a leaf's gradient": {`^case.safetensors: grad.q: element 0 of 2 is 0.1, want 0`, func(g *Golden) {
			tape.Backward(tensor.Scale(tape, g.Leaf("in.q"), 1), bad)
			g.CheckGrads()
		}},
		"not read": {`in.lens has not been read`, func(g *Golden) { Open(g.tb, path).Done() }},
	} {
		check(t, what, c.want, func(tb testing.TB) { c.f(g.On(tb)) })
	}
	check(t, "no file", `absent`, func(tb testing.TB) { Open(tb, filepath.Join(t.TempDir(), "absent")) })
}
