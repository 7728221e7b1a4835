// Command lesson computes what the pages of the lessons show. It runs in a worker of the browser, compiled to
// WebAssembly: the page sends calls, and receives frames and results, all of them JSON.
//
// The handlers of a lesson are in one file and do not know that they run in a browser, so that they are tested like
// any other Go code.
package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attn-go/attn/internal/strictjson"
)

// handlers are the calls by name, such as "regression.estimate".
var handlers = map[string]func(ctx context.Context, args []byte, frame func(any)) (any, error){}

// handle adds a call, which f answers. f may send frames before its result, and returns when ctx ends.
func handle[T any](call string, f func(ctx context.Context, args T, frame func(any)) (any, error)) {
	if handlers[call] != nil {
		panic("lesson: two handlers of " + call)
	}
	handlers[call] = func(ctx context.Context, args []byte, frame func(any)) (any, error) {
		var x T
		if err := strictjson.Unmarshal(args, &x); err != nil { // a misspelt name is an error
			return nil, err
		}
		return f(ctx, x, frame)
	}
}

// message is an answer to the call with the same ID: a frame, a result or an error.
type message struct {
	ID     int    `json:"id"`
	Frame  any    `json:"frame,omitempty"`
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
	Done   bool   `json:"done,omitempty"` // no message follows
}

// answer runs a call and sends its frames, and then its result or error. A panic of the handler is an error.
func answer(ctx context.Context, id int, call string, args []byte, send func(message)) {
	result, err := run(ctx, call, args, func(frame any) { send(message{ID: id, Frame: frame}) })
	if err != nil {
		send(message{ID: id, Error: err.Error(), Done: true})
		return
	}
	send(message{ID: id, Result: result, Done: true})
}

func run(ctx context.Context, call string, args []byte, frame func(any)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("%s: %v", call, p)
		}
	}()
	h := handlers[call]
	if h == nil {
		return nil, fmt.Errorf("no call is named %q", call)
	}
	return h(ctx, args, frame)
}

// pause lets waiting calls run, such as one that ends the caller. Long computations call it every few milliseconds.
var pause = func() {}

// real is a number of a result. The pages show null as –.
type real = strictjson.Number

// reals are numbers of a figure, with null for those that are not finite.
type reals []float32

func (list reals) MarshalJSON() ([]byte, error) { return appendReals(list, -1), nil }

// brief are reals with five digits, for figures that show thousands of them.
type brief []float32

func (list brief) MarshalJSON() ([]byte, error) { return appendReals(list, 5), nil }

func appendReals(list []float32, digits int) []byte {
	text := append(make([]byte, 0, 12*len(list)+2), '[')
	for i, x := range list {
		if i > 0 {
			text = append(text, ',')
		}
		if x-x != 0 { // NaN or infinite
			text = append(text, "null"...)
			continue
		}
		text = strconv.AppendFloat(text, float64(x), 'g', digits, 32)
	}
	return append(text, ']')
}
