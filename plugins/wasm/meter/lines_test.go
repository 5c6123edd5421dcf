package meter_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// custom returns a custom section.
func custom(name string, content []byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	return section(0, append(body, content...))
}

// section returns a section with its length.
func section(id byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

// A module cannot make an engine record offsets without limit.
func TestInstrument_DropsLargeLineTables(t *testing.T) {
	t.Parallel()
	module := func(table, nops int) []byte {
		body := slices.Concat([]byte{0}, bytes.Repeat([]byte{1}, nops), []byte{0x0b})
		code := slices.Concat([]byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body)
		return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, []byte{1, 0x60, 0, 0}), section(3, []byte{1, 0}),
			section(10, code), custom(".debug_line", make([]byte, table)))
	}
	for name, tc := range map[string]struct {
		module []byte
		traced bool
	}{
		"small":        {module(100, 10), true},
		"large table":  {module(512<<10+1, 10), false},
		"large code":   {module(100, 1<<20), false},
		"within both":  {module(512<<10, 1<<19), true},
		"without code": {slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), custom(".debug_line", make([]byte, 9))), false},
	} {
		m, err := meter.Instrument(tc.module, meter.Options{MaxFrame: 1 << 30})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if traced := bytes.Contains(m.Code, []byte(".debug_info")); traced != tc.traced || (m.Lines != nil) != tc.traced {
			t.Errorf("%s: offsets are recorded: %v, want %v", name, traced, tc.traced)
		}
		if len(m.Code) > len(tc.module)+500 {
			t.Errorf("%s: %d bytes became %d", name, len(tc.module), len(m.Code))
		}
	}
}
