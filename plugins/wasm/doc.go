// Package wasm runs policies that are WebAssembly modules. It owns loading a module
// (metering, compiling, checking imports and exports), the environment of a guest (a frame,
// a log, and a deterministic WASI), and the calls: writing frames into the guest's memory,
// reading answers from it, and classifying faults.
//
// It makes no decisions. It validates an answer only as far as decoding requires: whether
// victims are candidates and scores are finite is checked by core/preempt, for native
// policies too. It refers to no policy by name.
//
// Guests are untrusted. A guest can use its fuel, fill its memory, and write arbitrary data
// there; it cannot make the host access anything outside its memory, wait, or read a clock.
//
// Host and Module are safe for concurrent use. An instance serves one goroutine at a time;
// core/policy pools them. The caller of Start must close the instance, because the engine
// retains every open instance.
package wasm
