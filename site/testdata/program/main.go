// Command program exercises what package runtime does with its tables of functions: growing stacks, garbage
// collection, panics, goroutines, reflection. What it prints does not depend on addresses, files or lines. With an
// argument, a panic ends it.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

type node struct {
	next  *node
	value int
}

func main() {
	stacks()
	panics()
	goroutines()
	reflection()
	names()
	if len(os.Args) > 1 {
		deep(100, func() { panic(fmt.Sprint("the end of ", os.Args[1])) })
	}
}

// deep calls f on a stack of n frames, each of which has pointers to the heap and to itself.
//
//go:noinline
func deep(n int, f func()) int {
	list := &node{value: n}
	local := node{next: list, value: n}
	pointer := &local // into the stack, which moves
	words := strings.Repeat("x", n%7)
	if n == 0 {
		f()
	} else {
		defer func(p *node) { p.value++ }(pointer)
		pointer.value += deep(n-1, f) % 1000
	}
	return pointer.value + pointer.next.value + len(words)
}

func stacks() {
	fmt.Println("flat", deep(10, runtime.GC))
	fmt.Println("deep", deep(20_000, func() {
		garbage := map[int][]byte{}
		for i := range 1000 {
			garbage[i] = make([]byte, i)
		}
		runtime.GC()
		runtime.GC()
	}))
	var wait sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		wait.Go(func() { sums[i] = deep(1000*(i+1), runtime.Gosched) })
	}
	runtime.GC()
	wait.Wait()
	fmt.Println("in goroutines", sums)
	freed := make(chan int, 1)
	runtime.SetFinalizer(&node{value: 5}, func(n *node) { freed <- n.value })
	for {
		runtime.GC()
		select {
		case n := <-freed:
			fmt.Println("freed", n)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

type number int

func (n number) String() string { return fmt.Sprint("number ", int(n)) }

// recovered prints the panic of f.
func recovered(what string, f func()) {
	defer func() {
		r := recover()
		_, ok := r.(runtime.Error)
		fmt.Printf("%s: %v (%T, runtime error %t)\n", what, r, r, ok)
	}()
	f()
}

type guard struct{ name string }

func (g guard) close()        { fmt.Println(g.name, "recovers", recover()) }
func (g guard) indirect()     { nested() }
func (g *guard) set(n string) { g.name = n }

// nested does not recover, since a deferred function must call recover itself.
func nested() { func() { fmt.Println("nested recovers", recover()) }() }

func panics() {
	var none []int
	var p *node
	var m map[string]int
	var nilNumber *number
	stringers := map[string]fmt.Stringer{"nil": nilNumber}
	zero := len(none)
	recovered("index", func() { _ = none[zero] })
	recovered("slice", func() { _ = none[:zero+3] })
	recovered("nil", func() { p.value = 1 })
	recovered("nil map", func() { m["a"] = 1 })
	recovered("division", func() { fmt.Println(1 / zero) })
	recovered("type", func() { _ = any(p).(fmt.Stringer) })
	recovered("nil receiver", func() { _ = stringers["nil"].String() })
	recovered("closed", func() { c := make(chan int); close(c); close(c) })
	recovered("error", func() { panic(errors.Join(errors.New("a"), errors.New("b"))) })
	recovered("deep", func() { deep(3000, func() { panic("at the bottom") }) })
	recovered("again", func() {
		defer func() { panic(fmt.Sprint("after ", recover())) }()
		panic("first")
	})
	recovered("loop", func() {
		for i := range 3 {
			defer func() { fmt.Println("deferred in a loop", i) }()
		}
		panic("after a loop")
	})
	recovered("method", func() {
		g := guard{"value"}
		defer g.close()
		g.set("pointer")
		panic("of a method")
	})
	recovered("interface", func() {
		var g interface{ close() } = &guard{"interface"}
		defer g.close()
		panic("of an interface")
	})
	recovered("indirect", func() {
		var g interface{ indirect() } = &guard{"indirect"}
		defer g.indirect()
		panic("not recovered")
	})
	recovered("nested", func() {
		defer nested()
		panic("not recovered")
	})
	recovered("range over a function", func() {
		for i := range slices.Values([]int{1, 2, 3}) {
			defer func() { fmt.Println("deferred", i) }()
			if i == 2 {
				panic("in a body")
			}
		}
	})
	done := make(chan bool)
	go func() {
		defer close(done)
		defer func() { fmt.Println("goexit recovers", recover()) }()
		runtime.Goexit()
	}()
	<-done
}

func goroutines() {
	words, counts := make(chan string), map[string]int{}
	var wait sync.WaitGroup
	var lock sync.Mutex
	for range 10 {
		wait.Go(func() {
			for w := range words {
				lock.Lock()
				counts[w]++
				lock.Unlock()
				time.Sleep(10 * time.Microsecond)
			}
		})
	}
	for i := range 500 {
		words <- fmt.Sprint("word ", i%17)
		if i%100 == 0 {
			runtime.GC()
		}
	}
	close(words)
	wait.Wait()
	fmt.Println(counts)
	ticks, timer := time.NewTicker(time.Millisecond), make(chan int)
	time.AfterFunc(3*time.Millisecond, func() { timer <- 7 })
	<-ticks.C
	ticks.Stop()
	fmt.Println("timer", <-timer)
	// Of the goroutines of package runtime, the one that handles events of JavaScript counts, and no other.
	for i := 0; i < 1000 && runtime.NumGoroutine() > 2; i++ {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("2 goroutines at most", runtime.NumGoroutine() <= 2)
}

func reflection() {
	add := func(in []reflect.Value) []reflect.Value {
		sum := int64(0)
		deep(1000, func() { runtime.GC() })
		for _, v := range in {
			sum += v.Elem().Int()
		}
		return []reflect.Value{reflect.ValueOf(&sum)}
	}
	f := reflect.MakeFunc(reflect.TypeFor[func(a, b *int64) *int64](), add).Interface().(func(a, b *int64) *int64)
	a, b := int64(3), int64(4)
	fmt.Println("made", *f(&a, &b))
	method := reflect.ValueOf(number(5)).MethodByName("String").Interface().(func() string)
	fmt.Println("method", method())
	recovered("reflect", func() { reflect.ValueOf(1).Len() })
}

// names prints the names of the functions that call it.
func names() {
	func() {
		callers := make([]uintptr, 10)
		frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
		for {
			frame, more := frames.Next()
			fmt.Println(frame.Function)
			if !more {
				return
			}
		}
	}()
	_, _, _, ok := runtime.Caller(1)
	fmt.Println(ok, runtime.FuncForPC(reflect.ValueOf(deep).Pointer()).Name())
}
