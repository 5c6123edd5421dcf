package link

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// A HookFuel is an upper bound of the fuel of a hook, in ticks.
type HookFuel struct {
	// Row is the fuel for each candidate, and Option that for each option, without its
	// candidates. score_options has no candidates.
	Row, Option int
	Entries     []int // the part of each entry of order or option
}

// Fuel is the fuel of the hooks for eligible, order and option. With FixedFuel for each call,
// it bounds the fuel of any call, whatever the values, texts and labels in its frame are: see
// ADR 0093. It does not count what follows from the number of namespaces, and of budgets
// beyond MaxBudgets for each candidate.
type Fuel [3]HookFuel

// MaxBudgets is the number of budgets of a candidate for which fuel is reserved.
const MaxBudgets = 16

// FixedFuel is the fuel of a call that does not depend on its number of rows: that for
// decoding the header of a frame, for finding keys in brackets, and for values that are the
// same for all rows.
const FixedFuel = 10_000_000

// FuelOf returns the fuel of a program, or an error if it cannot be linked.
func FuelOf(p *ir.Program) (*Fuel, error) {
	_, fuel, err := link(p)
	return fuel, err
}

// The ticks of the functions of runtime.c, with the entry into the function. Tests compare
// them with calls about the texts and labels that take most.
const (
	textTicks = 60
	nameTicks = 900
	sameTicks = 60
	// searchTicks are those of rule_contains besides the positions that it examines.
	searchTicks = 350
)

// transcendental holds the ticks of functions without loops: the number of their instructions.
var transcendental = map[ir.Op]int{ir.Exp: 200, ir.Log: 200, ir.Pow: 500}

// bytesTicks returns the ticks for the comparison of n bytes, by words of 8 if possible.
func bytesTicks(n int) int {
	if n < 8 {
		return 25 + 16*n
	}
	return 30 + 18*((n+7)/8)
}

// partTicks returns the ticks for the comparison of a text with a part of another one that is
// as long. A text that may be shorter than 8 bytes may take more than a longer one.
func partTicks(of, text *ir.Node) int {
	n := min(longest(of), longest(text))
	if text.Op == ir.Const {
		return bytesTicks(n)
	}
	return max(bytesTicks(n), bytesTicks(min(n, 7)))
}

// labelTicks returns the ticks for a binary search of schema.MaxLabels labels by a key of n
// bytes.
func labelTicks(n int) int {
	return 110 + bits.Len(schema.MaxLabels)*(120+18*min(n, 8)+22*(n/8))
}

// search calls the function of a search for the second argument in the first one.
func (f *function) search(n *ir.Node) {
	of, what := longest(n.Args[0]), longest(n.Args[1])
	switch {
	case n.Op == ir.StartsWith:
		f.call("rule_starts", sameTicks+partTicks(n.Args[0], n.Args[1]))
	case n.Op == ir.EndsWith:
		f.call("rule_ends", sameTicks+partTicks(n.Args[0], n.Args[1]))
	case n.Args[1].Op == ir.Const:
		f.call("rule_contains", searchTicks+positionsTicks(of, what, period(n.Args[1].Text)))
	default:
		most := 0
		for length := range min(of, what) + 1 {
			most = max(most, positionsTicks(of, length, 1))
		}
		f.call("rule_contains", searchTicks+most)
	}
}

// positionsTicks returns the ticks of a search for a text of some length in another one. All
// of the text is compared at the positions at which its first 8 bytes are found. They cannot
// be nearer to each other than the period of these bytes.
func positionsTicks(of, length, period int) int {
	positions := max(0, of-length+1)
	ticks := 15 * positions
	if length > 8 {
		ticks += (positions + period - 1) / period * (60 + bytesTicks(length))
	}
	return ticks
}

// period returns the least distance at which the first 8 bytes of a text can recur.
func period(text string) int {
	text = text[:min(8, len(text))]
	for p := 1; p < len(text); p++ {
		if text[p:] == text[:len(text)-p] {
			return p
		}
	}
	return max(1, len(text))
}

// call calls a function of the runtime that takes the given ticks at most.
func (f *function) call(function string, ticks int) {
	f.Call(f.functions[function])
	f.Charge(ticks)
}

// longest returns the maximum length of a text in bytes.
func longest(n *ir.Node) int {
	switch n.Op {
	case ir.Const:
		return len(n.Text)
	case ir.Cond:
		return max(longest(n.Args[1]), longest(n.Args[2]))
	}
	return schema.MaxText
}

// Ticks of the runtime for each row, besides those of the functions of rules.
const (
	rowTicks    = 60 // memory that grows, and the check of the positions of labels
	shareTicks  = 40 + 14*model.MaxDimensions
	ownerTicks  = 60
	budgetTicks = 28 * MaxBudgets // for decoding
	slackTicks  = 80 + 34*MaxBudgets
	optionTicks = 150
)

// total returns the fuel of the hooks: that of the functions of rules and of the runtime.
func (l *linker) total() *Fuel {
	fuel := l.fuel
	for hook := range fuel {
		fuel[hook].Option += optionTicks
	}
	for hook := range fuel[:2] {
		row := rowTicks
		if l.program.Columns().Has(policy.BudgetColumns) {
			row += budgetTicks
		}
		for name, ticks := range map[string]int{"victim.share": shareTicks, "victim.namespaceShare": ownerTicks, "victim.budgetSlack": slackTicks} {
			if l.used[hook]>>schema.Lookup(name)&1 == 1 {
				row += ticks
			}
		}
		fuel[hook].Row += row
	}
	if l.program.Sorted() {
		fuel[1].Row += sortTicks(len(l.program.Order))
	}
	return &fuel
}

// sortTicks returns the ticks for sorting, for each row: those of its part in each merge of
// lists, of which there are 17 for 131,072 rows.
func sortTicks(entries int) int { return 100 + 17*(60+30*entries) }
