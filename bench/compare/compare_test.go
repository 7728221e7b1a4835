package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/bench/history"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// TestMain lets this test program replace Python, depending on FAKE_PEER. With "works" it answers like the server.
// With "fails" it exits like Python without a required package, and with "lacks" it answers like the server without
// one.
func TestMain(m *testing.M) {
	switch os.Getenv("FAKE_PEER") {
	case "works":
		if strings.HasPrefix(os.Args[1], "--") { // the program, started by itself
			os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
		}
		fakePeer(os.Args[2])
		return
	case "lacks":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(`{"missing": "ModuleNotFoundError: No module named 'it'"}`)
		}
		return
	case "fails":
		fmt.Fprintln(os.Stderr, "Traceback\nModuleNotFoundError: No module named 'torch'")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fakePeer takes 3 ms for everything. ONNX Runtime cannot train, and OpenVINO is not installed.
func fakePeer(library string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		switch {
		case library == "openvino":
			fmt.Println(`{"missing": "ModuleNotFoundError: No module named 'openvino'"}`)
		case r.Op == "version":
			fmt.Println(`{"version": "1.2.3+cpu"}`)
		case strings.HasSuffix(r.Op, "-train") && library == "onnxruntime":
			fmt.Println(`{"unsupported": "no training"}`)
		default:
			fmt.Printf(`{"ms_median": 3, "ms_min": 2, "ms_max": 4, "form": "%s on %d threads for %v s"}`+"\n", r.Op, r.Threads, r.Time)
		}
	}
}

// compareWith runs the program in the root of the repository with a fake peer.
func compareWith(t *testing.T, peer string, args ...string) (code int, out, messages string) {
	t.Helper()
	t.Chdir("../..")
	t.Setenv("FAKE_PEER", peer)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var o, m bytes.Buffer
	code = run(context.Background(), append([]string{"--python", self, "--time", "1ms"}, args...), &o, &m)
	return code, o.String(), m.String()
}

func TestCompare(t *testing.T) {
	code, out, messages := compareWith(t, "works", "--rounds", "2", "--threads", "1", "--only", "gemm 512|translator")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	for _, want := range []string{
		`(?ms)^\d{4}-\d\d-\d\d, .+, 1\sof\s\d+\sprocessors\. Go\s1\..*,\sPyTorch\s1\.2\.3,\sONNX\sRuntime\s1\.2\.3\.\sMedians\sover\s2\srounds`,
		`(?m)^\| work \| attn ms \| share of peak \| PyTorch ms \| ratio \| ONNX Runtime ms \| ratio \|$`,
		`(?m)^\| gemm 512×512×512( \*)? \| [0-9.]+ \| \d+% \| 3\.00 \| [0-9.]+× \| 3\.00 \| [0-9.]+× \|$`,
		`(?m)^\| translator-train B32 L10 width 128( \*)? \| [0-9.]+ \| [0-9.]+k tokens/s \| 3\.00 \| [0-9.]+× \| – \| – \|$`,
		`(?m)^- PyTorch, gemm on 1 threads for 0\.001 s: gemm 512×512×512$`,
		`(?m)^- ONNX Runtime, nothing \(no training\): translator-train B32 L10 width 128$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// ATTN_SIMD selects the implementation, when the program starts.
func TestCompareAnotherImplementation(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for implementation, want := range map[string]string{"generic": " with generic kernels, ", "mmx": "mmx"} {
		cmd := exec.Command(self, "--python", self, "--time", "1ms", "--rounds", "1", "--threads", "1", "--only", "gemm 512")
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "FAKE_PEER=works", "ATTN_SIMD="+implementation)
		out, err := cmd.CombinedOutput()
		text := strings.Join(strings.Fields(string(out)), " ")
		if (err == nil) != (implementation == "generic") || !strings.Contains(text, want) {
			t.Errorf("%s: %v, %q", implementation, err, text)
		}
	}
}

func TestCompareWithoutPeers(t *testing.T) {
	code, _, messages := compareWith(t, "fails", "--only", "gemm 512")
	for _, want := range []string{
		"PyTorch has stopped: ModuleNotFoundError: No module named 'torch'", "python3 -m venv ", "pip install -r bench/peers/requirements.txt",
	} {
		if code != exitFailed || !strings.Contains(messages, want) {
			t.Errorf("exit code %d, no %q in %q", code, want, messages)
		}
	}
}

// If a library is not installed, its column is empty. If a library that every table needs is missing, the program
// exits.
func TestCompareLacking(t *testing.T) {
	code, _, messages := compareWith(t, "lacks", "--only", "gemm 512")
	if want := "PyTorch cannot be loaded: ModuleNotFoundError: No module named 'it'"; code != exitFailed || !strings.Contains(messages, want) {
		t.Errorf("exit code %d, no %q in %q", code, want, messages)
	}
	p, err := startPeer(t.Context(), os.Args[0], "llama.cpp") // for the process, which still has FAKE_PEER
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	s := settings{rounds: 1, time: time.Millisecond, threads: 1}
	r, err := s.measure(t.Context(), task{share: shareOf, start: func() (bench.Measurer, error) {
		return func(context.Context, time.Duration) (bench.Result, error) { return bench.Result{}, nil }, nil
	}}, []*peer{p})
	if want := "not installed: ModuleNotFoundError: No module named 'it'; pip install -r bench/peers/generate_requirements.txt"; err != nil || r.Peers[0].Missing != want {
		t.Errorf("missing %q, error %v, want %q", r.Peers[0].Missing, err, want)
	}
}

// All rows of a table are compared with the same libraries.
func TestCompareTables(t *testing.T) {
	var tables []string
	for i, all := 0, allTasks(1); i < len(all); i++ {
		if i == 0 || all[i].table != all[i-1].table {
			tables = append(tables, all[i].table)
		} else if !slices.Equal(all[i].libraries, all[i-1].libraries) {
			t.Errorf("%s has %q beside it, not %q as the row before", all[i].name, all[i].libraries, all[i-1].libraries)
		}
		for _, name := range all[i].libraries {
			if libraries[name].name == "" {
				t.Errorf("%s has the library %q beside it, which is not known", all[i].name, name)
			}
		}
	}
	if want := []string{"Operations", "Attention without a softmax", "Encoding", "Encoding in lower precision", "Encoding in Go", "Prompts", "Generation", "Loading"}; !slices.Equal(tables, want) {
		t.Errorf("tables %q, want %q", tables, want)
	}
}

// A library whose outputs of a small model differ from attn's is not measured.
func TestCheckOutputs(t *testing.T) {
	for _, s := range append(smallEncoders, smallDecoders...) {
		m, err := s.load(models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Sizes(); got.Layers != s.layers {
			t.Errorf("%s has %d layers, want %d", s.name, got.Layers, s.layers)
		}
	}
	want := []float32{1, 2, 3, 4, 5, 6}
	for text, got := range map[string][]float32{
		"":                              {1, 2, 3, 4, 5.0009, 6},
		"llama.cpp has 5 outputs, want": {1, 2, 3, 4, 5},
		"llama.cpp computes something else: output 1 of token 1 is 5.0100, want 5.0000": {1, 2, 3, 4, 5.01, 6},
		"output 2 of token 0 is NaN": {1, 2, float32(math.NaN()), 4, 5, 6},
	} {
		if err := sameOutputs("llama.cpp", got, want, 3); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
	code, _, messages := compareWith(t, "works", "--only", "generate Llama 135M precision int8")
	if want := "a small Llama: CTranslate2 has 0 outputs, want 1111"; code != exitFailed || !strings.Contains(messages, want) {
		t.Errorf("exit code %d, no %q in %q", code, want, messages)
	}
}

// Tokenizers are compared with a different library.
func TestCompareTokenizers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "words")
	text := filepath.Join(dir, "text.txt")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(text, []byte("a b\nb a\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
			"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1}}}`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	code, out, messages := compareWith(t, "works", "--rounds", "1", "--text", text, "--tokenizer", dir)
	for _, want := range []string{
		`(?s), 1\sof\s\d+\sprocessors\.\sGo\s.*,\stokenizers\s1\.2\.3\.`,
		`(?m)^\| tokenize words( \*)? \| [0-9.]+ \| [0-9.]+ MB/s \| 3\.00 \| [0-9.]+× \|$`,
		`(?m)^\| load words( \*)? \| [0-9.]+ \| [0-9.]+ MB/s \| 3\.00 \| [0-9.]+× \|$`,
	} {
		if code != 0 || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("exit code %d, %s, no %s in\n%s", code, messages, want, out)
		}
	}
}

