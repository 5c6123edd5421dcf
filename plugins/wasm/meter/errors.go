package meter

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons for rejecting a module. Every error of Instrument is an *Error that wraps one of
// these.
var (
	// ErrMalformed means that the bytes are not a WebAssembly 2.0 module. Types of
	// instructions are left to the engine, which checks them anyway.
	ErrMalformed = errors.New("malformed module")
	// ErrUnsupported means that the module uses a feature beyond WebAssembly 2.0, or one
	// that cannot be metered.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrLimit means that the module exceeds Options or a limit of the package.
	ErrLimit = errors.New("limit exceeded")
	// ErrReserved means that the module exports an item named FuelGlobal.
	ErrReserved = errors.New("reserved name")
)

// An Error reports a problem of a module and its location.
type Error struct {
	Kind   error // one of the sentinels above
	Offset int   // in the module, in bytes
	// Section is the name of the section that contains Offset; "" for the header.
	Section string
	// Function is the index of the function that contains Offset, imports counted, as tools
	// print it; -1 outside of functions.
	Function int
	What     string
	Hint     string // remedy; may be empty
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
