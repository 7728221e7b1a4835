package safetensors

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// Values in a pickle. The others are string, int, bool and nil, also for numbers that no tensor needs.
type (
	mark    struct{} // the beginning of several values
	list    struct{} // whose values are not needed
	tuple   []any
	dict    struct{ keys, values []any }
	global  string // a name in Python, with its module
	storage struct {
		dtype DType
		key   string // the name of its file
		n     int    // elements
	}
	view struct { // a tensor: some elements of a storage
		storage
		offset         int
		shape, strides []int
	}
)

// storages are the types of elements by the classes of PyTorch's storages.
var storages = map[global]DType{
	"torch.BoolStorage": BOOL, "torch.ByteStorage": U8, "torch.CharStorage": I8, "torch.ShortStorage": I16,
	"torch.IntStorage": I32, "torch.LongStorage": I64, "torch.HalfStorage": F16, "torch.BFloat16Storage": BF16,
	"torch.FloatStorage": F32, "torch.DoubleStorage": F64, "torch.ComplexFloatStorage": C64,
}

// callable are the functions that a pickle may name. The machine computes what they return for tensors.
var callable = map[global]func(args tuple) (any, bool){
	"collections.OrderedDict":         func(args tuple) (any, bool) { return &dict{}, len(args) == 0 },
	"torch._utils._rebuild_tensor_v2": rebuild,
	"torch._utils._rebuild_parameter": func(args tuple) (any, bool) { // a tensor, requires_grad, hooks
		v, ok := append(args, nil)[0].(view)
		return v, ok && len(args) == 3
	},
}

// mostOps bounds the operations of a pickle, of which a tensor needs some 40, and so its memory: about 100 bytes each.
const mostOps = 1 << 21

// mostNames bounds the bytes of all names.
const mostNames = 1 << 25

// pickle is a machine with only the operations and names that dicts of tensors need. Nothing in a file can run code.
//
// Sources: pickletools.py of CPython; torch/serialization.py and torch/_utils.py.
type pickle struct {
	rest  []byte
	stack []any
	memo  map[int]any
	err   error // the first one; operations then continue with empty values
}

// unpickle returns the value of a pickle of torch.save.
func unpickle(data []byte) (any, error) {
	p := &pickle{rest: data, memo: map[int]any{}}
	for range mostOps {
		op := p.bytes(1)[0]
		if op == '.' && len(p.rest) == 0 && len(p.stack) == 1 || p.err != nil {
			return p.top(), p.err
		}
		if run := operations[op]; run != nil {
			run(p)
		} else {
			p.check(false, "has the operation %q, want those of a dict of tensors", []byte{op})
		}
	}
	return nil, fmt.Errorf("has more than %d operations", mostOps)
}

// operations are what the machine can do, by their codes.
var operations = map[byte]func(p *pickle){
	0x80: func(p *pickle) {
		p.check(p.integer(1) == 2, "has another protocol than 2, the usual one of torch.save")
	},
	'N':  func(p *pickle) { p.push(nil) },
	0x88: func(p *pickle) { p.push(true) },
	0x89: func(p *pickle) { p.push(false) },
	'K':  func(p *pickle) { p.push(p.integer(1)) },
	'M':  func(p *pickle) { p.push(p.integer(2)) },
	'J':  func(p *pickle) { p.push(int(int32(p.integer(4)))) },
	0x8a: func(p *pickle) { p.bytes(p.integer(1)); p.push(nil) }, // more than 32 bits
	'G':  func(p *pickle) { p.bytes(8); p.push(nil) },            // a float
	'X':  func(p *pickle) { p.push(string(p.bytes(p.integer(4)))) },
	'c':  (*pickle).global,
	'q':  func(p *pickle) { p.memo[p.integer(1)] = p.top() },
	'r':  func(p *pickle) { p.memo[p.integer(4)] = p.top() },
	'h':  func(p *pickle) { p.recall(p.integer(1)) },
	'j':  func(p *pickle) { p.recall(p.integer(4)) },
	'(':  func(p *pickle) { p.push(mark{}) },
	')':  func(p *pickle) { p.push(tuple(nil)) },
	0x85: func(p *pickle) { p.push(tuple(p.pop(1))) },
	0x86: func(p *pickle) { p.push(tuple(p.pop(2))) },
	0x87: func(p *pickle) { p.push(tuple(p.pop(3))) },
	't':  func(p *pickle) { p.push(tuple(p.popMark())) },
	']':  func(p *pickle) { p.push(list{}) },
	'a':  func(p *pickle) { p.pop(1) },
	'e':  func(p *pickle) { p.popMark() },
	'}':  func(p *pickle) { p.push(&dict{}) },
	's':  func(p *pickle) { p.set(p.pop(2)) },
	'u':  func(p *pickle) { p.set(p.popMark()) },
	'b':  func(p *pickle) { p.pop(1); p.set(nil) }, // attributes: of a dict of tensors, the versions of its layers
	'R':  (*pickle).call,
	'Q':  (*pickle).storage,
}

// global pushes a name, which must be known.
func (p *pickle) global() {
	module, rest, _ := bytes.Cut(p.rest, []byte{'\n'})
	name, rest, _ := bytes.Cut(rest, []byte{'\n'})
	p.rest = rest
	g := global(string(module) + "." + string(name))
	p.check(callable[g] != nil || storages[g] != "", "names %s, want only dense tensors of the usual types, as torch.save(model.state_dict(), …) writes them", quote.Text(string(g)))
	p.push(g)
}

