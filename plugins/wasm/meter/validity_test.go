package meter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// accepts returns an error if wazero rejects the module. A panic of its decoder counts as a
// rejection.
func accepts(tb testing.TB, module []byte) (err error) {
	tb.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx := tb.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = r.Close(ctx) }()
	_, err = r.CompileModule(ctx, module)
	return err
}

// withoutCustom returns the module without custom sections, which metering drops unread
// while wazero rejects unknown names.
func withoutCustom(module []byte) []byte {
	const header = 8
	if len(module) < header {
		return module
	}
	out := bytes.Clone(module[:header])
	for rest := module[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if n <= 0 || end > len(rest) || end < 0 {
			return append(out, rest...)
		}
		if rest[0] != 0 {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}

// lenient are the reasons for rejecting a module that wazero accepts: the specification
// requires it, or engines could read it in two ways.
var lenient = []string{
	// wazero reads one byte as the number of a SIMD instruction
	"instruction 0xfd",
	// and ignores the top bit of the last byte of a signed number
	"number exceeds",
}

// checkValidity checks the guarantee of Instrument: wazero accepts the result if and only
// if it accepts the input, and modules are rejected only for the reasons in doc.go.
func checkValidity(tb testing.TB, module []byte) *meter.Module {
	tb.Helper()
	m, err := meter.Instrument(module, meter.Options{})
	var e *meter.Error
	switch {
	case err == nil:
		before, after := accepts(tb, withoutCustom(module)), accepts(tb, m.Code)
		if (before == nil) != (after == nil) {
			tb.Errorf("before: %v\nafter: %v\n%x", before, after, module)
		}
		if after != nil {
			return nil
		}
		return m
	case !errors.As(err, &e):
		tb.Errorf("%v is no *Error", err)
	case errors.Is(err, meter.ErrMalformed) && !announcesMuch(module):
		if accepts(tb, module) == nil && !isLenient(e) {
			tb.Errorf("%v, but wazero takes it\n%x", err, module)
		}
	}
	return nil
}

func isLenient(e *meter.Error) bool {
	for _, what := range lenient {
		if strings.Contains(e.What, what) {
			return true
		}
	}
	return false
}

// announcesMuch reports whether the module may contain numbers so large that wazero, which
// trusts lengths, uses too much memory.
func announcesMuch(module []byte) bool {
	run := 0
	for _, b := range module {
		if b < 0x80 {
			run = 0
		} else if run++; run == 3 {
			return true
		}
	}
	return false
}

// asm is a module written by hand.
type asm []byte

func (a *asm) section(id byte, body ...byte) {
	*a = append(*a, id)
	*a = binary.AppendUvarint(*a, uint64(len(body)))
	*a = append(*a, body...)
}

// moduleWith returns a module with one memory, one table of each kind, a mutable global,
// segments, and a function without parameters and results.
func moduleWith(locals, instructions []byte) []byte {
	a := asm{0, 'a', 's', 'm', 1, 0, 0, 0}
	a.section(1, 1, 0x60, 0, 0)
	a.section(3, 1, 0)
	a.section(4, 2, 0x70, 0, 4, 0x6f, 0, 4)
	a.section(5, 1, 0, 1)
	a.section(6, 1, 0x7f, 1, 0x41, 0, 0x0b)
	a.section(7, 1, 1, 'f', 0, 0)
	a.section(9, 1, 5, 0x70, 1, 0xd0, 0x70, 0x0b)
	a.section(12, 1)
	body := append(bytes.Clone(locals), instructions...)
	body = append(body, 0x0b)
	code := binary.AppendUvarint([]byte{1}, uint64(len(body)))
	a.section(10, append(code, body...)...)
	a.section(11, 1, 1, 1, 'x')
	return a
}

var noLocals = []byte{0}

// After unreachable the stack holds any values, so each instruction can be tested alone; 0
// is a valid index, alignment, lane and length for all.
func TestInstrument_SupportsInstructionsOfWazero(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	taken := 0
	try := func(instruction ...byte) {
		best := false
		for _, zeros := range []int{0, 1, 2, 3, 4, 8, 10, 16} {
			for _, tail := range [][]byte{nil, {0x0b}, {0x70}, {1, 0x7f}} {
				code := append([]byte{0}, instruction...)
				code = append(code, make([]byte, zeros)...)
				code = append(code, tail...)
				if m := checkValidity(t, moduleWith(noLocals, append(code, 0))); m != nil {
					best = true
				}
			}
		}
		if best {
			taken++
		}
	}
	for op := range 256 {
		try(byte(op))
		for _, operand := range []byte{0x40, 0x7f, 0x7b, 0x70, 0x6f} {
			try(byte(op), operand)
		}
	}
	t.Logf("%d of one byte", taken)
	for sub := range 300 {
		try(binary.AppendUvarint([]byte{0xfc}, uint64(sub))...)
		try(binary.AppendUvarint([]byte{0xfd}, uint64(sub))...)
		try(0xfb, byte(sub))
		try(0xfe, byte(sub))
	}
	t.Logf("%d in all", taken)
}
