package main

import (
	"context"
	"encoding/json"
	"syscall/js"
)

// main sets the function attnCall(id, call, args), with args as JSON. Answers go to attnAnswer(text), also as JSON.
// The call "cancel" ends the call whose ID is its argument.
func main() {
	pause = pauseByMessage()
	worker := js.Global()
	running := map[int]context.CancelFunc{}
	send := func(m message) {
		text, err := json.Marshal(m)
		if err != nil { // a number that is NaN or infinite
			text, _ = json.Marshal(message{ID: m.ID, Error: err.Error(), Done: m.Done})
		}
		worker.Call("attnAnswer", string(text))
	}
	worker.Set("attnCall", js.FuncOf(func(_ js.Value, args []js.Value) any {
		id, call, text := args[0].Int(), args[1].String(), args[2].String()
		if call == "cancel" {
			var which int
			if json.Unmarshal([]byte(text), &which) == nil && running[which] != nil {
				running[which]()
			}
			send(message{ID: id, Done: true})
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		running[id] = cancel
		go func() {
			answer(ctx, id, call, []byte(text), send)
			cancel()
			delete(running, id)
		}()
		return nil
	}))
	worker.Call("attnReady")
	select {}
}

// pauseByMessage returns a function that returns after the waiting events of the worker. A message takes microseconds;
// a timer, which time.Sleep uses, takes at least 4 ms in browsers.
func pauseByMessage() func() {
	channel := js.Global().Get("MessageChannel").New()
	resume := make(chan struct{}, 1)
	channel.Get("port1").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
		resume <- struct{}{}
		return nil
	}))
	port := channel.Get("port2")
	return func() {
		port.Call("postMessage", js.Null())
		<-resume
	}
}
