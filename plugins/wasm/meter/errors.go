package meter

import (
	"errors"
	"fmt"
	"strings"
)

// Why a module is refused. Every error of Instrument is an *Error that wraps
// one of these.
var (
	// ErrMalformed means that the bytes are not a WebAssembly 2.0 module. What a
	// function does with its types is left to the engine, which checks it anyway.
	ErrMalformed = errors.New("malformed module")
	// ErrUnsupported means that the module uses a feature beyond WebAssembly 2.0,
	// or one whose work cannot be metered.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrLimit means that the module is larger than Options or the limits of the
	// package allow.
	ErrLimit = errors.New("limit exceeded")
	// ErrReserved means that the module exports something under FuelGlobal.
	ErrReserved = errors.New("reserved name")
)

// Error says what is wrong with a module, and where.
type Error struct {
	Kind   error // one of the sentinels above
	Offset int   // in the module, in bytes
	// Section is the name of the section that holds Offset; empty for the header.
	Section string
	// Function is the index of the function whose body holds Offset, imports
	// counted, as tools print it; -1 elsewhere.
	Function int
	What     string
	Hint     string // what to do about it; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "byte %d", e.Offset)
	switch {
	case e.Function >= 0:
		fmt.Fprintf(&b, " (function %d)", e.Function)
	case e.Section != "":
		fmt.Fprintf(&b, " (%s section)", e.Section)
	}
	fmt.Fprintf(&b, ": %v: %s", e.Kind, e.What)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Kind }