// A process that loads a model reports the time, and the reading times to compare it with.
func TestLoadOnce(t *testing.T) {
	small := shape{layers: 2, heads: 3, kvHeads: 1, width: 192, hidden: 67, vocabulary: 131}
	for _, file := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
		dir := t.TempDir()
		if err := small.write(dir, file, randomWeights); err != nil {
			t.Fatal(err)
		}
		for _, held := range []string{"parameters", "float32", "bfloat16", "int8"} {
			var out, messages bytes.Buffer
			code := run(t.Context(), []string{loadOnce, dir, held, fmt.Sprint(runtime.GOMAXPROCS(0))}, &out, &messages)
			var o once
			if err := json.Unmarshal(out.Bytes(), &o); code != 0 || err != nil || o.Load <= 0 || o.Read <= 0 || o.Fresh <= 0 || o.Memory < 0 {
				t.Errorf("%s, %s: exit code %d, %v, %q, %q", file, held, code, err, &out, &messages)
			}
		}
	}
	if code := run(t.Context(), []string{loadOnce, t.TempDir(), "int8", "1"}, io.Discard, io.Discard); code != exitFailed {
		t.Errorf("exit code %d without a model, want %d", code, exitFailed)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--rounds", "0"}, {"--time", "0s"}, {"--threads", "0"}, {"--only", "("}, {"more"}, {"--text", "x"}, {"--tokenizer", "x"}, {"--gate", "x"}, {"--frobnicate"}} {
		if code, out, messages := compareWith(t, "works", args...); code != exitUsage || out != "" || messages == "" {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, messages)
		}
	}
	if code, _, messages := compareWith(t, "works", "--only", "nothing"); code != exitFailed || !strings.Contains(messages, "no work matches") {
		t.Errorf("exit code %d, %q", code, messages)
	}
}

func TestCells(t *testing.T) {
	r := history.Row{
		Work: "work", Median: 2, Share: "25%", Unsteady: true,
		Peers: []history.Figure{{Median: 0.5, Ratio: 0.25}, {Median: 123.4, Ratio: 61.7}, {Missing: "why"}},
	}
	if got, want := r.Cells(), "| work * | 2.00 | 25% | 0.500 | 0.25× | 123 | 61.70× | – | – |\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// 2·10⁶ operations in 2 ms are 1 GFLOP/s, of a peak of 4.
	ours := bench.Result{Work: bench.Work{Op: "gemm", Lq: 100, Lk: 100, E: 100}, Sample: bench.Sample{Median: 2}, PeakGFLOPS: 4}
	if got := shareOf(ours); got != "25%" {
		t.Errorf("%s, want 25%%", got)
	}
}

func TestSteady(t *testing.T) {
	if !steady([]float64{1, 1.2, 1.1}) || steady([]float64{1.1, 1.3, 1}) || !steady([]float64{3}) {
		t.Error("steady is less than a quarter apart")
	}
}
