package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// server is the path of the server for other libraries, relative to the root of the repository.
const server = "bench/peers/peers.py"

// goServer is the directory of the server for libraries in Go, which is a separate module.
const goServer = "bench/peers/go"

// install explains how to install the requirements of the server.
const install = `install PyTorch and ONNX Runtime with
    python3 -m venv bench/peers/.venv
    bench/peers/.venv/bin/pip install -r bench/peers/requirements.txt
and say --python bench/peers/.venv/bin/python`

// held are environment variables that restrict PyTorch, CTranslate2, OpenVINO and hugot to the instructions that attn
// uses: variables of the libraries themselves, of oneDNN, of MKL and of GoMLX. Other libraries have no such variable.
var held = map[string][]string{
	"avx2": {"ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2", "MKL_ENABLE_INSTRUCTIONS=AVX2", "CT2_FORCE_CPU_ISA=AVX2", "GOMLX_SIMD_AVX512=0"},
}

// library is a library that attn is compared with.
type library struct {
	name string // the usual name
	// where explains how to install an optional library; without it, its figures are missing.
	where string
	// checked are models that the library reads from a directory; it must compute the same as attn.
	checked []shape
	inGo    bool // the server for it is the program in goServer
}

const (
	generateRequirements = "pip install -r bench/peers/generate_requirements.txt"
	openvinoRequirements = "pip install -r bench/peers/openvino_requirements.txt"
)

var libraries = map[string]library{
	"torch":        {name: "PyTorch"},
	"transformers": {name: "transformers", where: "pip install transformers==5.24.0"},
	"onnxruntime":  {name: "ONNX Runtime"},
	"tokenizers":   {name: "tokenizers"},
	"ctranslate2":  {name: "CTranslate2", where: generateRequirements, checked: smallDecoders},
	"llama.cpp":    {name: "llama.cpp", where: generateRequirements, checked: smallDecoders},
	"openvino":     {name: "OpenVINO", where: openvinoRequirements, checked: append(smallEncoders, smallDecoders...)},
	"hugot":        {name: "hugot", inGo: true, checked: smallEncoders},
	"cybertron":    {name: "cybertron", inGo: true, checked: smallEncoders},
}

// peer is a library that runs in a separate process.
type peer struct {
	library
	version string
	missing string // the reason if the library is not available
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *bytes.Buffer // standard error of the process
}

// answer is a line from the server.
type answer struct {
	Median      float64   `json:"ms_median"`
	Form        string    `json:"form"`
	Unsupported string    `json:"unsupported"`
	Error       string    `json:"error"`
	Missing     string    `json:"missing"`
	Outputs     []float32 `json:"outputs"`
	Version     string    `json:"version"`
}

// missing returns the reason if there is no figure.
func (a answer) missing() string {
	if a.Unsupported != "" {
		return a.Unsupported
	}
	return a.Error
}

// startPeer starts the server for a library, given its name in libraries. The server ends with ctx.
func startPeer(ctx context.Context, python, name string) (*peer, error) {
	if _, err := os.Stat(server); err != nil {
		return nil, fmt.Errorf("%s is not here; run go run ./bench/compare in the root of the repository", server)
	}
	p := &peer{library: libraries[name], said: new(bytes.Buffer)}
	p.cmd = exec.CommandContext(ctx, python, server, name)
	env := append(os.Environ(), held[simd.Implementation()]...)
	if p.inGo {
		p.cmd = exec.CommandContext(ctx, "go", "-C", goServer, "run", ".", name)
		env = append(env, "GOEXPERIMENT=simd") // without which hugot's products have no vectors
	}
	p.cmd.Stderr, p.cmd.Env = p.said, env
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w\n%s", p.name, err, install)
	}
	a, err := p.exchange(map[string]string{"op": "version"})
	if err != nil && p.inGo { // its modules cannot be downloaded, or need another release of Go
		p.version, p.missing = "not built", err.Error()
		return p, nil
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("%w\n%s", err, install)
	}
	if a.Missing != "" && p.where == "" {
		p.stop()
		return nil, fmt.Errorf("%s cannot be loaded: %s\n%s", p.name, a.Missing, install)
	}
	if a.Missing != "" {
		p.version, p.missing = "not installed", fmt.Sprintf("not installed: %s; %s", a.Missing, p.where)
		return p, nil
	}
	p.version, _, _ = strings.Cut(a.Version, "+")
	return p, nil
}

