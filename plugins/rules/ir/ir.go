package ir

import (
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Op is the operation of a node.
type Op uint8

// The operations. Arguments of arithmetic and comparisons have one type, unless noted.
const (
	Const Op = iota + 1
	Now
	Load    // Field
	LoadMap // Map[Key]
	HasKey  // whether Map has Key
	Neg
	Add // also timestamp + duration
	Sub // also timestamp - duration, and timestamp - timestamp
	Mul // also duration * int and duration * double, in this order
	Div // also duration / duration, a double
	Mod
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	And
	Or
	Not
	Cond // Args[0] ? Args[1] : Args[2]
	In   // Args[0] is equal to one of the others, which are constants
	StartsWith
	EndsWith
	Contains
	ToInt    // from double, towards zero
	ToDouble // from int
	Whole    // the whole number of units of N nanoseconds in a duration, towards zero
	Min
	Max
	Abs
	Floor
	Ceil
	Sqrt
	Exp
	Log
	Pow
)

// A Node is an expression.
type Node struct {
	Op   Op
	Type schema.Type
	Args []*Node

	N     int64   // value of a whole constant, or of a bool as 0 or 1; unit of Whole
	X     float64 // value of a double constant
	Text  string  // value of a string constant
	Field int     // index in schema.Fields or schema.Maps
	Key   string
}

// A Program is a rule policy.
type Program struct {
	Name     string
	Delta    int32
	Eligible *Node   // nil: the rules of default
	Order    []*Node // the lowest value is evicted first; empty: the rules of default
	Option   []*Node // the lowest value is the best; empty: the rules of default
}

// MaxOptionEntries is the number of tiers of an option.
const MaxOptionEntries = 4

// MaxOrderEntries bounds the memory of a sort.
const MaxOrderEntries = 8

// Walk calls visit for a node and all nodes beneath it.
func (n *Node) Walk(visit func(*Node)) {
	visit(n)
	for _, a := range n.Args {
		a.Walk(visit)
	}
}

// Roots returns all expressions of the program.
func (p *Program) Roots() []*Node {
	var list []*Node
	if p.Eligible != nil {
		list = append(list, p.Eligible)
	}
	return append(append(list, p.Order...), p.Option...)
}

// Columns returns the columns that the program reads. An expression that excludes a
// candidate requires the shared tables: the host offers the candidate again when they
// change, but not when the totals alone change.
func (p *Program) Columns() policy.Columns {
	var all policy.Columns
	for _, root := range p.Roots() {
		root.Walk(func(n *Node) { all |= n.columns(root == p.Eligible) })
	}
	return all
}

func (n *Node) columns(excludes bool) policy.Columns {
	var c policy.Columns
	switch n.Op {
	case Now:
		return policy.TimeColumns
	case Load:
		c = schema.Fields[n.Field].Columns
	case LoadMap, HasKey:
		c = schema.Maps[n.Field].Columns
	}
	if excludes && c.Has(policy.TotalsColumn) {
		c |= policy.SharedTables
	}
	return c
}

// Info returns the description of the policy.
func (p *Program) Info() policy.Info {
	return policy.Info{Name: p.Name, Delta: p.Delta, Columns: p.Columns(), Ascending: p.ascending(), Monotone: p.monotone()}
}

// ascending reports whether victims are evicted by ascending priority before all else.
func (p *Program) ascending() bool { return len(p.Order) > 0 && p.Order[0].is("victim.priority") }

// monotone reports whether the entries of option are sums over victims that do not fall
// when a victim is added.
func (p *Program) monotone() bool {
	for _, e := range p.Option {
		if !e.is("option.highestPriority") && !e.is("option.victims") && !e.is("option.budgetViolations") && !e.is("option.lostWork") {
			return false
		}
	}
	return len(p.Option) > 0
}

// is reports whether a node is the field with a name.
func (n *Node) is(name string) bool { return n.Op == Load && schema.Fields[n.Field].Name == name }

// Sorted reports whether the entries of order are written as whole numbers, which the
// runtime sorts unless they fit into the tier and the score of a candidate.
func (p *Program) Sorted() bool {
	return len(p.Order) > 2 || len(p.Order) == 2 && p.Order[1].Type != schema.Double
}
