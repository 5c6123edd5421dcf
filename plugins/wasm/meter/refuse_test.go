package meter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// emptyModule is a module without sections.
var emptyModule = asm{0, 'a', 's', 'm', 1, 0, 0, 0}

// sectionsOf returns a module of the given sections: ID and content.
func sectionsOf(sections ...[]byte) []byte {
	a := slices.Clone(emptyModule)
	for _, s := range sections {
		a.section(s[0], s[1:]...)
	}
	return a
}

func TestInstrument_RejectsWithNameAndOffset(t *testing.T) {
	t.Parallel()
	const body = 64 // offset of the instructions of moduleWith
	in := func(instructions ...byte) []byte { return moduleWith(noLocals, instructions) }
	for _, c := range []struct {
		module []byte
		kind   error
		offset int
		text   string
	}{
		{nil, meter.ErrMalformed, 0, "not a WebAssembly module"},
		{[]byte("\x7fELF0000"), meter.ErrMalformed, 0, "not a WebAssembly module"},
		{[]byte{0, 'a', 's', 'm', 0x0d, 0, 1, 0}, meter.ErrUnsupported, 4, "component"},
		{[]byte{0, 'a', 's', 'm'}, meter.ErrUnsupported, 4, "component"},

		{in(0x12, 0), meter.ErrUnsupported, body, "return_call (tail calls); build without tail calls"},
		{in(0x13, 0, 0), meter.ErrUnsupported, body, "return_call_indirect (tail calls)"},
		{in(0x06, 0x40), meter.ErrUnsupported, body, "try (exceptions)"},
		{in(0x08, 0), meter.ErrUnsupported, body, "throw (exceptions)"},
		{in(0x1f, 0x40, 0), meter.ErrUnsupported, body, "try_table (exceptions)"},
		{in(0x14, 0), meter.ErrUnsupported, body, "call_ref (typed function references)"},
		{in(0xfe, 0x03, 0), meter.ErrUnsupported, body, "an atomic instruction (threads)"},
		{in(0xfb, 0, 0), meter.ErrUnsupported, body, "a GC instruction (GC)"},
		{in(0xfd, 0x80, 0x02), meter.ErrUnsupported, body + 1, "relaxed SIMD"},
		{in(0xfd, 0x8c, 0x00), meter.ErrUnsupported, body + 1, "not in its shortest encoding"},
		{in(0xfd, 0x9a, 0x01), meter.ErrMalformed, body + 1, "unknown instruction 0xfd 0x9a"},
		{in(0xfc, 19), meter.ErrUnsupported, body, "wide arithmetic"},
		{in(0xfc, 99), meter.ErrMalformed, body, "unknown instruction 0xfc 99"},
		{in(0xff), meter.ErrMalformed, body, "unknown instruction 0xff"},
		{in(0x41, 0, 0x28, 0x42, 0, 0), meter.ErrUnsupported, body + 3, "names its memory (multi-memory)"},
		{in(0x3f, 1), meter.ErrUnsupported, body + 1, "memory 1 (multi-memory)"},
		{in(0x41, 0, 0x28, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f), meter.ErrMalformed, body + 4, "exceeds 32 bits; build for wasm32"},
		{in(0xd0, 0x6e), meter.ErrUnsupported, body + 1, "(GC)"},
		{in(0x02, 0x63, 0x70), meter.ErrUnsupported, body + 1, "typed function references"},

		// Items added by metering must not be accessible.
		{in(0x23, 1, 0x1a), meter.ErrMalformed, body, "global 1 does not exist, there are 1"},
		{in(0x42, 9, 0x24, 1), meter.ErrMalformed, body + 2, "global 1 does not exist, there are 1"},
		{in(0x20, 0, 0x1a), meter.ErrMalformed, body, "local 0 does not exist, there are 0"},
		{in(0x02, 1, 0x0b), meter.ErrMalformed, body + 1, "block type 1 does not exist, there are 1"},
		{in(0x10, 1), meter.ErrMalformed, body, "called function 1 does not exist, there are 1"},
		{in(0xd2, 0, 0x1a), meter.ErrUnsupported, body, "ref.func in a function; take references"},
		{sectionsOf([]byte{9, 1, 1, 0, 1, 0}), meter.ErrMalformed, 14, "function 0 does not exist, there are 0"},
		{sectionsOf([]byte{6, 1, 0x70, 0, 0xd2, 0, 0x0b}), meter.ErrMalformed, 14, "function 0 does not exist, there are 0"},
		{in(0x41, 0, 0x11, 1, 0), meter.ErrMalformed, body + 2, "called type 1 does not exist, there are 1"},
		{sectionsOf([]byte{6, 2, 0x7f, 0, 0x41, 0, 0x0b, 0x7e, 0, 0x23, 1, 0x0b}), meter.ErrMalformed, 18, "a constant uses global 1"},
		{sectionsOf([]byte{7, 1, 1, 'g', 3, 0}), meter.ErrMalformed, 11, `"g" exports global 0, which does not exist, there are 0`},

		{in(0x0c, 1), meter.ErrMalformed, body, "label 1 of a branch does not exist, there are 1"},
		{in(0x41, 0, 0x0e, 1, 0, 1), meter.ErrMalformed, body + 5, "label 1 of a branch does not exist, there are 1"},
		{in(0x05), meter.ErrMalformed, body, "else without if"},
		{in(0x0b), meter.ErrMalformed, body + 1, "1 bytes remain"},
		{in(0x02, 0x40), meter.ErrMalformed, body + 3, "ends too early"},
		{in(0x41, 0xff, 0xff, 0xff, 0xff, 0x4f, 0x1a), meter.ErrMalformed, body + 1, "exceeds 32 bits"},
		{in(0x43, 0), meter.ErrMalformed, body + 1, "ends too early: requires 4 more bytes"},

		{sectionsOf([]byte{7, 1, 9, 'c', 'e', 'd', 'e', '_', 'f', 'u', 'e', 'l', 3, 0}), meter.ErrReserved, 11, "rename the export"},
		{sectionsOf([]byte{5, 1, 0, 1}, []byte{7, 2, 1, 'm', 2, 0, 1, 'm', 2, 0}), meter.ErrMalformed, 20, "exported twice"},
		{sectionsOf([]byte{5, 1, 4, 1}), meter.ErrUnsupported, 11, "64-bit memory (memory64)"},
		{sectionsOf([]byte{5, 1, 3, 1, 2}), meter.ErrUnsupported, 11, "shared memory (threads)"},
		{sectionsOf([]byte{5, 2, 0, 1, 0, 1}), meter.ErrUnsupported, 13, "multi-memory"},
		{sectionsOf([]byte{5, 1, 1, 2, 1}), meter.ErrMalformed, 11, "start at 2 and end at 1"},
		{sectionsOf([]byte{4, 1, 0x40, 0, 0x70, 0, 1}), meter.ErrUnsupported, 11, "initial value"},
		{sectionsOf([]byte{4, 1, 0x70, 0, 0x81, 0x80, 4}), meter.ErrLimit, 11, "65537 initial elements, limit is 65536"},
		{sectionsOf([]byte{4, 1, 0x7f, 0, 1}), meter.ErrMalformed, 11, "i32 is not a reference type"},
		{sectionsOf(append([]byte{4, 17}, bytes.Repeat([]byte{0x70, 0, 1}, 17)...)), meter.ErrLimit, 10, "17 tables"},
		{sectionsOf([]byte{1, 1, 0x4e, 1, 0x60, 0, 0}), meter.ErrUnsupported, 11, "(GC)"},
		{sectionsOf([]byte{1, 1, 0x60, 1, 0x69, 0}), meter.ErrUnsupported, 13, "(exceptions)"},
		{sectionsOf(append([]byte{1, 1, 0x60, 0x81, 2}, make([]byte, 300)...)), meter.ErrLimit, 13, "257 parameters"},
		{sectionsOf([]byte{13, 1, 0, 0}), meter.ErrUnsupported, 8, "a tag section (exceptions)"},
		{sectionsOf([]byte{14}), meter.ErrMalformed, 8, "unknown section ID 14"},
		{sectionsOf([]byte{5, 0}, []byte{4, 0}), meter.ErrMalformed, 13, "section table is repeated or out of order"},
		{sectionsOf([]byte{10, 0}, []byte{12, 0}), meter.ErrMalformed, 13, "section data count is repeated or out of order"},
		{sectionsOf([]byte{0, 1, 0xff}), meter.ErrMalformed, 10, "not UTF-8"},
		{sectionsOf([]byte{6, 1, 0x7f, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b}), meter.ErrUnsupported, 15, "extended constants"},
		{sectionsOf([]byte{3, 1, 0}), meter.ErrMalformed, 11, "type 0 does not exist, there are 0"},
		{sectionsOf([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}), meter.ErrMalformed, 18, "numbers of functions and function bodies differ"},
		{sectionsOf([]byte{8, 0}), meter.ErrMalformed, 10, "start function 0 does not exist"},
		{sectionsOf([]byte{11, 1, 2, 1, 0x41, 0, 0x0b, 0}), meter.ErrUnsupported, 11, "memory 1 (multi-memory)"},

		// Announced lengths that do not exist must not cause allocations.
		{sectionsOf([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}), meter.ErrMalformed, 10, "announces 4294967295 types in 0 bytes"},
		{sectionsOf([]byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f}), meter.ErrMalformed, 10, "announces 4294967295 imports"},
		{sectionsOf([]byte{9, 1, 0, 0x41, 0, 0x0b, 0xff, 0xff, 0xff, 0xff, 0x0f}), meter.ErrMalformed, 15, "announces 4294967295 elements"},
		{sectionsOf([]byte{11, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}), meter.ErrMalformed, 12, "announces 4294967295 bytes of data"},
		{moduleWith([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f}, nil), meter.ErrLimit, 64, "more than 50000 locals"},
	} {
		_, err := meter.Instrument(c.module, meter.Options{})
		var e *meter.Error
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Offset != c.offset || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%x: %v; want %v at %d: %s", c.module, err, c.kind, c.offset, c.text)
		}
	}
}

