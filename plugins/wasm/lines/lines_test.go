package lines_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/plugins/wasm/lines"
)

// unit returns a unit of version 4 with the given program. Its files are a.c and b.h.
func unit(program ...byte) []byte {
	return framed(4, []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1},
		[]byte("src\x00\x00a.c\x00\x01\x00\x00b.h\x00\x01\x00\x00\x00"), program)
}

// framed returns a unit of a version with the parameters, names and program.
func framed(version byte, parameters, names, program []byte) []byte {
	head := slices.Concat(parameters, names)
	body := []byte{version, 0}
	if version == 5 {
		body = append(body, 4, 0)
	}
	body = binary.LittleEndian.AppendUint32(body, uint32(len(head)))
	body = slices.Concat(body, head, program)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// at sets the address of a sequence.
func at(address uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0, 5, 2}, address)
}

// sequence describes lines 1 and 3 of the first file and line 7 of the second, four bytes
// each from the given address.
func sequence(address uint32) []byte {
	return append(at(address),
		1,             // line 1
		2, 4, 3, 2, 1, // four bytes on, line 3
		4, 2, 3, 4, 9, 4, 0, 1, // line 7 of b.h
		2, 4, 0, 1, 1)
}

func TestFind_ReturnsCoveringRow(t *testing.T) {
	t.Parallel()
	table := slices.Concat(unit(sequence(0)...), unit(slices.Concat(sequence(100), sequence(40), sequence(0xffffffff))...))
	got := lines.Find(table, nil, []uint32{0, 4, 99, 100, 103, 104, 107, 108, 111, 112, 40, 0xffffffff})
	want := []lines.Place{{}, {}, {}, {"a.c", 1}, {"a.c", 1}, {"a.c", 3}, {"a.c", 3}, {"b.h", 7}, {"b.h", 7}, {}, {"a.c", 1}, {}}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Special opcodes advance the address and the line together.
func TestFind_ReadsSpecialOpcodes(t *testing.T) {
	t.Parallel()
	// Opcode 13+14*3+(2+5) adds 3 bytes and 2 lines; 8 adds the bytes of opcode 255.
	table := unit(slices.Concat(at(10), []byte{1, 13 + 14*3 + 7, 8, 1, 0, 1, 1})...)
	got := lines.Find(table, nil, []uint32{12, 13, 29, 30})
	if want := []lines.Place{{"a.c", 1}, {"a.c", 3}, {"a.c", 3}, {}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Headers that announce more than they contain cost nothing.
func TestFind_IgnoresHostileUnits(t *testing.T) {
	parameters := []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	good := unit(sequence(100)...)
	for name, hostile := range map[string][]byte{
		"many directories":   framed(5, parameters, slices.Concat([]byte{1, 1, 8}, huge), sequence(100)),
		"without content":    framed(5, parameters, slices.Concat([]byte{0}, huge, []byte{0}, huge), sequence(100)),
		"unknown form":       framed(5, parameters, []byte{1, 1, 99, 3, 0, 0, 0}, sequence(100)),
		"version 6":          framed(6, parameters, nil, sequence(100)),
		"line range 0":       framed(4, []byte{1, 1, 1, 0, 0, 13}, nil, sequence(100)),
		"opcode base 0":      framed(4, []byte{1, 1, 1, 0, 1, 0}, nil, sequence(100)),
		"opcode base 255":    framed(4, []byte{1, 1, 1, 0, 1, 255}, nil, sequence(100)),
		"files without end":  framed(4, parameters, []byte("src\x00\x00a.c"), sequence(100)),
		"empty":              framed(4, nil, nil, nil),
		"long extended":      unit(0, 0xff, 0xff, 0xff, 0xff, 0x7f, 2),
		"short address":      unit(0, 3, 2, 1, 1, 1),
		"endless number":     unit(slices.Concat([]byte{2}, huge, huge, huge)...),
		"file far away":      unit(slices.Concat(at(100), []byte{4}, huge, []byte{1, 2, 9, 0, 1, 1})...),
		"ends in a sequence": unit(at(100)...),
	} {
		table := slices.Concat(hostile, good)
		allocations := testing.AllocsPerRun(1, func() {
			if got := lines.Find(table, nil, []uint32{104}); got[0] != (lines.Place{File: "a.c", Line: 3}) {
				t.Errorf("%s: the next unit is not read: %v", name, got)
			}
		})
		if allocations > 20 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
	for _, table := range [][]byte{nil, {1}, {0xff, 0xff, 0xff, 0xff}, {0xf0, 0xff, 0xff, 0x7f, 4, 0}} {
		if got := lines.Find(table, nil, []uint32{104}); got[0] != (lines.Place{}) {
			t.Errorf("%x: %v", table, got)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add(unit(sequence(100)...), []byte("x\x00"), uint32(104))
	f.Add(framed(5, []byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1},
		[]byte{1, 1, 0x1f, 1, 0, 0, 0, 0, 2, 1, 0x1f, 2, 0x0b, 1, 0, 0, 0, 0, 0}, sequence(100)), []byte("x\x00"), uint32(104))
	f.Fuzz(func(t *testing.T, table, strings []byte, address uint32) {
		for _, p := range lines.Find(table, strings, []uint32{address, 0}) {
			if len(p.File) > len(table)+len(strings) {
				t.Errorf("invented %q", p.File)
			}
		}
	})
}
