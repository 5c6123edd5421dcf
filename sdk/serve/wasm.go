//go:build wasip1

package serve

import (
	"unsafe"

	"github.com/cede-scheduler/cede/sdk/abi"
)

// Serve returns at once in a WebAssembly module: the host calls its exports.
func Serve() {}

var (
	module *guest
	buffer []byte // the result of cede_alloc; referenced so that it is not collected
)

//go:wasmexport cede_abi_version
func abiVersion() int32 { return abi.Version }

//go:wasmexport cede_alloc
func alloc(size int32) int32 {
	if size <= 0 {
		return 0
	}
	buffer = abi.Grow(buffer, int(size))
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(buffer))))
}

//go:wasmexport cede_describe
func describe(at, n int32) int32 { return answer(abi.OpDescribe, at, n) }

//go:wasmexport cede_configure
func configure(at, n int32) int32 { return answer(abi.OpConfigure, at, n) }

//go:wasmexport cede_priority_delta
func priorityDelta(at, n int32) int32 { return answer(abi.OpPriorityDelta, at, n) }

//go:wasmexport cede_score_victims
func scoreVictims(at, n int32) int32 { return answer(abi.OpScoreVictims, at, n) }

//go:wasmexport cede_select_victims
func selectVictims(at, n int32) int32 { return answer(abi.OpSelectVictims, at, n) }

//go:wasmexport cede_score_options
func scoreOptions(at, n int32) int32 { return answer(abi.OpScoreOptions, at, n) }

//go:wasmexport cede_preempt_bindings
func preemptBindings(at, n int32) int32 { return answer(abi.OpPreemptBindings, at, n) }

// answer processes the frame in the buffer that alloc returned. It rejects any other
// address, because the host owns no other memory of the module.
func answer(op abi.Op, at, n int32) int32 {
	if n <= 0 || int(n) > len(buffer) || int32(uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))) != at {
		return int32(abi.BadFrame)
	}
	if module == nil {
		module = newGuest()
	}
	return int32(module.call(op, buffer[:n]))
}

// Log writes a line to the host's log. Use it for debugging; decisions must not
// depend on it. The host truncates long lines and drops lines beyond its rate limit.
func Log(level int32, text string) {
	if len(text) > 0 {
		hostLog(level, unsafe.Pointer(unsafe.StringData(text)), int32(len(text)))
	}
}

//go:wasmimport cede_v1 log
func hostLog(level int32, at unsafe.Pointer, n int32)
