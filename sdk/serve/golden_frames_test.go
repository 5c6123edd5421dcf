package serve

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

// A golden is a frame, and the frame with which the guest is configured before.
type golden struct {
	name  string
	op    abi.Op
	frame []byte
	after string
}

func goldens() []golden {
	list := configurations()
	var e abi.Encoder
	e.Describe()
	list = append(list, golden{name: "describe", op: abi.OpDescribe, frame: written(&e)})
	for _, op := range []abi.Op{abi.OpPriorityDelta, abi.OpScoreVictims, abi.OpSelectVictims, abi.OpScoreOptions, abi.OpPreemptBindings} {
		list = append(list, questions(op)...)
	}
	all := question(abi.OpScoreVictims, 3, firstColumns, nil)
	for _, b := range damages {
		list = append(list, golden{name: "bad-" + b.name, op: abi.OpScoreVictims, frame: b.do(copyOf(all))})
	}
	budgets := question(abi.OpScoreVictims, 4, secondColumns, nil)
	for _, b := range budgetDamages {
		list = append(list, golden{name: "bad-" + b.name, op: abi.OpScoreVictims, frame: b.do(copyOf(budgets))})
	}
	return list
}

// firstColumns is the set of columns of version 1.0, secondColumns that of version 1.1,
// and thirdColumns that of version 1.3.
const (
	firstColumns  = secondColumns &^ policy.BudgetColumns
	secondColumns = thirdColumns &^ policy.RelocationColumns
	thirdColumns  = probe.AllColumns &^ policy.LookAheadColumns
)

func configurations() (list []golden) {
	all := []policy.Value{
		{Name: "on", Kind: policy.Bool, Integer: 1},
		{Name: "count", Kind: policy.Integer, Integer: -5},
		{Name: "weight", Kind: policy.Number, Number: 0.75},
		{Name: "span", Kind: policy.Duration, Integer: 90e9},
		{Name: "order", Kind: policy.Text, Text: "größte"},
		{Name: "spare", Kind: policy.Texts, Text: "日本"},
		{Name: "spare", Kind: policy.Texts, Text: "🦀"},
		{Name: "shares", Kind: policy.Numbers, Item: "x", Number: 1.5},
		{Name: "shares", Kind: policy.Numbers, Item: "größe", Number: 2},
	}
	few := append([]policy.Value{}, all[:5]...)
	rejected := append([]policy.Value{}, all...)
	rejected[4].Text = "reject"
	for _, c := range []struct {
		name   string
		values []policy.Value
	}{{"configure-all", all}, {"configure-no-lists", few}, {"configure-rejected", rejected}} {
		var e abi.Encoder
		e.Configure(policy.NewConfig(probe.New().Settings(), c.values))
		list = append(list, golden{name: c.name, op: abi.OpConfigure, frame: written(&e)})
	}
	return list
}

// questions returns the frames of a hook.
func questions(op abi.Op) []golden {
	name := strings.TrimPrefix(abi.Exports[op], "cede_")
	name = strings.ReplaceAll(name, "_", "-")
	list := []golden{
		{name: name + "-all", frame: question(op, 3, firstColumns, nil)},
		{name: name + "-more", frame: question(op, 40, firstColumns, nil)},
		{name: name + "-empty", frame: nothing(op)},
		{name: name + "-configured", frame: question(op, 3, policy.UseColumns|policy.JobColumns, nil), after: "configure-all"},
		{name: name + "-newer", frame: newer(question(op, 3, firstColumns, nil))},
		{name: name + "-fails", frame: question(op, 2, 0, func(p *policy.Preemptor) { p.Job = "fail"; p.Namespace = "größe" })},
		{name: name + "-fails-at-length", frame: question(op, 2, 0, func(p *policy.Preemptor) {
			p.Job = "fail"
			p.Namespace = strings.Repeat("日本", 200)
		})},
		{name: name + "-fails-without-room", frame: change(question(op, 2, 0, func(p *policy.Preemptor) { p.Job = "fail" }), 64, 1<<31+8)},
	}
	if op != abi.OpPreemptBindings { // its columns are fixed
		list = append(list, golden{name: name + "-none", frame: question(op, 3, 0, nil)})
	}
	if op == abi.OpScoreVictims || op == abi.OpScoreOptions {
		frame := question(op, 3, secondColumns, nil)
		list = append(list, golden{name: name + "-budgets", frame: change(frame, 4, 1<<16|abi.Major)})
	}
	if op != abi.OpPreemptBindings {
		frame := question(op, 3, thirdColumns, nil)
		list = append(list, golden{name: name + "-relocation", frame: change(frame, 4, 3<<16|abi.Major)})
	}
	if op == abi.OpScoreOptions {
		frame := question(op, 3, probe.AllColumns, nil)
		list = append(list, golden{name: name + "-lookahead", frame: change(frame, 4, 4<<16|abi.Major)})
	}
	if op == abi.OpSelectVictims || op == abi.OpPreemptBindings {
		list = append(list, golden{name: name + "-too-many", frame: question(op, 3, 0, func(p *policy.Preemptor) { p.Job = "twice" })})
	}
	for i := range list {
		list[i].op = op
	}
	return list
}

