package meter_test

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// generator writes random valid modules that terminate or not. They consist of statements,
// which leave the stack unchanged, and expressions, which push a value. Values are
// integers, because the bits of a NaN differ between engines.
type generator struct {
	*rand.Rand
	functions []signature
	types     []signature
	code      []byte
	// index of the current function
	me     int
	locals []meter.ValueType
	// labels are the types that a branch to each open block carries, the innermost last.
	labels [][]meter.ValueType
	budget int // of instructions
	// counters is the number of open loops that count down in locals of their own.
	counters int
	// counts makes the module count its instructions, except free ones, in its last global.
	counts bool
}

type signature struct{ params, results []meter.ValueType }

const (
	i32 = meter.I32
	i64 = meter.I64

	genGlobals  = 4 // two of each type
	genSegments = 2
	maxCounters = 3
)

// module returns a module with a few functions, exported as f0, f1 ...
func (g *generator) module() []byte {
	for range 2 + g.IntN(4) {
		g.functions = append(g.functions, signature{g.typesOf(3), g.typesOf(3)})
	}
	g.types = append([]signature{}, g.functions...)
	for range 3 {
		g.types = append(g.types, signature{g.typesOf(3), g.typesOf(3)})
	}
	bodies := make([][]byte, len(g.functions))
	for i := range bodies {
		bodies[i] = g.body(i)
	}
	return g.assemble(bodies)
}

func (g *generator) assemble(bodies [][]byte) []byte {
	a := asm{0, 'a', 's', 'm', 1, 0, 0, 0}
	types, functions := vector(len(g.types)), vector(len(g.functions))
	exports, code := vector(len(g.functions)+1), vector(len(bodies))
	elements := append(vector(genSegments), 1, 0, byte(len(g.functions)))
	for _, t := range g.types {
		types = append(types, 0x60)
		types = appendTypes(types, t.params)
		types = appendTypes(types, t.results)
	}
	for i := range g.functions {
		functions = append(functions, byte(i))
		exports = append(exports, 2, 'f', byte('0'+i), 0, byte(i))
		elements = append(elements, byte(i))
		code = binary.AppendUvarint(code, uint64(len(bodies[i])))
		code = append(code, bodies[i]...)
	}
	exports = append(exports, 5, 'c', 'o', 'u', 'n', 't', 3, genGlobals)
	elements = append(elements, 0, 0x41, 1, 0x0b, 2, 0, 1)
	a.section(1, types...)
	a.section(3, functions...)
	a.section(4, 1, 0x70, 1, 8, 30)
	a.section(5, 1, 1, 1, 3)
	a.section(6, genGlobals+1, 0x7f, 1, 0x41, 5, 0x0b, 0x7f, 1, 0x41, 0, 0x0b,
		0x7e, 1, 0x42, 9, 0x0b, 0x7e, 1, 0x42, 0, 0x0b, 0x7e, 1, 0x42, 0, 0x0b)
	a.section(7, exports...)
	a.section(9, elements...)
	a.section(12, genSegments)
	a.section(10, code...)
	a.section(11, 2, 0, 0x41, 16, 0x0b, 4, 1, 2, 3, 4, 1, 3, 7, 8, 9)
	return a
}

