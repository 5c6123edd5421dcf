package meter

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// ValueType is the type of a value, as its byte in the binary format.
type ValueType = encoding.ValueType

// Value types of WebAssembly 2.0.
const (
	I32       = encoding.I32
	I64       = encoding.I64
	F32       = encoding.F32
	F64       = encoding.F64
	V128      = encoding.V128
	FuncRef   = encoding.FuncRef
	ExternRef = encoding.ExternRef
)

// A Signature is the type of a function.
type Signature struct {
	Params, Results []ValueType
}

// String returns the signature in text format: (i32, i32) -> i64.
func (s Signature) String() string {
	results := join(s.Results)
	if len(s.Results) != 1 {
		results = "(" + results + ")"
	}
	return "(" + join(s.Params) + ") -> " + results
}

func join(types []ValueType) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = t.String()
	}
	return strings.Join(words, ", ")
}

// Kind is the kind of an import or export.
type Kind byte

// Kinds of imports and exports, as their bytes in the binary format.
const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// An Import is an item that a module requires from its host.
type Import struct {
	Module, Name string
	Kind         Kind
	Signature    Signature // of a function
}

// An Export is an item that a module offers. FuelGlobal, which Instrument adds, is not
// listed.
type Export struct {
	Name      string
	Kind      Kind
	Index     int       // index among all items of its kind, imports counted
	Signature Signature // of a function
}

// Limits are the sizes of a memory, in pages of 64 KiB, or of a table, in elements.
type Limits struct {
	Min, Max uint32
	HasMax   bool // if false, Max is not set
}
