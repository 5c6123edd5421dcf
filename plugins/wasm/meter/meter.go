package meter

import "fmt"

// FuelGlobal is the name under which a metered module exports its fuel: a
// mutable i64 global. The host sets it before a call and reads it after. It is
// -1 after a call that ran out of fuel, and never below zero after one that
// returned.
const FuelGlobal = "cede_fuel"

// The limits that Options stand for when they are zero.
const (
	DefaultMaxSize          = 8 << 20
	DefaultMaxFunctions     = 1 << 16
	DefaultMaxLocals        = 50_000
	DefaultMaxTableElements = 1 << 16
	DefaultStartFuel        = 10_000_000
)

// Options bound what is accepted. The zero value is fit for modules of
// strangers.
type Options struct {
	MaxSize      int // of the module in bytes; default: 8 MiB
	MaxFunctions int // imported and defined; default: 65,536
	// MaxLocals is how many locals a function may have, its parameters and the
	// two that metering adds included; default: 50,000.
	MaxLocals int
	// MaxTableElements is what a table may start with, and grow to: engines have
	// no limit of their own for tables; default: 65,536.
	MaxTableElements int
	// StartFuel is what the module is born with. Only a start function can spend
	// of it before the host sets the global; default: 10,000,000.
	StartFuel int64
}

// Module is a metered module, and what a loader wants to know before it
// compiles one.
type Module struct {
	Code    []byte
	Imports []Import
	Exports []Export
	// Memory is the memory that the module defines; nil without one.
	Memory *Limits
	// Tables are the tables that the module defines, cut to MaxTableElements.
	Tables []Limits
	// Start is whether the module has a start function, which runs while it is
	// instantiated.
	Start bool
	// Functions is how many functions the module defines.
	Functions int
}

// Export is the export of the given name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Instrument returns the module with fuel metering. Errors are *Error. The
// module is not kept, and the result shares no memory with it.
func Instrument(module []byte, o Options) (*Module, error) {
	o = o.withDefaults()
	if len(module) > o.MaxSize {
		return nil, &Error{
			Kind: ErrLimit, Offset: o.MaxSize, Function: -1,
			What: fmt.Sprintf("the module has %d bytes, the limit is %d", len(module), o.MaxSize),
			Hint: "strip names and debug information, or raise the limit",
		}
	}
	m, err := decode(module, o)
	if err != nil {
		return nil, err
	}
	code, err := assemble(m)
	if err != nil {
		return nil, err
	}
	return m.describe(code), nil
}

func (o Options) withDefaults() Options {
	o.MaxSize = or(o.MaxSize, DefaultMaxSize)
	o.MaxFunctions = or(o.MaxFunctions, DefaultMaxFunctions)
	o.MaxLocals = or(o.MaxLocals, DefaultMaxLocals)
	o.MaxTableElements = or(o.MaxTableElements, DefaultMaxTableElements)
	o.StartFuel = or(o.StartFuel, DefaultStartFuel)
	return o
}

func or[T int | int64](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}
