package statedict_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// counting returns a tensor of the numbers from, from+1, ….
func counting(from float32, shape ...int) *tensor.Tensor {
	x := tensor.Zeros(shape...)
	for i := range x.Data() {
		x.Data()[i] = from + float32(i)
	}
	return x
}

// zeros returns a module of zeros with the same names and shapes.
func zeros(m nn.Module) nn.Vars {
	var vs nn.Vars
	for name, p := range m.Params() {
		vs = append(vs, nn.Var{Name: name, Tensor: tensor.Zeros(p.Shape()...).Param()})
	}
	return vs
}

// sameParams fails the test unless two modules have the same parameters, bit for bit.
func sameParams(t *testing.T, got, want nn.Module) {
	t.Helper()
	list := func(m nn.Module) (all []string) {
		for name, p := range m.Params() {
			all = append(all, fmt.Sprint(name, p.Shape(), p.Data()))
		}
		return all
	}
	if g, w := list(got), list(want); !slices.Equal(g, w) {
		t.Errorf("parameters\n%s\nwant\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

func vars() nn.Vars {
	return nn.Vars{{Name: "w", Tensor: counting(1, 3, 5)}, {Name: "b", Tensor: counting(-7, 2)}, {Name: "scalar", Tensor: counting(0.5)}, {Name: "empty", Tensor: counting(0, 0, 7)}}
}

func TestSaveLoad(t *testing.T) {
	for _, o := range []struct {
		statedict.SaveOptions
		files string
	}{
		{statedict.SaveOptions{}, "model.safetensors"},
		{statedict.SaveOptions{DType: safetensors.F64, Prefix: "a."}, "model.safetensors"},
		{statedict.SaveOptions{DType: safetensors.F16}, "model.safetensors"}, // small integers are exact
		{statedict.SaveOptions{DType: safetensors.BF16}, "model.safetensors"},
		{statedict.SaveOptions{FileBytes: 60, Prefix: "a.b."}, "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json"},
		{statedict.SaveOptions{FileBytes: 100}, "model.safetensors"},
	} {
		dir := t.TempDir()
		want := vars()
		if err := statedict.Save(filepath.Join(dir, "model.safetensors"), want, o.SaveOptions); err != nil {
			t.Fatal(err)
		}
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i] = filepath.Base(list[i])
		}
		if got := strings.Join(list, " "); got != o.files {
			t.Errorf("wrote %s, want %s", got, o.files)
		}
		got := zeros(want)
		if err := statedict.Load(dir, got, statedict.LoadOptions{Prefix: o.Prefix}); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		sameParams(t, got, want)
		if o.FileBytes != 0 {
			continue
		}
		file, err := safetensors.Read(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range file.Tensors {
			names = append(names, strings.TrimPrefix(x.Name, o.Prefix))
			if want := cmp.Or(o.DType, safetensors.F32); x.DType != want {
				t.Errorf("%s is %s, want %s", x.Name, x.DType, want)
			}
		}
		if got := strings.Join(names, " "); got != "b empty scalar w" {
			t.Errorf("wrote %s, want the names in order", got)
		}
		if want := map[string]string{"format": "pt"}; !reflect.DeepEqual(file.Metadata, want) {
			t.Errorf("metadata %v, want %v", file.Metadata, want)
		}
	}
}

func TestSaveTo(t *testing.T) {
	var b bytes.Buffer
	if err := statedict.SaveTo(&b, vars(), statedict.SaveOptions{Metadata: map[string]string{"step": "3"}}); err != nil {
		t.Fatal(err)
	}
	r, err := safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := zeros(vars())
	if err := statedict.LoadFrom(r, got, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	sameParams(t, got, vars())
	if r.Metadata()["step"] != "3" || len(r.Metadata()) != 1 {
		t.Errorf("metadata %v", r.Metadata())
	}
	err = statedict.SaveTo(&b, vars(), statedict.SaveOptions{FileBytes: 100})
	if want := "statedict: SaveTo: FileBytes is for Save: a writer is one file"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestSaveErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	if err := statedict.Save(path, vars(), statedict.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	large := nn.Vars{{Name: "small", Tensor: counting(0, 10000)}, {Name: "w", Tensor: counting(65500, 9000)}} // 65520 is beyond F16
	for _, c := range []struct {
		m    nn.Module
		o    statedict.SaveOptions
		want string
	}{
		{large, statedict.SaveOptions{DType: safetensors.F16}, `tensor "w": element 20 is 65520, which overflows F16`},
		{vars(), statedict.SaveOptions{DType: safetensors.I8}, `tensor "b": dtype is I8, want F16, BF16, F32 or F64`},
		{vars(), statedict.SaveOptions{DType: "F128"}, `tensor "b": unknown dtype "F128", want one of BOOL, `},
		{nn.Vars{{Name: "x", Tensor: counting(0, 1)}, {Name: "x", Tensor: counting(0, 1)}}, statedict.SaveOptions{}, `tensor "x": duplicate name`},
	} {
		err := statedict.Save(path, c.m, c.o)
		if want := "write " + path + ": safetensors: " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
			t.Errorf("%s: the old file has changed, %v", c.want, err)
		}
	}
	if err := statedict.Save(path, vars(), statedict.SaveOptions{Names: nn.TorchNames}); err == nil || err.Error() != "nn: TorchNames: nn.Vars has no PyTorch names: it has no method TorchState" {
		t.Errorf("error %v", err)
	}
}

func TestLoadIsStrict(t *testing.T) {
	f32 := func(name string, shape ...int) safetensors.Tensor {
		x := counting(1, shape...)
		return safetensors.FromFloat32s(name, shape, x.Data())
	}
	many := func(names string, shape ...int) (list []safetensors.Tensor) {
		for _, name := range strings.Split(names, "") {
			list = append(list, f32(name, shape...))
		}
		return list
	}
	ints := safetensors.FromInts("w", []int{3, 5}, make([]int, 15))
	for _, c := range []struct {
		file []safetensors.Tensor
		m    nn.Vars
		o    statedict.LoadOptions
		want string
		as   statedict.MismatchError
	}{
		{file: many("w", 3, 5), m: nn.Vars{{Name: "w", Tensor: counting(0, 3, 5)}, {Name: "b", Tensor: counting(0, 3)}},
			want: `tensor "b" is missing`, as: statedict.MismatchError{Missing: []string{"b"}}},
		{file: many("w", 3, 5), m: nn.Vars{{Name: "w", Tensor: counting(0, 5, 3)}},
			want: `tensor "w" has shape [3 5], want [5 3]`, as: statedict.MismatchError{Misshapen: []statedict.Misshapen{{Name: "w", Got: []int{3, 5}, Want: []int{5, 3}}}}},
		{file: many("w", 15), m: nn.Vars{{Name: "w", Tensor: counting(0, 3, 5)}}, want: `tensor "w" has shape [15], want [3 5]`},
		{file: many("w", 1), m: nn.Vars{{Name: "w", Tensor: counting(0)}}, want: `tensor "w" has shape [1], want []`},
		{file: many("wx", 2), m: nn.Vars{{Name: "w", Tensor: counting(0, 2)}}, want: `tensor "x" is not read`, as: statedict.MismatchError{Unread: []string{"x"}}},
		{file: many("wxyz", 2), m: nn.Vars{{Name: "a", Tensor: counting(0, 2)}, {Name: "b", Tensor: counting(0, 2)}, {Name: "c", Tensor: counting(0, 2)}, {Name: "d", Tensor: counting(0, 2)}, {Name: "e", Tensor: counting(0, 2)}, {Name: "x", Tensor: counting(0)}, {Name: "y", Tensor: counting(0, 3)}},
			want: `tensors "a", "b", "c" and 2 more are missing; tensors "x" has shape [2], want [], "y" has shape [2], want [3]; tensors "w", "z" are not read`},
		{file: many("wxyz", 2), m: nn.Vars{{Name: "w", Tensor: counting(0, 2)}}, o: statedict.LoadOptions{Unread: []string{"x", "[a-y]"}}, want: `tensor "z" is not read`},
		{file: []safetensors.Tensor{f32("a.w", 2), f32("a.x", 2), f32("b.x", 2), f32("w", 2)}, m: nn.Vars{{Name: "w", Tensor: counting(0, 2)}}, o: statedict.LoadOptions{Prefix: "a."}, want: `tensor "a.x" is not read`},
		{file: []safetensors.Tensor{ints}, m: nn.Vars{{Name: "w", Tensor: counting(0, 3, 5)}}, want: `tensor "w": dtype is I64, want F16, BF16, F32 or F64`},
	} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := (&safetensors.File{Tensors: c.file}).WriteFile(path); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(slices.Collect(func(yield func([]float32) bool) {
			for _, p := range c.m.Params() {
				yield(slices.Clone(p.Data()))
			}
		}))
		err := statedict.Load(path, c.m, c.o)
		var bad *safetensors.FormatError
		if !errors.As(err, &bad) || bad.Path != path || bad.Err.Error() != c.want {
			t.Errorf("error %v, want a *safetensors.FormatError %s", err, c.want)
		}
		var mismatch *statedict.MismatchError
		if !reflect.DeepEqual(c.as, statedict.MismatchError{}) && (!errors.As(err, &mismatch) || !reflect.DeepEqual(*mismatch, c.as)) {
			t.Errorf("error %#v, want %#v", mismatch, c.as)
		}
		after := fmt.Sprint(slices.Collect(func(yield func([]float32) bool) {
			for _, p := range c.m.Params() {
				yield(p.Data())
			}
		}))
		if before != after {
			t.Errorf("%s: parameters have changed", c.want)
		}
	}

	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := (&safetensors.File{Tensors: many("wxy", 2)}).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	w := nn.Vars{{Name: "w", Tensor: counting(0, 2)}}
	if err := statedict.Load(path, w, statedict.LoadOptions{Unread: []string{"x", "y", "absent"}}); err != nil {
		t.Error(err)
	}
	if err := statedict.Load(path, w, statedict.LoadOptions{Unread: []string{"["}}); err == nil || err.Error() != `statedict: Load: Unread has "[": syntax error in pattern` {
		t.Errorf("error %v", err)
	}
	if err := statedict.Load(path+".absent", w, statedict.LoadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := statedict.Load(path, w, statedict.LoadOptions{Names: nn.TorchNames}); err == nil {
		t.Error("no error for names that there are none of")
	}
}

func TestLoadRounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	f := &safetensors.File{Tensors: []safetensors.Tensor{safetensors.FromFloat64s("w", []int{2}, []float64{0.1, 1 + 0x1p-30})}}
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	w := nn.Vars{{Name: "w", Tensor: counting(0, 2)}}
	if err := statedict.Load(path, w, statedict.LoadOptions{}); err != nil || !slices.Equal(w[0].Tensor.Data(), []float32{0.1, 1}) {
		t.Errorf("got %v, %v", w[0].Tensor, err)
	}
}

// TestStateDictStacksAndTransposes writes four parameters as three tensors. The first contains rows of two parameters
// in another order, the second is the transpose of two stacked parameters, the third that of three axes.
func TestStateDictStacksAndTransposes(t *testing.T) {
	a, b, c, d := counting(0, 3, 2), counting(100, 2, 2), counting(200, 1, 2), counting(300, 2, 1, 3)
	names := func(vs nn.Vars) func(nn.Module) (nn.StateDict, error) {
		a, b, c, d := vs[0].Tensor, vs[1].Tensor, vs[2].Tensor, vs[3].Tensor
		return func(nn.Module) (nn.StateDict, error) {
			return nn.StateDict{
				{Name: "x", Parts: []*tensor.Tensor{a.Rows(2, 3), c, a.Rows(0, 1)}},
				{Name: "y", Parts: []*tensor.Tensor{b, a.Rows(1, 2)}, Transposed: true},
				{Name: "y.conv", Parts: []*tensor.Tensor{d}, Transposed: true},
				{Name: "z", Refused: "z cannot be expressed"},
			}, nil
		}
	}
	m := nn.Vars{{Name: "a", Tensor: a}, {Name: "b", Tensor: b}, {Name: "c", Tensor: c}, {Name: "d", Tensor: d}}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := statedict.Save(path, m, statedict.SaveOptions{Names: names(m)}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name  string
		shape []int
		x     []float32
	}{
		{"x", []int{3, 2}, []float32{4, 5, 200, 201, 0, 1}}, {"y", []int{2, 3}, []float32{100, 102, 2, 101, 103, 3}},
		{"y.conv", []int{3, 1, 2}, []float32{300, 303, 301, 304, 302, 305}},
	} {
		x, err := f.Tensors[i].Float32s()
		if err != nil || f.Tensors[i].Name != want.name || !slices.Equal(f.Tensors[i].Shape, want.shape) || !slices.Equal(x, want.x) {
			t.Errorf("wrote %s %v %v, %v, want %+v", f.Tensors[i].Name, f.Tensors[i].Shape, x, err, want)
		}
	}
	if len(f.Tensors) != 3 {
		t.Errorf("wrote %d tensors, want 3", len(f.Tensors))
	}
	got := zeros(m)
	if err := statedict.Load(path, got, statedict.LoadOptions{Names: names(got)}); err != nil {
		t.Fatal(err)
	}
	sameParams(t, got, m)

	f.Tensors = append(f.Tensors, safetensors.FromFloat32s("z", []int{1}, []float32{1}))
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	err = statedict.Load(path, got, statedict.LoadOptions{Names: names(got)})
	if want := "safetensors: " + path + `: tensor "z": z cannot be expressed`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestStateDictPanics(t *testing.T) {
	for _, c := range []struct {
		e    nn.Entry
		want string
	}{
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 2, 3), counting(0, 2, 5)}}, `statedict: entry "w" has shape [2 5], want [N [3]] as its first part`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0), counting(0)}}, `statedict: entry "w" has shape [], want [N []] as its first part`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 4), counting(0, 3)}, Interleaved: 2}, `statedict: entry "w" has shape [3], want rows for 2 blocks, not transposed`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 3)}, Transposed: true, Separate: true}, `statedict: entry "w" has shape [3], want a matrix to transpose`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 3, 2)}, Separate: true}, `statedict: entry "w" has shape [3 2], want a matrix to transpose`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 2, 3)}, Columns: [2]int{0, 2}}, `statedict: entry "w" has shape [2 3], want one part to transpose, with columns 0 to 2`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 2, 3)}, Transposed: true, Columns: [2]int{1, 4}}, `statedict: entry "w" has shape [2 3], want one part to transpose, with columns 1 to 4`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 3, 2)}, Blocks: 2}, `statedict: entry "w" has shape [3 2], want rows for 2 blocks, neither transposed nor interleaved`},
		{nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 2)}, Transposed: true}, `statedict: entry "w" has shape [2], want a matrix to transpose`},
	} {
		err := tensor.Catch(func() {
			statedict.SaveTo(new(bytes.Buffer), nn.Vars{}, statedict.SaveOptions{Names: func(nn.Module) (nn.StateDict, error) { return nn.StateDict{c.e}, nil }})
		})
		if err == nil || err.Error() != c.want {
			t.Errorf("panic %v, want %s", err, c.want)
		}
	}
}

