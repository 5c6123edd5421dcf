package columns

import (
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// An Entry is an option in a call to a policy: a node, and a way of serving the
// group's device requests there.
type Entry struct {
	fit.Node
	Option int32   // position among the search's options
	Pos    int32   // of the node
	Slot   int32   // position of the node in the request's nodes
	Choice []int16 // device group for each device request

	// Separated counts the rows that the group must not run next to, candidates or not.
	Separated int32
	// Guarded is set if rows may be protected by more than their priority.
	// Invariant: otherwise all candidates are rows of the node.
	Guarded bool
	// HasSeparation is set if some rows of the node may exclude the group.
	HasSeparation bool
	// AmountsOnly is set if amounts alone decide whether the group fits.
	AmountsOnly bool
	// ShowAll is set if all candidates have to be shown, as together they would overrun
	// a budget.
	ShowAll bool
	Limits  *Limits // nil: none

	// KeptFrom and KeptCount delimit the option's victims in the worker's list of kept
	// victims, after verification.
	KeptFrom, KeptCount int32
}

// Limits hold values that only few options need: rows of other nodes, and the state of
// repeated calls about the option.
type Limits struct {
	Remote  []*state.Row // on other nodes, and must leave; ascending by priority
	Blocked []*state.Row // candidates that the policy chose and strict budgets kept
	All     []*state.Row // every candidate, if the policy limits candidates itself
}

// Home returns the position of a candidate's node.
func (e *Entry) Home(row *state.Row) int32 {
	if e.Guarded {
		return row.Alloc.NodePos
	}
	return e.Pos
}

// Remote returns the rows of other nodes that must leave.
func (e *Entry) Remote() []*state.Row {
	if e.Limits == nil {
		return nil
	}
	return e.Limits.Remote
}