func TestError_ContainsLocation(t *testing.T) {
	t.Parallel()
	_, err := meter.Instrument(moduleWith(noLocals, []byte{0x12, 0}), meter.Options{})
	if want := "byte 64 (function 0): unsupported feature: return_call (tail calls); build without tail calls (-mno-tail-call)"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	_, err = meter.Instrument(sectionsOf([]byte{5, 1, 4, 1}), meter.Options{})
	if want := "byte 11 (memory section): unsupported feature: a 64-bit memory (memory64); build for wasm32"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestOptions_AreEnforced(t *testing.T) {
	t.Parallel()
	bulk := fixture(t, "bulk")
	for _, c := range []struct {
		options meter.Options
		text    string
	}{
		{meter.Options{MaxSize: len(bulk) - 1}, "limit is 385"},
		{meter.Options{MaxFunctions: 11}, "more than 11 functions"},
		{meter.Options{MaxLocals: 4}, "exceed 4"},
		{meter.Options{MaxTableElements: 7}, "8 initial elements, limit is 7"},
	} {
		if _, err := meter.Instrument(bulk, c.options); !errors.Is(err, meter.ErrLimit) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.options, err)
		}
	}
	if _, err := meter.Instrument(bulk, meter.Options{MaxSize: len(bulk), MaxFunctions: 12, MaxLocals: 5, MaxTableElements: 8}); err != nil {
		t.Error(err)
	}
}

