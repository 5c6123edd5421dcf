package meter

import "github.com/cede-scheduler/cede/plugins/wasm/encoding"

// Instructions after encoding.OpMisc with work that depends on a length.
const (
	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscElemDrop   = 13
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableSize  = 16
	miscTableFill  = 17
)

// Instructions after encoding.OpVector with unusual operands.
const (
	vecStore   = 0x0b
	vecConst   = 0x0c
	vecShuffle = 0x0d
)

// operand is the kind of operands of an instruction.
type operand byte

const (
	none         operand = iota
	control              // read by walk: block, loop, if, branches
	index                // one number
	localIndex           // one number, of a local
	global               // one number, of a global
	typeAndTable         // two numbers
	memArg               // alignment and offset
	memArgLane           // alignment, offset, lane
	memory               // the memory, always 0
	i32Value
	i64Value
	bytes4
	bytes8
	bytes16
	lane
	selectType
	reference
	prefixed // a number selects the instruction
	unknown
)

// operands maps each one-byte opcode to its operands.
var operands = func() (t [256]operand) {
	for op := range t {
		switch {
		case op == 0x00, op == 0x01, op == 0x0f, op == 0x1a, op == encoding.OpSelect, op == 0xd1, op >= 0x45 && op <= 0xc4:
			t[op] = none
		case op >= 0x02 && op <= 0x05, op >= 0x0b && op <= 0x0e:
			t[op] = control
		case op == encoding.OpCall, op == 0x25, op == 0x26, op == encoding.OpRefFunc:
			t[op] = index
		case op == encoding.OpCallIndirect:
			t[op] = typeAndTable
		case op >= encoding.OpLocalGet && op <= encoding.OpLocalTee:
			t[op] = localIndex
		case op == encoding.OpGlobalGet, op == encoding.OpGlobalSet:
			t[op] = global
		case op >= 0x28 && op <= 0x3e:
			t[op] = memArg
		case op == 0x3f, op == encoding.OpMemoryGrow:
			t[op] = memory
		default:
			t[op] = unknown
		}
	}
	t[encoding.OpI32Const], t[encoding.OpI64Const], t[encoding.OpF32Const], t[encoding.OpF64Const] = i32Value, i64Value, bytes4, bytes8
	t[0x1c], t[encoding.OpRefNull], t[encoding.OpMisc], t[encoding.OpVector] = selectType, reference, prefixed, prefixed
	return t
}()

// vectorOperands maps each SIMD instruction to its operands. The gaps are numbers that the
// standard does not use.
var vectorOperands = func() (t [256]operand) {
	for sub := range t {
		switch {
		case sub <= vecStore, sub == 0x5c, sub == 0x5d:
			t[sub] = memArg
		case sub == vecConst, sub == vecShuffle:
			t[sub] = bytes16
		case sub >= 0x15 && sub <= 0x22:
			t[sub] = lane
		case sub >= 0x54 && sub <= 0x5b:
			t[sub] = memArgLane
		}
	}
	for _, hole := range []byte{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb,
		0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[hole] = unknown
	}
	return t
}()

// proposal describes an instruction beyond WebAssembly 2.0, and how to build without it.
type proposal struct{ name, feature, hint string }

// beyond maps one-byte instructions of later proposals.
var beyond = map[byte]proposal{
	0x06: {"try", "exceptions", noExceptions},
	0x07: {"catch", "exceptions", noExceptions},
	0x08: {"throw", "exceptions", noExceptions},
	0x09: {"rethrow", "exceptions", noExceptions},
	0x0a: {"throw_ref", "exceptions", noExceptions},
	0x12: {"return_call", "tail calls", noTailCalls},
	0x13: {"return_call_indirect", "tail calls", noTailCalls},
	0x14: {"call_ref", "typed function references", ""},
	0x15: {"return_call_ref", "tail calls", noTailCalls},
	0x18: {"delegate", "exceptions", noExceptions},
	0x19: {"catch_all", "exceptions", noExceptions},
	0x1f: {"try_table", "exceptions", noExceptions},
	0xd3: {"ref.eq", "GC", noGC},
	0xd4: {"ref.as_non_null", "typed function references", ""},
	0xd5: {"br_on_null", "typed function references", ""},
	0xd6: {"br_on_non_null", "typed function references", ""},
	0xe0: {"cont.new", "stack switching", ""},
	0xfb: {"a GC instruction", "GC", noGC},
	0xfe: {"an atomic instruction", "threads", "build without threads (-mno-atomics)"},
}

const (
	noExceptions = "build without exceptions (-fno-exceptions, -mno-exception-handling)"
	noTailCalls  = "build without tail calls (-mno-tail-call)"
	noGC         = "build for linear memory"
)