func vector(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func appendTypes(b []byte, types []meter.ValueType) []byte {
	b = append(b, byte(len(types)))
	for _, t := range types {
		b = append(b, byte(t))
	}
	return b
}

func (g *generator) typeOf() meter.ValueType { return []meter.ValueType{i32, i64}[g.IntN(2)] }

func (g *generator) typesOf(limit int) []meter.ValueType {
	types := make([]meter.ValueType, g.IntN(limit))
	for i := range types {
		types[i] = g.typeOf()
	}
	return types
}

// body returns a function: its locals and code.
func (g *generator) body(i int) []byte {
	me := g.functions[i]
	declared := g.typesOf(4)
	g.me, g.code, g.budget = i, nil, 100
	g.locals = append(append([]meter.ValueType{}, me.params...), declared...)
	g.labels = [][]meter.ValueType{me.results}
	g.counters = 0
	out := vector(len(declared) + 1)
	for _, t := range declared {
		out = append(out, 1, byte(t))
	}
	out = append(out, maxCounters, byte(i32))
	g.statements()
	for _, t := range me.results {
		g.expression(t)
	}
	return append(append(out, g.code...), 0x0b)
}

func (g *generator) op(op byte, operands ...int) {
	g.budget--
	if g.counts && !free(op) {
		g.code = append(g.code, 0x23, genGlobals, 0x42, 1, 0x7c, 0x24, genGlobals)
	}
	g.code = append(g.code, op)
	for _, o := range operands {
		g.code = binary.AppendUvarint(g.code, uint64(o))
	}
}

// free reports whether the accounting does not count the instruction.
func free(op byte) bool {
	return op == 0x01 || op == 0x02 || op == 0x03 || op == 0x05 || op == 0x0b
}

func (g *generator) statements() {
	for range g.IntN(5) {
		g.statement()
	}
}

func (g *generator) statement() {
	if g.budget < 0 {
		g.op(0x01)
		return
	}
	switch g.IntN(16) {
	case 0, 1:
		g.setLocal()
	case 2:
		t := g.typeOf()
		g.expression(t)
		g.op(0x24, g.global(t))
	case 3:
		g.expression(g.typeOf())
		g.op(0x1a)
	case 4:
		g.address()
		g.expression(i32)
		g.op(0x36, 2, g.IntN(64))
	case 5, 6:
		g.block(g.typesOf(3), g.typesOf(3))
		g.drop()
	case 7:
		g.branch()
	case 8:
		g.call()
		g.drop()
	case 9, 10:
		g.bulk()
	case 11:
		g.expression(i32)
		g.op(0x04)
		g.code = append(g.code, 0x40) // a guard
		g.labels = append(g.labels, nil)
		g.branch()
		g.close()
	case 12:
		g.leave()
	case 13:
		g.op(0x01)
	case 14, 15:
		g.countdown()
	}
}

// countdown writes a loop that ends after some iterations unless its body prevents it.
func (g *generator) countdown() {
	if g.counters == maxCounters {
		return
	}
	counter := len(g.locals) + g.counters
	g.counters++
	g.op(0x41, 1+g.IntN(20))
	g.op(0x21, counter)
	g.op(0x03)
	g.code = append(g.code, 0x40)
	g.labels = append(g.labels, nil)
	g.statements()
	g.op(0x20, counter)
	g.op(0x41, 1)
	g.op(0x6b)
	g.op(0x22, counter)
	g.op(0x0d, 0)
	g.close()
	g.counters--
}

// drop drops the results of the last block or call, after recording them.
func (g *generator) drop() {
	for range g.labels[len(g.labels)-1] {
		g.op(0x1a)
	}
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *generator) setLocal() {
	if len(g.locals) == 0 {
		return
	}
	l := g.IntN(len(g.locals))
	g.expression(g.locals[l])
	g.op(0x21, l)
}

func (g *generator) global(t meter.ValueType) int {
	g0 := g.IntN(genGlobals / 2)
	if t == i64 {
		g0 += genGlobals / 2
	}
	return g0
}

// block writes a block, loop or if of any type. Its results remain on the stack, and on
// g.labels for drop.
func (g *generator) block(params, results []meter.ValueType) {
	op := byte(2 + g.IntN(3))
	for _, t := range params {
		g.expression(t)
	}
	if op == 4 {
		g.expression(i32)
	}
	g.op(op, g.typeIndex(signature{params, results}))
	label := results
	if op == 3 {
		label = params
	}
	g.labels = append(g.labels, label)
	g.arm(params, results)
	if op == 4 {
		g.op(0x05)
		g.arm(params, results)
	}
	g.close()
	g.labels = append(g.labels, results)
}

func (g *generator) close() {
	g.op(0x0b)
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *generator) arm(params, results []meter.ValueType) {
	for range params {
		g.op(0x1a)
	}
	g.statements()
	for _, t := range results {
		g.expression(t)
	}
}

// typeIndex returns the index of a type, which it adds if necessary.
func (g *generator) typeIndex(s signature) int {
	for i, t := range g.types {
		if string(appendTypes(appendTypes(nil, t.params), t.results)) == string(appendTypes(appendTypes(nil, s.params), s.results)) {
			return i
		}
	}
	g.types = append(g.types, s)
	return len(g.types) - 1
}

// carry pushes the values that a branch to the label carries.
func (g *generator) carry(label int) {
	for _, t := range g.labels[len(g.labels)-1-label] {
		g.expression(t)
	}
}

func (g *generator) branch() {
	label := g.IntN(len(g.labels))
	carried := g.labels[len(g.labels)-1-label]
	switch g.IntN(3) {
	case 0:
		g.carry(label)
		g.op(0x0c, label)
	case 1:
		g.carry(label)
		g.expression(i32)
		g.op(0x0d, label)
		for range carried {
			g.op(0x1a)
		}
	case 2:
		g.carry(label)
		g.expression(i32)
		targets := []int{label}
		for other, types := range g.labels {
			if string(appendTypes(nil, types)) == string(appendTypes(nil, carried)) {
				targets = append(targets, len(g.labels)-1-other)
			}
		}
		g.op(0x0e, append([]int{len(targets)}, append(targets, label)...)...)
	}
}

// leave writes code that leaves the function or traps.
func (g *generator) leave() {
	if g.IntN(4) == 0 {
		g.op(0x00)
		return
	}
	g.carry(len(g.labels) - 1)
	g.op(0x0f)
}

// call writes a call of a function, possibly recursive; half of the time through the table.
func (g *generator) call() {
	i := g.IntN(len(g.functions))
	for _, t := range g.functions[i].params {
		g.expression(t)
	}
	if g.IntN(2) == 0 {
		g.op(0x10, i)
	} else {
		g.op(0x41, g.IntN(10))
		g.op(0x11, i, 0)
	}
	g.labels = append(g.labels, g.functions[i].results)
}

// address pushes an i32 that is usually inside the memory.
func (g *generator) address() {
	g.expression(i32)
	g.op(0x41, 65_535)
	g.op(0x71)
}

// bulk writes an instruction with work that depends on a length.
func (g *generator) bulk() {
	small := func(n int) {
		g.expression(i32)
		g.op(0x41, n)
		g.op(0x71)
	}
	switch g.IntN(8) {
	case 0:
		g.address()
		g.expression(i32)
		g.address()
		g.op(0xfc, 11, 0)
	case 1:
		g.address()
		g.address()
		g.address()
		g.op(0xfc, 10, 0, 0)
	case 2:
		g.address()
		small(3)
		small(3)
		g.op(0xfc, 8, 1, 0)
	case 3:
		small(7)
		small(3)
		small(3)
		g.op(0xfc, 12, 0, 0)
	case 4:
		small(7)
		small(7)
		small(3)
		g.op(0xfc, 14, 0, 0)
	case 5:
		small(7)
		g.op(0xd0, 0x70)
		small(3)
		g.op(0xfc, 17, 0)
	case 6:
		g.op(0xfc, 9, 1)
	case 7:
		g.op(0xfc, 13, 0)
	}
}

// expression writes code that pushes one value of the type.
func (g *generator) expression(t meter.ValueType) {
	if g.budget < 0 {
		g.constant(t)
		return
	}
	switch g.IntN(9) {
	case 0:
		g.constant(t)
	case 1:
		g.local(t)
	case 2:
		g.op(0x23, g.global(t))
	case 3, 4:
		g.expression(t)
		g.expression(t)
		g.op([]byte{0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73}[g.IntN(6)] + byte(map[meter.ValueType]int{i32: 0, i64: 0x12}[t]))
	case 5:
		g.conversion(t)
	case 6:
		g.expression(t)
		g.expression(t)
		g.expression(i32)
		g.op(0x1b)
	case 7:
		g.block(g.typesOf(2), []meter.ValueType{t})
		g.labels = g.labels[:len(g.labels)-1]
	case 8:
		g.special(t)
	}
}

func (g *generator) constant(t meter.ValueType) {
	if t == i32 {
		g.op(0x41)
	} else {
		g.op(0x42)
	}
	g.code = append(g.code, byte(g.IntN(128)))
}

func (g *generator) local(t meter.ValueType) {
	for l, have := range g.locals {
		if have == t && g.IntN(2) == 0 {
			g.op(0x20, l)
			return
		}
	}
	g.constant(t)
}

func (g *generator) conversion(t meter.ValueType) {
	if t == i32 {
		g.expression(i64)
		g.op([]byte{0xa7, 0x50}[g.IntN(2)])
		return
	}
	g.expression(i32)
	g.op([]byte{0xac, 0xad}[g.IntN(2)])
}

// special writes code that reads and grows memory and tables, and divides.
func (g *generator) special(t meter.ValueType) {
	if t == i64 {
		g.expression(i64)
		g.expression(i64)
		g.op(0x7f)
		return
	}
	switch g.IntN(5) {
	case 0:
		g.address()
		g.op(0x28, 2, g.IntN(64))
	case 1:
		g.op(0x3f, 0)
	case 2:
		g.expression(i32)
		g.op(0x40, 0)
	case 3:
		g.op(0xd0, 0x70)
		g.expression(i32)
		g.op(0xfc, 15, 0)
	case 4:
		g.expression(i32)
		g.expression(i32)
		g.op(0x49)
	}
}