// question returns a request with random values in the given columns. It is deterministic.
func question(op abi.Op, options int, columns policy.Columns, edit func(*policy.Preemptor)) []byte {
	r := rand.New(rand.NewPCG(41, uint64(options)))
	var e abi.Encoder
	if op == abi.OpScoreOptions {
		in := policytest.RandomOptions(r, options, 5)
		for in.Len() < options || len(in.Dims) == 0 || len(in.Preemptor.Devices) == 0 {
			in = policytest.RandomOptions(r, options, 5)
		}
		if edit != nil {
			edit(in.Preemptor)
		}
		if !columns.Has(policy.BudgetColumns) {
			in.Start = nil // since 1.1, like budgets
		}
		e.Options(in, columns)
		return written(&e)
	}
	in := policytest.RandomCandidates(r, options, 5)
	for in.Len() < options || in.Rows.Len() < options || len(in.Dims) == 0 || len(in.Preemptor.Devices) == 0 {
		in = policytest.RandomCandidates(r, options, 5)
	}
	if edit != nil {
		edit(in.Preemptor)
	}
	if op == abi.OpPreemptBindings {
		return bindingFrame(in)
	}
	e.Candidates(op, in, columns)
	return written(&e)
}

// nothing returns a request without options, rows and dimensions.
func nothing(op abi.Op) []byte {
	var e abi.Encoder
	if op == abi.OpScoreOptions {
		e.Options(&policy.Options{Preemptor: &policy.Preemptor{}, FirstVictim: []int32{0}}, firstColumns)
	} else {
		in := &policy.Candidates{Preemptor: &policy.Preemptor{}, FirstRow: []int32{0}}
		if op == abi.OpPreemptBindings {
			return bindingFrame(in)
		}
		e.Candidates(op, in, firstColumns)
	}
	return written(&e)
}

// written returns a frame as a host of version 1.0 writes it.
func written(e *abi.Encoder) []byte {
	frame := abi.Grow(nil, e.Size())
	clear(frame)
	e.Write(frame)
	return change(frame, 4, abi.Major)
}

func copyOf(b []byte) []byte { return append([]byte(nil), b...) }

func word(frame []byte, at int) uint32 { return binary.LittleEndian.Uint32(frame[at:]) }

// change overwrites a word of a frame.
func change(frame []byte, at int, value uint32) []byte {
	binary.LittleEndian.PutUint32(frame[at:], value)
	return frame
}

// newer converts a frame to one of a host with a later minor version: it has a longer
// header, entries at the end of the frame, and unknown ids, types and flags.
func newer(frame []byte) []byte {
	data := word(frame, 52) // entries follow the header, so this is its length
	for _, list := range []struct {
		count, from int
		more        [][4]uint32
	}{
		{48, 52, [][4]uint32{{0x0212, 1, data, 4}, {0x0999, 2, data, 1}, {0x2001, 9, 0xfffffff0, 0xffffffff}, {0, 0, 1, 1}}},
		{56, 60, [][4]uint32{{0x1018, 3, data, 1}, {0x10ff, 7, 3, 5}}},
	} {
		n, from := word(frame, list.count), word(frame, list.from)
		entries := copyOf(frame[from : from+n*abi.EntryLen])
		for _, e := range list.more {
			for _, w := range e {
				entries = binary.LittleEndian.AppendUint32(entries, w)
			}
		}
		change(frame, list.count, n+uint32(len(list.more)))
		change(frame, list.from, uint32(len(frame)))
		frame = append(frame, entries...)
	}
	change(frame, 4, 7<<16|abi.Major)
	change(frame, 8, 96)
	change(frame, 12, uint32(len(frame)))
	change(frame, 20, 0x80000001)
	change(frame, 72, 0xffffffff)
	return frame
}

// entryOf returns the offset of the entry of a column or an answer.
func entryOf(frame []byte, id abi.ID) int {
	for _, list := range [][2]int{{48, 52}, {56, 60}} {
		for k := range int(word(frame, list[0])) {
			if at := int(word(frame, list[1])) + k*abi.EntryLen; word(frame, at) == uint32(id) {
				return at
			}
		}
	}
	panic("the frame has no such column")
}

