// Package wasm runs policies that are WebAssembly modules. It owns loading one
// (metering, compiling, checking what it imports and exports), the world that a
// guest sees (a frame, a log, and a WASI in which nothing moves), and the calls:
// frames into the guest's memory, answers out of it, and the name of whatever
// went wrong.
//
// It decides nothing. It does not judge an answer beyond what makes it readable:
// whether victims are candidates and scores are numbers is checked by core/preempt,
// for native policies too. It knows no policy by name.
//
// A guest is hostile until proven otherwise. It can spend the fuel it is given,
// fill the memory it may have and write nonsense into both; it cannot make the
// host read or write outside of its memory, wait for a clock, or see one.
//
// Host and Module are safe for concurrent use. An instance serves one goroutine
// at a time; core/policy hands them out. Whoever starts an instance closes it,
// since the engine keeps every instance that is not closed.
package wasm
