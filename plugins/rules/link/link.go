package link

import (
	_ "embed" // of the runtime
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
)

//go:generate runtime/build.sh

//go:embed runtime/runtime.wasm
var runtime []byte // read-only

// functions returns the indexes of the exported functions of the runtime.
var functions = sync.OnceValues(func() (map[string]int, error) {
	exports, err := meter.Exports(runtime)
	if err != nil {
		return nil, err
	}
	indexes := map[string]int{}
	for _, e := range exports {
		if e.Kind == meter.KindFunction {
			indexes[e.Name] = e.Index
		}
	}
	return indexes, nil
})

// Positions in the memory of the runtime, see runtime.c.
const (
	programAt    = 1024
	programSize  = 72
	constantsEnd = 16384
	maxLookups   = 64

	offNow      = 0
	offRows     = 8
	offOptions  = 12
	offFirstRow = 16
	offFields   = 24
	offLookups  = 216
)

// version is the version of policies that package link writes, for operators. A change of
// the meaning of rules increments it.
const version = "rules 2"

// ErrTooLarge means that the constants or the code exceed the room of the runtime.
var ErrTooLarge = errors.New("too many keys in brackets or texts")

// Module returns the module of a program. Equal programs result in equal bytes.
func Module(p *ir.Program) ([]byte, error) {
	patch, _, err := link(p)
	if err != nil {
		return nil, err
	}
	return patch.Apply(runtime)
}

// link returns the parts of a module that differ from the runtime, and their fuel.
func link(p *ir.Program) (*meter.Patch, *Fuel, error) {
	indexes, err := functions()
	if err != nil {
		return nil, nil, err
	}
	l := newLinker(p, indexes)
	patch := meter.Patch{Bodies: map[string][]byte{}, DataAt: programAt}
	patch.Exports = []string{abi.ExportMemory, abi.ExportVersion, abi.ExportAlloc, abi.Exports[abi.OpDescribe]}
	hooks := int32(0)
	add := func(bit int32, op abi.Op, function string, body []byte) {
		hooks |= bit
		patch.Bodies[function] = body
		patch.Exports = append(patch.Exports, abi.Exports[op])
	}
	if p.Eligible != nil {
		add(abi.HookPriorityDelta, abi.OpPriorityDelta, "rule_eligible", l.eligible())
	}
	l.hook = 1
	if len(p.Order) == 2 && p.Sorted() {
		patch.Bodies["rule_direct"] = l.direct()
	}
	if len(p.Order) > 0 {
		add(abi.HookScoreVictims, abi.OpScoreVictims, "rule_order", l.order())
	}
	l.hook = 2
	if len(p.Option) > 0 {
		add(abi.HookScoreOptions, abi.OpScoreOptions, "rule_option", l.option())
	}
	if patch.Data, err = l.data(hooks); err != nil {
		return nil, nil, err
	}
	return &patch, l.total(), nil
}

// linker collects the columns and constants to which the functions of rules refer.
type linker struct {
	program   *ir.Program
	functions map[string]int
	hook      int       // the function that is being written: 0 eligible, 1 order, 2 option
	used      [3]uint64 // by function: bits of schema.Fields
	lookups   []lookup
	texts     []string // constants, one after the other
	fuel      Fuel     // of the functions that were written
}

func newLinker(p *ir.Program, functions map[string]int) *linker {
	l := &linker{program: p, functions: functions}
	l.fuel[1].Entries, l.fuel[2].Entries = make([]int, len(p.Order)), make([]int, len(p.Option))
	return l
}

// lookup is a key of a map.
type lookup struct {
	field int
	key   string
}

// field returns the offset in rule_inputs of the column of a field.
func (l *linker) field(i int) uint32 {
	l.used[l.hook] |= 1 << i
	return offFields + 4*uint32(i)
}

// lookup returns the number of a key of a map.
func (l *linker) lookup(field int, key string) int {
	want := lookup{field, key}
	if i := slices.Index(l.lookups, want); i >= 0 {
		return i
	}
	l.lookups = append(l.lookups, want)
	return len(l.lookups) - 1
}

// text returns the address of a constant.
func (l *linker) text(s string) uint32 {
	at := uint32(programAt + programSize)
	for _, t := range l.texts {
		if t == s {
			return at
		}
		at += uint32(len(t))
	}
	l.texts = append(l.texts, s)
	return at
}

// data returns the record of the program and its constants.
func (l *linker) data(hooks int32) ([]byte, error) {
	info := l.program.Info()
	type entry struct{ field, at, length uint32 }
	var entries []entry
	for _, k := range l.lookups {
		entries = append(entries, entry{uint32(k.field), l.text(k.key), uint32(len(k.key))})
	}
	name, ownVersion := l.text(info.Name+"\x00"), l.text(version+"\x00")
	size := 0
	for _, t := range l.texts {
		size += len(t)
	}
	table := programAt + programSize + (size+3)&^3
	if len(entries) > maxLookups || table+12*len(entries) > constantsEnd {
		return nil, fmt.Errorf("%w: %d and %d bytes; at most %d and about %d bytes are allowed", ErrTooLarge,
			len(entries), size, maxLookups, constantsEnd-programAt-programSize)
	}
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(info.Columns))
	for _, used := range l.used {
		b = le.AppendUint64(b, used)
	}
	for _, w := range []uint32{
		uint32(hooks), flags(l.program), uint32(info.Delta), uint32(len(l.program.Order)), bit(l.program.Sorted()),
		uint32(len(entries)), uint32(table), name, ownVersion,
	} {
		b = le.AppendUint32(b, w)
	}
	b = le.AppendUint32(b, 0) // padding
	for _, t := range l.texts {
		b = append(b, t...)
	}
	b = append(b, make([]byte, table-programAt-len(b))...)
	for _, e := range entries {
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, e.field), e.at), e.length)
	}
	return b, nil
}

func flags(p *ir.Program) uint32 {
	info := p.Info()
	return bit(info.Ascending)*abi.FlagAscending | bit(info.Monotone)*abi.FlagMonotone
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
