//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
)

// page runs a program in a worker, which posts the program's output.
const page = `<!doctype html><script>new Worker("worker.js")</script>`

const worker = `importScripts("wasm_exec.js", "kernels.js");
console.log = (line) => fetch("result", { method: "POST", body: line });
const load = async (name) => (await fetch(name)).arrayBuffer();
(async () => {
	const kernels = await attnKernels(await load("kernels.wasm"));
	const go = new Go();
	go.argv = ["wasm", %q];
	Object.assign(go.importObject, kernels.imports);
	const { instance } = await WebAssembly.instantiate(await load("program.wasm"), go.importObject);
	await kernels.attach(instance.exports.mem);
	await go.run(instance);
})();`

// inBrowser runs a program in a worker of a page in the named browser.
func inBrowser(browser, program, dir, only string) (r result, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return r, fmt.Errorf("go env GOROOT: %w", err)
	}
	mux, results := http.NewServeMux(), make(chan result, 1)
	text := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	text("/{$}", "text/html", page)
	text("/worker.js", "text/javascript", fmt.Sprintf(worker, only))
	for path, file := range map[string]string{
		"/wasm_exec.js": filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"),
		"/kernels.js":   filepath.Join(kernels, "kernels.js"),
		"/kernels.wasm": filepath.Join(kernels, "kernels.wasm"),
		"/program.wasm": program,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) { http.ServeFile(w, req, file) })
	}
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, req *http.Request) {
		var r result
		if json.NewDecoder(req.Body).Decode(&r) == nil && r.Implementation != "" { // not a line of progress
			results <- r
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	server := &http.Server{Handler: mux}
	defer server.Close()
	go func() { _ = server.Serve(listener) }() // returns when the server is closed
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+filepath.Join(dir, "profile"), "http://"+listener.Addr().String()+"/")
	if err := cmd.Start(); err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case r = <-results:
		cancel()
		<-ended
		return r, nil
	case err := <-ended:
		return r, fmt.Errorf("%s ended without a result: %v", browser, err)
	}
}