// A function with the maximum number of locals still receives those for metering, and
// engines accept it.
func TestInstrument_AcceptsFunctionsWithManyLocals(t *testing.T) {
	t.Parallel()
	with := func(n int) []byte {
		locals := append(binary.AppendUvarint([]byte{1}, uint64(n)), 0x7f)
		return moduleWith(locals, []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0, 0x03, 0x40, 0x0b})
	}
	if m := checkValidity(t, with(49_998)); m == nil {
		t.Error("refused")
	} else if finished := checkBehaviour(t, with(49_998), m.Code, 100_000); finished != 1 {
		t.Error("did not finish")
	}
	if _, err := meter.Instrument(with(49_999), meter.Options{}); !errors.Is(err, meter.ErrLimit) {
		t.Error(err)
	}
}

func TestInstrument_BoundsResultSize(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for name, pattern := range map[string][]byte{
		"loops": {0x03, 0x40, 0x0b}, "calls": {0x10, 0}, "growth": {0x40, 0}, "fills": {0xfc, 11, 0},
		"ifs": {0x04, 0x40, 0x05, 0x01, 0x0b}, "nests": {0x02, 0x40}, "indirect": {0x11, 0, 0},
	} {
		rubbish := moduleWith(noLocals, bytes.Repeat(pattern, 1<<20))
		m, err := meter.Instrument(rubbish, meter.Options{})
		if err != nil && !errors.Is(err, meter.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && len(m.Code) > 9*len(rubbish) {
			t.Errorf("%s: %d bytes became %d", name, len(rubbish), len(m.Code))
		}
	}
}

// A module without functions remains valid.
func TestInstrument_AcceptsModulesWithoutFunctions(t *testing.T) {
	t.Parallel()
	for _, module := range [][]byte{emptyModule, sectionsOf([]byte{1, 0}), sectionsOf([]byte{10, 0}), sectionsOf([]byte{6, 0}, []byte{7, 0})} {
		if checkValidity(t, module) == nil {
			t.Errorf("%x was refused", module)
		}
	}
}

func TestInstrument_DropsCustomSections(t *testing.T) {
	t.Parallel()
	module := sectionsOf([]byte{0, 4, 'n', 'a', 'm', 'e', 0xff}, []byte{5, 1, 0, 1}, []byte{0, 1, 'x', 1, 2, 3})
	if m := checkValidity(t, module); m == nil || bytes.Contains(m.Code, []byte("name")) {
		t.Error(m)
	}
}
