// Package wasmtest writes hostile modules for tests: small modules whose compilation or
// instantiation takes much memory and time. It needs no toolchain, and runs nothing.
package wasmtest

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Bombs are modules by name. They have the exports of a policy, so a host compiles them unless
// they exceed a limit.
var Bombs = map[string]func() []byte{
	"loops_of_locals":    func() []byte { return functions(40, 250, loops(250, 250)) },
	"loops_in_loops":     func() []byte { return functions(1, 600, loops(600, 600)) },
	"ifs_of_locals":      func() []byte { return functions(40, 250, ifs(600, 250)) },
	"straight":           func() []byte { return functions(1, 1, repeat(100_000, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0)) },
	"straight_functions": func() []byte { return functions(12, 1, repeat(80_000, 0x20, 0, 0x41, 1, 0x6a, 0x21, 0)) },
	"many_functions":     func() []byte { return functions(60_000, 0, nil) },
	"many_locals":        func() []byte { return functions(2000, 40_000, repeat(1, 0x20, 0, 0x1a)) },
	"live_locals":        func() []byte { return functions(4, 20_000, liveLocals(20_000)) },
	"deep_blocks":        func() []byte { return functions(4, 0, nested(40_000, 0x02, 0x40)) },
	"deep_loops":         func() []byte { return functions(4, 0, nested(40_000, 0x03, 0x40)) },
	"branch_table":       func() []byte { return functions(20, 0, branchTable(500, 16_000)) },
	"branch_tables":      func() []byte { return functions(1, 0, branchTable(500, 200_000)) },
	"live_values":        func() []byte { return functions(4, 1, liveValues(60_000)) },
	"calls":              func() []byte { return functions(8, 0, repeat(60_000, 0x10, 3)) },
	"indirect_calls":     func() []byte { return functions(8, 0, repeat(40_000, 0x41, 0, 0x11, 3, 0)) },
	"loads":              func() []byte { return functions(8, 1, repeat(60_000, 0x20, 0, 0x28, 2, 4, 0x21, 0)) },
	"vectors":            func() []byte { return functions(8, 0, repeat(40_000, 0x41, 0, 0xfd, 15, 0xfd, 77, 0x1a)) },
	"divisions":          func() []byte { return functions(8, 1, repeat(60_000, 0x20, 0, 0x20, 0, 0x6e, 0x21, 0)) },
	"references":         func() []byte { return functions(1, 0, repeat(100_000, 0xd2, 0, 0x1a)) },
	"types":              func() []byte { return with(sectionTypes, vector(2_000_000, 0x60, 0, 0)) },
	"globals":            func() []byte { return with(sectionGlobals, vector(1_000_000, 0x7f, 1, 0x41, 0, 0x0b)) },
	"tables":             func() []byte { return with(sectionTables, vector(16, 0x70, 0, 0x80, 0x80, 0x04)) },
	"table_entries":      func() []byte { return with(sectionTables, vector(1, 0x70, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)) },
	"elements":           func() []byte { return with(sectionElements, vector(1, passive(2_000_000)...)) },
	"data":               func() []byte { return with(sectionData, vector(1_500_000, 1, 0)) },
}

// IDs of sections.
const (
	sectionTypes = iota + 1
	sectionImports
	sectionFunctions
	sectionTables
	sectionMemories
	sectionGlobals
	sectionExports
	sectionStart
	sectionElements
	sectionCode
	sectionData
)

// functions returns a policy with a number of functions without parameters and results, each
// with the given number of i32 locals and instructions.
func functions(count, locals int, instructions []byte) []byte {
	body := []byte{0}
	if locals > 0 {
		body = append(uvarint(1), uvarint(locals)...)
		body = append(body, 0x7f)
	}
	body = append(append(body, instructions...), 0x0b)
	body = append(uvarint(len(body)), body...)
	return module(nil, count, bytes.Repeat(body, count))
}

// with returns a policy with one section added, or replaced.
func with(id byte, content []byte) []byte {
	return module(map[byte][]byte{id: content}, 0, nil)
}