// call replaces a function and its arguments by its result.
func (p *pickle) call() {
	values := p.pop(2)
	name, _ := values[0].(global)
	args, _ := values[1].(tuple)
	var result any
	f, ok := callable[name]
	if ok {
		result, ok = f(args)
	}
	p.check(ok, "calls %s with %d arguments of other kinds than torch.save writes", quote.Text(string(name)), len(args))
	p.push(result)
}

// rebuild returns a tensor. A seventh argument would say that numbers are conjugate or negative.
func rebuild(args tuple) (any, bool) {
	if len(args) != 6 {
		return nil, false
	}
	var v view
	var ok [4]bool
	v.storage, ok[0] = args[0].(storage)
	v.offset, ok[1] = args[1].(int)
	v.shape, ok[2] = integers(args[2])
	v.strides, ok[3] = integers(args[3])
	return v, ok == [4]bool{true, true, true, true} && len(v.shape) == len(v.strides) && v.offset >= 0
}

// integers returns a tuple of integers that are not negative.
func integers(v any) ([]int, bool) {
	t, ok := v.(tuple)
	all := make([]int, len(t))
	for i := range t {
		n, number := t[i].(int)
		all[i], ok = n, ok && number && n >= 0
	}
	return all, ok
}

// storage replaces ("storage", class, key, device, number of elements) by the storage.
func (p *pickle) storage() {
	t, _ := p.pop(1)[0].(tuple)
	t = append(t, make(tuple, 5)...)
	class, _ := t[1].(global)
	key, keyed := t[2].(string)
	n, counted := t[4].(int)
	p.check(t[0] == "storage" && storages[class] != "" && keyed && counted && n >= 0, "has an invalid storage")
	p.push(storage{storages[class], key, n})
}

// set sets items of the dict at the top.
func (p *pickle) set(items []any) {
	d, ok := p.top().(*dict)
	p.check(ok && len(items)%2 == 0, "sets items of no dict")
	for i := 1; i < len(items) && ok; i += 2 {
		d.keys, d.values = append(d.keys, items[i-1]), append(d.values, items[i])
	}
}

// check records an error unless ok.
func (p *pickle) check(ok bool, format string, args ...any) {
	if !ok {
		p.err = cmp.Or(p.err, fmt.Errorf(format, args...))
	}
}

// bytes reads n bytes. If there are fewer, it fails and returns up to 8 zeros.
func (p *pickle) bytes(n int) []byte {
	if p.check(n >= 0 && n <= len(p.rest), "ends early"); p.err != nil {
		return make([]byte, 8)
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// integer reads an unsigned integer of at most 4 bytes.
func (p *pickle) integer(width int) int {
	var b [8]byte
	copy(b[:], p.bytes(width))
	return int(little.Uint64(b[:]))
}

func (p *pickle) push(v any) { p.stack = append(p.stack, v) }

// top returns the value at the top of the stack, nil if there is none.
func (p *pickle) top() any {
	if len(p.stack) == 0 {
		return nil
	}
	return p.stack[len(p.stack)-1]
}

// recall pushes a value of the memo.
func (p *pickle) recall(i int) {
	v, ok := p.memo[i]
	p.check(ok, "recalls a value that it has not stored")
	p.push(v)
}

// pop removes n values, none of which may be a mark.
func (p *pickle) pop(n int) []any {
	from := max(0, len(p.stack)-n)
	values := append(slices.Clone(p.stack[from:]), make([]any, n)...)[:n]
	p.check(len(p.stack)-from == n && !slices.ContainsFunc(values, func(v any) bool { return v == any(mark{}) }), "takes a value from an empty stack")
	p.stack = p.stack[:from]
	return values
}

// popMark removes the values after the last mark, and the mark.
func (p *pickle) popMark() []any {
	n := 0
	for n < len(p.stack) && p.stack[len(p.stack)-1-n] != any(mark{}) {
		n++
	}
	values := p.pop(n)
	p.check(len(p.stack) > 0, "has no mark")
	p.stack = p.stack[:max(0, len(p.stack)-1)]
	return values
}

// tensors calls add with the tensors of a dict and of the dicts in it, whose keys precede the names: {"model": {"weight":
// …}} has "model.weight". It skips other values. seen has the names and dicts so far, and length the bytes of the names.
func (d *dict) tensors(prefix string, seen map[any]bool, length *int, add func(name string, v view) error) error {
	if seen[d] {
		return fmt.Errorf("data.pkl has one dict in two places, one of them %s, want copies", quote.Text(prefix))
	}
	seen[d] = true
	for i, v := range d.values {
		var name string
		switch key := d.keys[i].(type) {
		case string:
			name = prefix + key
		case int:
			name = fmt.Sprint(prefix, key)
		default:
			return errors.New("data.pkl has a key that is neither text nor an integer")
		}
		err := checkName(name)
		if *length += len(name); *length > mostNames || seen[name] { // the first also bounds the depth
			err = errors.New("duplicate name, or names that are too long")
		}
		seen[name] = true
		if x, ok := v.(view); ok && err == nil {
			err = add(name, x)
		}
		if err != nil {
			return inTensor(name, err)
		}
		if inner, ok := v.(*dict); ok {
			if err := inner.tensors(name+".", seen, length, add); err != nil {
				return err
			}
		}
	}
	return nil
}
