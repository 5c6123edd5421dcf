package meter

import "fmt"

// FuelGlobal is the name under which a metered module exports its fuel: a mutable i64
// global. The host sets it before a call and reads it afterwards. It is -1 after a call
// that used up its fuel, and never negative after one that returned.
const FuelGlobal = "cede_fuel"

// StartExport is the name under which a metered module exports its start function, if it
// has one. Instantiation does not run it: the host calls it with fuel.
const StartExport = "cede_start"

// Defaults of Options.
const (
	DefaultMaxSize          = 8 << 20
	DefaultMaxFunctions     = 1 << 16
	DefaultMaxLocals        = 50_000
	DefaultMaxTableElements = 1 << 16
	DefaultMaxFrame         = 8 << 20
	DefaultMaxTargets       = 1 << 14
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
	// MaxFrame is the maximum of an estimate of a function's stack in bytes, which grows with
	// its instructions, and with its labels times its locals; default: 8 MiB. The time and
	// the memory of a compiler grow with it too.
	MaxFrame int
	// MaxTargets is the maximum number of targets of all branch tables of a function;
	// default: 16,384.
	MaxTargets int
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
	// Start reports whether the module has a start function, which is exported as
	// StartExport.
	Start bool
	// Yield is the index of a function that is called whenever the fuel is negative. A host
	// that observes its calls can add fuel to the global, and the guest continues. It is -1
	// if the module has no functions.
	Yield int
	// Functions is the number of functions defined in the module.
	Functions int
	// Lines finds source lines, or is nil if the module has no line table. An engine with
	// debug information enabled then adds the offset of each frame to its stack traces.
	Lines *Lines
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
	o.MaxFrame = or(o.MaxFrame, DefaultMaxFrame)
	o.MaxTargets = or(o.MaxTargets, DefaultMaxTargets)
	return o
}

func or(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}