// module returns a policy with the given sections in place of the usual ones, and additional
// functions without parameters and results.
func module(sections map[byte][]byte, count int, bodies []byte) []byte {
	policy := map[byte][]byte{
		sectionTypes:     {4, 0x60, 0, 1, 0x7f, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0},
		sectionFunctions: slices.Concat(uvarint(3+count), []byte{0, 1, 2}, bytes.Repeat([]byte{3}, count)),
		sectionTables:    {1, 0x70, 0, 1},
		sectionMemories:  {1, 0, 1},
		sectionExports: slices.Concat(
			[]byte{4}, exported("memory", 2, 0), exported("cede_abi_version", 0, 0), exported("cede_alloc", 0, 1), exported("cede_describe", 0, 2),
		),
		// version 1.0; a buffer at 1024; no description
		sectionCode: slices.Concat(uvarint(3+count), []byte{6, 0, 0x41, 0x80, 0x80, 4, 0x0b, 5, 0, 0x41, 0x80, 8, 0x0b, 4, 0, 0x41, 1, 0x0b}, bodies),
	}
	if replaced := sections[sectionTypes]; replaced != nil {
		policy[sectionTypes] = nil
	}
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	for id := byte(sectionTypes); id <= sectionData; id++ {
		content := policy[id]
		if replaced := sections[id]; replaced != nil {
			content = replaced
		}
		if content != nil {
			out = append(out, id)
			out = append(append(out, uvarint(len(content))...), content...)
		}
	}
	return out
}

func exported(name string, kind, index byte) []byte {
	return append(append(uvarint(len(name)), name...), kind, index)
}

func uvarint(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func vector(n int, element ...byte) []byte { return append(uvarint(n), bytes.Repeat(element, n)...) }

func repeat(n int, instructions ...byte) []byte { return bytes.Repeat(instructions, n) }

// nested returns blocks that contain each other.
func nested(n int, opening ...byte) []byte {
	return append(bytes.Repeat(opening, n), bytes.Repeat([]byte{0x0b}, n)...)
}

// increment adds one to a local.
func increment(local int) []byte {
	return slices.Concat([]byte{0x20}, uvarint(local), []byte{0x41, 1, 0x6a, 0x21}, uvarint(local))
}

// loops returns nested loops whose innermost changes every local, so that each loop merges
// each of them.
func loops(depth, locals int) []byte {
	b := bytes.Repeat([]byte{0x03, 0x40}, depth)
	for l := range locals {
		b = append(b, increment(l)...)
	}
	return append(b, bytes.Repeat([]byte{0x20, 0, 0x0d, 0, 0x0b}, depth)...)
}

// ifs returns conditions that change one local each.
func ifs(n, locals int) (b []byte) {
	for i := range n {
		b = append(b, 0x20, 0, 0x04, 0x40)
		b = append(b, increment(i%locals)...)
		b = append(b, 0x0b)
	}
	return b
}

// liveLocals sets every local before a call and uses it afterwards.
func liveLocals(n int) (b []byte) {
	for l := range n {
		b = append(b, increment(l)...)
	}
	b = append(b, 0x10, 3)
	for l := range n {
		b = slices.Concat(b, []byte{0x20}, uvarint(l), []byte{0x1a})
	}
	return b
}

// liveValues pushes values, calls a function, and adds them up.
func liveValues(n int) []byte {
	b := bytes.Repeat([]byte{0x20, 0, 0x45}, n)
	b = append(b, 0x10, 3)
	b = append(b, bytes.Repeat([]byte{0x6a}, n-1)...)
	return append(b, 0x1a)
}

// branchTable returns a branch to one of many targets in nested blocks.
func branchTable(blocks, targets int) []byte {
	b := bytes.Repeat([]byte{0x02, 0x40}, blocks)
	b = append(b, 0x41, 0, 0x0e)
	b = append(b, uvarint(targets)...)
	for i := range targets + 1 {
		b = append(b, uvarint(i%blocks)...)
	}
	return append(b, bytes.Repeat([]byte{0x0b}, blocks)...)
}

// passive returns a segment of references to the first function.
func passive(n int) []byte { return append(append([]byte{1, 0}, uvarint(n)...), make([]byte, n)...) }
