package meter

import "fmt"

// FuelGlobal is the name under which a metered module exports its fuel: a mutable i64
// global. The host sets it before a call and reads it afterwards. It is -1 after a call
// that used up its fuel, and never negative after one that returned.
const FuelGlobal = "cede_fuel"

// Defaults of Options.
const (
	DefaultMaxSize          = 8 << 20
	DefaultMaxFunctions     = 1 << 16
	DefaultMaxLocals        = 50_000
	DefaultMaxTableElements = 1 << 16
	DefaultStartFuel        = 10_000_000
)

// Options bound accepted modules. The zero value is safe for untrusted modules.
type Options struct {
	MaxSize      int // of the module in bytes; default: 8 MiB
	MaxFunctions int // imported and defined; default: 65,536
	// MaxLocals is the maximum number of locals of a function, including parameters and the
	// two that metering adds; default: 50,000.
	MaxLocals int
	// MaxTableElements bounds the initial and the maximum size of a table, for which
	// engines have no limit; default: 65,536.
	MaxTableElements int
	// StartFuel is the initial fuel of the module. Only a start function can use it before
	// the host sets the global; default: 10,000,000.
	StartFuel int64
}

// A Module is a metered module with the properties that a loader checks before compiling
// it.
type Module struct {
	Code    []byte
	Imports []Import
	Exports []Export
	// Memory is the memory defined in the module, or nil.
	Memory *Limits
	// Tables are the tables defined in the module, capped at MaxTableElements.
	Tables []Limits
	// Start reports whether the module has a start function, which runs during
	// instantiation.
	Start bool
	// Functions is the number of functions defined in the module.
	Functions int
}

// Export returns the export with the given name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Instrument returns the module with fuel metering. Errors are of type *Error. It does not
// retain module, and the result shares no memory with it.
func Instrument(module []byte, o Options) (*Module, error) {
	o = o.withDefaults()
	if len(module) > o.MaxSize {
		return nil, &Error{
			Kind: ErrLimit, Offset: o.MaxSize, Function: -1,
			What: fmt.Sprintf("module has %d bytes, limit is %d", len(module), o.MaxSize),
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