// ask requests a measurement from the peer.
func (p *peer) ask(r request, threads int, d time.Duration) (answer, error) {
	r.Threads, r.Time = threads, d.Seconds()
	return p.exchange(r)
}

// exchange sends a line and reads the answer.
func (p *peer) exchange(r any) (answer, error) {
	var a answer
	line, err := json.Marshal(r)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if err != nil {
		p.stop() // so that said is complete
		return a, fmt.Errorf("%s has stopped: %s", p.name, p.lastWords(err))
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%s answers %q: %w", p.name, line, err)
	}
	return a, nil
}

// lastWords returns the last line on the process's standard error, which in Python is the exception, or else err.
func (p *peer) lastWords(err error) string {
	lines := strings.Split(strings.TrimSpace(p.said.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

// stop closes the process's input, which ends it.
func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // the exit status does not matter
}

// These are small variants of the measured models. They have the features in which a library could differ: positions,
// heads that share keys, biases, gains.
var (
	smallEncoders = []shape{
		{name: "a small BERT", layers: 2, heads: 6, kvHeads: 6, width: 60, hidden: 97, vocabulary: 101, positions: 17},
	}
	smallDecoders = []shape{
		{name: "a small Llama", layers: 2, heads: 6, kvHeads: 3, width: 60, hidden: 97, vocabulary: 101},
		{name: "a small Qwen2", layers: 2, heads: 6, kvHeads: 3, width: 60, hidden: 97, vocabulary: 101, bias: true},
	}
)

// tolerance is for float32 numbers of up to about 10, summed in any order.
const tolerance = 1e-3

// checkOutputs returns an error unless a peer computes the same as attn. A peer that is not available is not checked.
func checkOutputs(p *peer, threads int) error {
	if p.missing != "" {
		return nil
	}
	for _, s := range p.checked {
		if err := s.checkOutputs(p, threads); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (s shape) checkOutputs(p *peer, threads int) error {
	dir, err := os.MkdirTemp("", "attn-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rng := rand.New(rand.NewPCG(3, 5))
	if err := s.write(dir, safetensors.F32, func(w io.Writer, info safetensors.Info) error { return normalWeights(w, info, rng) }); err != nil {
		return err
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		return err
	}
	ids := []int{3, 1, 4, 1, 5, 92, 65, 35, 89, 79, 3}
	want, width := m.Hidden(nil, models.Batch{IDs: [][]int{ids}}, models.Run{}), s.width
	if s.positions == 0 {
		want, width = m.Head().Logits(nil, want), s.vocabulary
	}
	a, err := p.exchange(request{Work: bench.Work{Op: "outputs"}, File: dir, IDs: ids, Threads: threads})
	if err == nil && a.missing() != "" {
		err = errors.New(a.missing())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return sameOutputs(p.name, a.Outputs, want.Data(), width)
}

// sameOutputs returns an error unless two libraries compute the same numbers, width for each token.
func sameOutputs(name string, got, want []float32, width int) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d outputs, want %d", name, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance) {
			return fmt.Errorf("%s computes something else: output %d of token %d is %.4f, want %.4f", name, i%width, i/width, got[i], want[i])
		}
	}
	return nil
}

// normalWeights writes numbers of about ±0.3, in float32.
func normalWeights(w io.Writer, info safetensors.Info, rng *rand.Rand) error {
	weights := make([]float32, info.Len())
	for i := range weights {
		weights[i] = float32(0.3 * rng.NormFloat64())
	}
	return binary.Write(w, binary.LittleEndian, weights)
}
