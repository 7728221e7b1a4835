"use strict";

// Runs a Go program or test that was built for js/wasm with the tag wasmsimd:
//
//	GOOS=js GOARCH=wasm go test -tags wasmsimd -exec 'node PATH/run.js' PACKAGE
//
// It does what lib/wasm/wasm_exec_node.js of Go does, and adds the kernels.

const fs = require("fs");
const path = require("path");
const { execFileSync } = require("child_process");

if (process.argv.length < 3) {
	console.error("usage: node run.js program.wasm [arguments]");
	process.exit(2);
}

globalThis.require = require;
globalThis.fs = fs;
globalThis.path = path;

const goroot = process.env.GOROOT || execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim();
require(path.join(goroot, "lib", "wasm", "wasm_exec.js"));
require("./kernels.js");

const go = new Go();
go.argv = process.argv.slice(2);
go.env = { TMPDIR: require("os").tmpdir(), ...process.env };
go.exit = process.exit;

(async () => {
	const kernels = await attnKernels(fs.readFileSync(path.join(__dirname, "kernels.wasm")));
	Object.assign(go.importObject, kernels.imports);
	const { instance } = await WebAssembly.instantiate(fs.readFileSync(go.argv[0]), go.importObject);
	await kernels.attach(instance.exports.mem);
	// Node ends when no event is pending, which is a deadlock of the program. Resuming it makes Go
	// report that.
	process.on("exit", (code) => {
		if (code === 0 && !go.exited) {
			go._pendingEvent = { id: 0 };
			go._resume();
		}
	});
	await go.run(instance);
})().catch((err) => {
	console.error(err);
	process.exit(1);
});