// column returns a damage that changes a word of an entry.
func column(id abi.ID, at int, value func(old uint32) uint32) damage {
	return func(frame []byte) []byte {
		e := entryOf(frame, id)
		return change(frame, e+at, value(word(frame, e+at)))
	}
}

func header(at int, value uint32) damage {
	return func(frame []byte) []byte { return change(frame, at, value) }
}

func to(value uint32) func(uint32) uint32 { return func(uint32) uint32 { return value } }
func by(n uint32) func(uint32) uint32     { return func(old uint32) uint32 { return old + n } }

// damages make a valid frame invalid.
var damages = []struct {
	name string
	do   damage
}{
	{"magic", header(0, 0x45444544)},
	{"major", header(4, 2)},
	{"no-header", func(frame []byte) []byte { return frame[:79] }},
	{"truncated", func(frame []byte) []byte { return frame[:len(frame)-8] }},
	{"header-length", header(8, 72)},
	{"frame-length-short", header(12, 79)},
	{"frame-length-huge", header(12, 0xfffffff0)},
	{"operation", header(16, uint32(abi.OpSelectVictims))},
	{"operation-unknown", header(16, 99)},
	{"options", header(32, 0xffffffff)},
	{"rows", header(36, 0xffffffff)},
	{"dimensions", header(40, 1025)},
	{"requests", header(44, 1025)},
	{"columns-count", header(48, 0x10000005)},
	{"columns-outside", header(52, 0xfffffff0)},
	{"answers-count", header(56, 0x10000003)},
	{"answers-outside", header(60, 0x80000000)},
	{"column-misaligned", column(abi.RowPriority, 8, by(4))},
	{"column-outside", column(abi.RowPriority, 8, to(0xfffffff8))},
	{"column-negative", column(abi.RowPriority, 8, to(0x80000000))},
	{"column-count", column(abi.RowPriority, 12, by(1))},
	{"column-count-overflow", column(abi.Need, 12, func(old uint32) uint32 { return old + 1<<29 })},
	{"column-type", column(abi.RowPriority, 4, to(uint32(abi.F64)))},
	{"column-type-unknown", column(abi.RowPriority, 4, to(9))},
	{"unknown-column-outside", column(abi.RowStart, 0, to(0x0999)).then(column(0x0999, 8, to(0xfffffff8)))},
	{"missing-priorities", column(abi.RowPriority, 0, to(0x0999))},
	{"missing-rows", column(abi.FirstRow, 0, to(0x0999))},
	{"missing-need", column(abi.Need, 0, to(0x0999))},
	{"missing-ask", column(abi.PreemptorAsk, 0, to(0x0999))},
	{"missing-devices", column(abi.DeviceAskCount, 0, to(0x0999))},
	{"missing-answer", column(abi.AnswerTier, 0, to(0x10ff))},
	{"missing-recheck", column(abi.AnswerRecheck, 0, to(0x10ff))},
	{"answer-count", column(abi.AnswerScore, 12, by(0xffffffff))},
	{"answer-type", column(abi.AnswerScore, 4, to(uint32(abi.I64)))},
	{"answer-outside", column(abi.AnswerScore, 8, to(0xfffffff8))},
	{"rows-begin-late", element(abi.FirstRow, 0, 1)},
	{"rows-fall", element(abi.FirstRow, 1, 0xffffffff)},
	{"rows-end-late", element(abi.FirstRow, 3, 0x7fffffff)},
	{"labels-fall", element(abi.RowLabelFirst, 1, 0x80000000)},
	{"labels-unpaired", column(abi.RowLabelValue, 12, by(0xffffffff))},
}

// budgetDamages apply to frames with budgets.
var budgetDamages = []struct {
	name string
	do   damage
}{
	{"budgets-fall", element(abi.RowBudgetFirst, 1, 0x80000000)},
	{"budgets-unknown", element(abi.RowBudget, 0, 0x7fffffff)},
	{"budgets-negative", element(abi.RowBudget, 0, 0xffffffff)},
	{"budgets-unpaired", column(abi.BudgetStrict, 12, by(0xffffffff))},
}

// element returns a damage that changes an element of a column of words.
func element(id abi.ID, k int, value uint32) damage {
	return func(frame []byte) []byte { return change(frame, int(word(frame, entryOf(frame, id)+8))+4*k, value) }
}

type damage func([]byte) []byte

// then returns a damage that applies d and then next.
func (d damage) then(next damage) damage {
	return func(frame []byte) []byte { return next(d(frame)) }
}