// TestModuleFunc saves an optimiser's state together with the parameters.
func TestModuleFunc(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	layer := nn.NewLinear(3, 2, true, rng)
	optimizer := optim.NewAdamW(layer)
	tape := tensor.NewTape(tensor.Train)
	loss := tensor.Mean(tape, layer.Forward(tape, counting(0, 5, 3)))
	tape.Backward(loss, nil)
	optimizer.Step(0.1)
	all := nn.ModuleFunc(func() nn.Params {
		return nn.Join(nn.Named{Name: "param", Module: layer}, nn.Named{Name: "adamw", Module: nn.ModuleFunc(optimizer.State)})
	})
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := statedict.Save(path, all, statedict.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	got := zeros(all)
	if err := statedict.Load(path, got, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	sameParams(t, got, all)
	moved := false
	for _, p := range got.Params() {
		moved = moved || slices.ContainsFunc(p.Data(), func(v float32) bool { return v != 0 && !math.IsNaN(float64(v)) })
	}
	if !moved {
		t.Error("all is zero")
	}
}

// Tensors of several pieces, and transposed tensors of several rows, load correctly on any number of processors. A
// file that ends during the read is an error.
func TestLoadInPieces(t *testing.T) {
	const rows, columns, in, first, second = 1031, 1033, 131, 67, 71
	path := filepath.Join(t.TempDir(), "model.safetensors")
	made := nn.Vars{{Name: "large", Tensor: counting(1, rows, columns)}, {Name: "turned", Tensor: counting(-5, in, first+second)}}
	if err := statedict.Save(path, made, statedict.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, procs := range []int{1, 2, 7} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		large, a, b := tensor.Zeros(rows, columns), tensor.Zeros(first, in), tensor.Zeros(second, in)
		names := func(nn.Module) (nn.StateDict, error) {
			return nn.StateDict{{Name: "large", Parts: []*tensor.Tensor{large}}, {Name: "turned", Parts: []*tensor.Tensor{a, b}, Transposed: true}}, nil
		}
		r, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
		if err == nil {
			err = statedict.LoadFrom(r, nil, statedict.LoadOptions{Names: names})
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(large.Data(), made[0].Tensor.Data()) {
			t.Errorf("%d processors: another tensor", procs)
		}
		for j := range first + second {
			y := a.Data()
			if j >= first {
				y = b.Data()[(j-first)*in:]
			} else {
				y = y[j*in:]
			}
			for k := range in {
				if got, want := y[k], made[1].Tensor.Data()[k*(first+second)+j]; got != want {
					t.Fatalf("%d processors: output %d, input %d is %v, want %v", procs, j, k, got, want)
				}
			}
		}
		short, err := safetensors.NewReader(bytes.NewReader(data[:len(data)-1000]), int64(len(data)))
		if err == nil {
			err = statedict.LoadFrom(short, nil, statedict.LoadOptions{Names: names})
		}
		if err == nil || !strings.Contains(err.Error(), "became shorter while it was read") {
			t.Errorf("%d processors: %v from a file that ends early", procs, err)
		}
	}
}

// Rows of several parts that alternate in the file, as in GPT-NeoX.
func TestInterleavedEntries(t *testing.T) {
	a, b := tensor.New([]float32{1, 2, 3, 4, 7, 8, 9, 10}, 4, 2), tensor.New([]float32{5, 6, 11, 12}, 2, 2)
	names := func(e nn.Entry) func(nn.Module) (nn.StateDict, error) {
		return func(nn.Module) (nn.StateDict, error) { return nn.StateDict{e}, nil }
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	e := nn.Entry{Name: "w", Parts: []*tensor.Tensor{a, b}, Interleaved: 2}
	if err := statedict.Save(path, nil, statedict.SaveOptions{Names: names(e)}); err != nil {
		t.Fatal(err)
	}
	whole := tensor.Zeros(6, 2)
	if err := statedict.Load(path, nn.Vars{{Name: "w", Tensor: whole}}, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, v := range whole.Data() {
		if v != float32(i+1) {
			t.Fatalf("the file has %v", whole.Data())
		}
	}
	a2, b2 := tensor.Zeros(4, 2), tensor.Zeros(2, 2)
	e.Parts = []*tensor.Tensor{a2, b2}
	packed := []*tensor.Packed{tensor.NewPacked(4, 2, tensor.Float32), tensor.NewPacked(2, 2, tensor.Float32)}
	for _, entry := range []nn.Entry{e, {Name: "w", Packed: packed, Interleaved: 2}} {
		if err := statedict.Load(path, nil, statedict.LoadOptions{Names: names(entry)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a2.Data(), a.Data()) || !slices.Equal(b2.Data(), b.Data()) {
		t.Errorf("loaded %v and %v", a2.Data(), b2.Data())
	}
	if got := packed[0].Rows(nil, []int{0, 1, 2, 3}).Data(); !slices.Equal(got, a.Data()) {
		t.Errorf("packed %v", got)
	}
}

// Transposes of several parts that are one below the other in the file, as the experts of Nomic Embed 2.
func TestSeparateEntries(t *testing.T) {
	a, b := tensor.New([]float32{1, 3, 5, 2, 4, 6}, 2, 3), tensor.New([]float32{7, 9, 11, 8, 10, 12}, 2, 3)
	names := func(e nn.Entry) func(nn.Module) (nn.StateDict, error) {
		return func(nn.Module) (nn.StateDict, error) { return nn.StateDict{e}, nil }
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	e := nn.Entry{Name: "w", Parts: []*tensor.Tensor{a, b}, Transposed: true, Separate: true}
	if err := statedict.Save(path, nil, statedict.SaveOptions{Names: names(e)}); err != nil {
		t.Fatal(err)
	}
	whole := tensor.Zeros(6, 2)
	if err := statedict.Load(path, nn.Vars{{Name: "w", Tensor: whole}}, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, v := range whole.Data() {
		if v != float32(i+1) {
			t.Fatalf("the file has %v", whole.Data())
		}
	}
	a2, b2 := tensor.Zeros(2, 3), tensor.Zeros(2, 3)
	e.Parts = []*tensor.Tensor{a2, b2}
	packed := []*tensor.Packed{tensor.NewPacked(2, 3, tensor.Float32), tensor.NewPacked(2, 3, tensor.Float32)}
	for _, entry := range []nn.Entry{e, {Name: "w", Packed: packed, Transposed: true, Separate: true}} {
		if err := statedict.Load(path, nil, statedict.LoadOptions{Names: names(entry)}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a2.Data(), a.Data()) || !slices.Equal(b2.Data(), b.Data()) {
		t.Errorf("loaded %v and %v", a2.Data(), b2.Data())
	}
	if got := packed[1].Rows(nil, []int{0, 1}).Data(); !slices.Equal(got, b.Data()) {
		t.Errorf("packed %v", got)
	}
}

// The maps of experts are blocks of rows of one tensor [N H D].
func TestBlocks(t *testing.T) {
	e := nn.Entry{Name: "w", Parts: []*tensor.Tensor{counting(0, 2, 5), counting(10, 4, 5)}, Blocks: 3}
	names := func(nn.Module) (nn.StateDict, error) { return nn.StateDict{e}, nil }
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := statedict.Save(path, nil, statedict.SaveOptions{Names: names}); err != nil {
		t.Fatal(err)
	}
	whole := tensor.Zeros(3, 2, 5)
	if err := statedict.Load(path, nn.Vars{{Name: "w", Tensor: whole}}, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(whole.Data(), slices.Concat(e.Parts[0].Data(), e.Parts[1].Data())) {
		t.Errorf("the file has %v", whole.Data())
	}
	want := e.Parts[1].Data()
	e.Parts = []*tensor.Tensor{tensor.Zeros(2, 5), tensor.Zeros(4, 5)}
	if err := statedict.Load(path, nil, statedict.LoadOptions{Names: names}); err != nil || !slices.Equal(e.Parts[1].Data(), want) {
		t.Errorf("loaded %v, %v", e.Parts[1].Data(), err)
	}
}

// Several tensors of a file are columns of one parameter, as the convolutions of OLMo Hybrid.
func TestColumns(t *testing.T) {
	w := tensor.New([]float32{1, 3, 5, 7, 9, 2, 4, 6, 8, 10}, 2, 1, 5)
	names := func(w *tensor.Tensor) func(nn.Module) (nn.StateDict, error) {
		return func(nn.Module) (nn.StateDict, error) {
			return nn.StateDict{
				{Name: "a", Parts: []*tensor.Tensor{w}, Transposed: true, Columns: [2]int{0, 3}},
				{Name: "b", Parts: []*tensor.Tensor{w}, Transposed: true, Columns: [2]int{3, 5}},
			}, nil
		}
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := statedict.Save(path, nil, statedict.SaveOptions{Names: names(w)}); err != nil {
		t.Fatal(err)
	}
	a, b := tensor.Zeros(3, 1, 2), tensor.Zeros(2, 1, 2)
	if err := statedict.Load(path, nn.Vars{{Name: "a", Tensor: a}, {Name: "b", Tensor: b}}, statedict.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(a.Data(), b.Data()); !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("the file has %v", got)
	}
	again := tensor.Zeros(2, 1, 5)
	if err := statedict.Load(path, nil, statedict.LoadOptions{Names: names(again)}); err != nil || !slices.Equal(again.Data(), w.Data()) {
		t.Errorf("loaded %v, %v", again.Data(), err)
	}
}

// Packed matrices are filled by Load. Save rejects them, because the original numbers are lost.
func TestPackedEntries(t *testing.T) {
	weight := nn.Vars{{Name: "w", Tensor: tensor.New([]float32{1, 2, 3, 4, 5, 6}, 3, 2)}}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := statedict.Save(path, weight, statedict.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, transposed := range []bool{false, true} {
		out, in, want := 3, 2, []float32{5, 6}
		if transposed {
			out, in, want = 2, 3, []float32{2, 4, 6}
		}
		p := tensor.NewPacked(out, in, tensor.Float32)
		names := func(nn.Module) (nn.StateDict, error) {
			return nn.StateDict{{Name: "w", Packed: []*tensor.Packed{p}, Transposed: transposed}}, nil
		}
		if err := statedict.Load(path, nil, statedict.LoadOptions{Names: names}); err != nil {
			t.Fatal(err)
		}
		if got := p.Rows(nil, []int{out - 1}).Data(); !slices.Equal(got, want) {
			t.Errorf("transposed %v: last row %v, want %v", transposed, got, want)
		}
		err := statedict.Save(path+"2", weight, statedict.SaveOptions{Names: names})
		if err == nil || !strings.Contains(err.Error(), "packed for inference") {
			t.Errorf("error %v, want one about packed weights", err)
		}
	}
}
