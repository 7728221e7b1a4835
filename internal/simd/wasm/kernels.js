"use strict";

// attnKernels prepares the vector kernels for a Go program that was built with the tag wasmsimd. It
// works in pages, in workers and in Node. bytes is the content of kernels.wasm. In an engine
// without vectors, the program runs on portable Go.
//
//	const go = new Go();
//	const kernels = await attnKernels(bytes);
//	Object.assign(go.importObject, kernels.imports);
//	const { instance } = await WebAssembly.instantiate(program, go.importObject);
//	await kernels.attach(instance.exports.mem);
//	go.run(instance);
//
// The kernels work on the memory of the program, which does not exist before the program. So the
// program imports functions that call the kernels through a table, and attach fills the table.
globalThis.attnKernels = async (bytes) => {
	if (!WebAssembly.validate(bytes)) {
		const missing = () => { throw new Error("attn: a kernel was called in an engine without vectors"); };
		const attn = new Proxy({}, { get: (_, name) => (name === "available" ? () => 0 : missing) });
		return { imports: { attn }, attach: async () => {} };
	}
	const module = await WebAssembly.compile(bytes);
	const [section] = WebAssembly.Module.customSections(module, "calls");
	const calls = await WebAssembly.instantiate(section);
	const attn = calls.instance.exports;
	return {
		imports: { attn },
		attach: (memory) => WebAssembly.instantiate(module, { attn: { memory, kernels: attn.kernels } }),
	};
};
