// Command ring computes causal self-attention, forward and backward, over a sequence that is split
// between two processes: ring attention. Each process has its share of the queries, keys and values.
// The processes exchange keys and values, attend to them part by part, and merge the parts by
// their log-sum-exps. In the backward pass, each sends the gradients of received keys and values
// back to their owner.
//
// The program starts itself a second time and communicates through pipes. In a larger ring each
// process passes on each part that it receives, until every process has received every part.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// second is set in the environment of the second process.
const second = "ATTN_RING_SECOND"

const (
	processes    = 2
	batch, heads = 1, 4
	share        = 700 // number of queries, and of keys, of each process
	size         = 16
)

func main() {
	log.SetFlags(0)
	var err error
	if os.Getenv(second) != "" {
		err = other()
	} else {
		err = first(os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// inputs has a process's share of a layer's inputs, and the gradient of its outputs. Here they
// are random numbers.
type inputs struct{ q, k, v, dout *tensor.Tensor }

func newInputs(rank int) inputs {
	rng := rand.New(rand.NewPCG(1, uint64(rank)))
	random := func() *tensor.Tensor { return tensor.Randn(rng, batch, heads, share, size) }
	return inputs{q: random(), k: random(), v: random(), dout: random()}
}

// results has the outputs of a process and the gradients of its queries. It also has the gradients of
// the keys and values of all processes, as far as they depend on these outputs.
type results struct {
	out, dq *tensor.Tensor
	dk, dv  [processes]*tensor.Tensor
}

// attend computes the results of process rank from the keys and values of all processes.
func attend(rank int, in inputs, keys, values [processes]*tensor.Tensor) (res results) {
	tape := tensor.NewTape(tensor.Train)
	q := in.q.Detach().Param()
	var parts [processes]attn.Output
	for r := range parts {
		keys[r], values[r] = keys[r].Detach().Param(), values[r].Detach().Param()
		parts[r] = attn.Attend(tape, q, keys[r], values[r], attn.Options{
			Mask:      mask.CausalAt((rank - r) * share), // distance from the first key of r to the first query
			LogSumExp: true,
		})
	}
	y := attn.Merge(tape, parts[:]...)
	tape.Backward(y.Out, in.dout)
	res.out, res.dq = y.Out, q.Grad()
	for r := range parts {
		res.dk[r], res.dv[r] = keys[r].Grad(), values[r].Grad()
	}
	return res
}

// attend computes the share of process rank together with the process at the other end: it returns
// the outputs and the gradients of queries, keys and values.
func (l link) attend(rank int) ([]*tensor.Tensor, error) {
	in := newInputs(rank)
	lent, err := l.exchange(in.k, in.v)
	if err != nil {
		return nil, err
	}
	var keys, values [processes]*tensor.Tensor
	keys[rank], values[rank] = in.k, in.v
	keys[1-rank], values[1-rank] = lent[0], lent[1]
	res := attend(rank, in, keys, values)

	returned, err := l.exchange(res.dk[1-rank], res.dv[1-rank])
	if err != nil {
		return nil, err
	}
	dk, dv := tensor.Add(nil, res.dk[rank], returned[0]), tensor.Add(nil, res.dv[rank], returned[1])
	return []*tensor.Tensor{res.out, res.dq, dk, dv}, nil
}

// other runs the second process.
func other() error {
	l := link{os.Stdin, os.Stdout}
	shared, err := l.attend(1)
	if err != nil {
		return err
	}
	return l.send(shared) // first compares them
}

// first runs the first process. It starts the second one and compares the results of both with those
// of a single process.
func first(report io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.Command(program)
	process.Env = append(os.Environ(), second+"=1")
	process.Stderr = os.Stderr
	out, err1 := process.StdinPipe()
	in, err2 := process.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	var ring [processes][]*tensor.Tensor
	l := link{in, out}
	if ring[0], err = l.attend(0); err == nil {
		ring[1], err = l.receive(ring[0])
	}
	out.Close()
	if err := errors.Join(err, process.Wait()); err != nil {
		return err
	}
	return compare(report, ring)
}

// compare reports how the results of the ring differ from the same parts computed in one process, and
// from attention to all keys at once. It returns an error unless the first are equal bit for bit and
// the second are equal up to rounding.
func compare(report io.Writer, ring [processes][]*tensor.Tensor) error {
	a, b := newInputs(0), newInputs(1)
	keys, values := [processes]*tensor.Tensor{a.k, b.k}, [processes]*tensor.Tensor{a.v, b.v}
	parts := [processes]results{attend(0, a, keys, values), attend(1, b, keys, values)}

	both := func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Concat(nil, 2, x, y) }
	q, k, v := both(a.q, b.q).Param(), both(a.k, b.k).Param(), both(a.v, b.v).Param()
	tape := tensor.NewTape(tensor.Train)
	y := attn.Attend(tape, q, k, v, attn.Options{Mask: mask.Causal()})
	tape.Backward(y.Out, both(a.dout, b.dout))
	whole := []*tensor.Tensor{y.Out, q.Grad(), k.Grad(), v.Grad()}

	fmt.Fprintf(report, "%d heads, %d tokens in each of %d processes\n", heads, share, processes)
	for i, name := range []string{"outputs", "gradients of queries", "gradients of keys", "gradients of values"} {
		others, worst := 0, 0.0
		for r := range processes {
			p := parts[r]
			single := []*tensor.Tensor{p.out, p.dq, tensor.Add(nil, parts[0].dk[r], parts[1].dk[r]), tensor.Add(nil, parts[0].dv[r], parts[1].dv[r])}
			exact := tensor.Slice(nil, whole[i], 2, r*share, (r+1)*share).Data()
			for j, x := range ring[r][i].Data() {
				if math.Float32bits(x) != math.Float32bits(single[i].Data()[j]) {
					others++
				}
				worst = max(worst, math.Abs(float64(x)-float64(exact[j])))
			}
		}
		fmt.Fprintf(report, "%-22s%d numbers differ from the same parts in one process; largest difference from a single call %.1e\n", name+":", others, worst)
		if others > 0 || !(worst < 1e-5) {
			return fmt.Errorf("two processes and one have different %s", name)
		}
	}
	return nil
}

// link is a connection to the other process.
type link struct {
	in  io.Reader
	out io.Writer
}

// exchange sends tensors and receives the same number, of the same shapes. It does both at once: two
// processes that both send first would deadlock when the pipes are full.
func (l link) exchange(xs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	sent := make(chan error, 1)
	go func() { sent <- l.send(xs) }()
	ys, err := l.receive(xs)
	if err != nil { // the other process has ended, and nothing reads what is sent
		return nil, err
	}
	return ys, <-sent
}

func (l link) send(xs []*tensor.Tensor) error {
	for _, x := range xs {
		if err := binary.Write(l.out, binary.LittleEndian, x.Data()); err != nil {
			return err
		}
	}
	return nil
}

// receive returns tensors with the shapes of like.
func (l link) receive(like []*tensor.Tensor) ([]*tensor.Tensor, error) {
	ys := make([]*tensor.Tensor, len(like))
	for i, x := range like {
		ys[i] = tensor.Zeros(x.Shape()...)
		if err := binary.Read(l.in, binary.LittleEndian, ys[i].Data()); err != nil {
			return nil, err
		}
	}
	return ys, nil
}
