package meter_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// nameSection returns a name section with a subsection of the given ID and content.
func nameSection(id byte, content ...byte) []byte {
	body := append([]byte{4, 'n', 'a', 'm', 'e', id, byte(len(content))}, content...)
	return append([]byte{0}, body...)
}

func TestInstrument_KeepsFunctionNames(t *testing.T) {
	t.Parallel()
	// One function without parameters, exported as f.
	functions := [][]byte{{1, 1, 0x60, 0, 0}, {3, 1, 0}, {7, 1, 1, 'f', 0, 0}, {10, 1, 2, 0, 0x0b}}
	for name, tc := range map[string]struct {
		section []byte
		want    string
	}{
		"name":           {nameSection(1, 1, 0, 6, 'd', 'e', 'c', 'i', 'd', 'e'), "decide"},
		"of no function": {nameSection(1, 1, 9, 1, 'x'), ""},
		"not UTF-8":      {nameSection(1, 1, 0, 1, 0xff), ""},
		"truncated":      {nameSection(1, 1, 0, 40, 'x'), ""},
		"too many":       {nameSection(1, 200), ""},
		"other names":    {nameSection(2, 1, 0, 1, 'x'), ""},
		"repeated":       {nameSection(1, 2, 0, 1, 'a', 0, 1, 'b'), "a"},
	} {
		m := checkValidity(t, sectionsOf(append(append([][]byte{}, functions...), tc.section)...))
		if m == nil {
			t.Errorf("%s: refused", name)
			continue
		}
		r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
		compiled, err := r.CompileModule(t.Context(), m.Code)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := compiled.ExportedFunctions()["f"].Name(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		_ = r.Close(context.Background())
	}
}

// A module cannot make its metered form large with names.
func TestInstrument_DropsLongNames(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte{'x'}, 300<<10)
	u32 := func(n int) []byte { return []byte{byte(n&0x7f | 0x80), byte(n>>7&0x7f | 0x80), byte(n >> 14)} }
	names := append(append([]byte{1, 0}, u32(len(long))...), long...)
	body := append(append([]byte{4, 'n', 'a', 'm', 'e', 1}, u32(len(names))...), names...)
	m := checkValidity(t, sectionsOf([]byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}, []byte{10, 1, 2, 0, 0x0b}, append([]byte{0}, body...)))
	if m == nil || len(m.Code) > 1000 {
		t.Errorf("the names were not dropped: %v", m != nil)
	}
}
