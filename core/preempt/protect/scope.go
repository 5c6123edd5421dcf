package protect

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// AnyNode is a position that no node has. IsAffinityTarget accepts it.
const AnyNode = -1

// AffinityRules reports which rows a group depends on.
type AffinityRules interface {
	// IsAffinityTarget reports whether the group is allowed on the node at pos because of
	// a row there, or may be once others there have left. With AnyNode it reports whether
	// that may be the case on some node.
	IsAffinityTarget(pos int32, row *state.Row) bool
}

// A Scope holds the values that all parts of one search read: its preemptor, its snapshot
// and the limits that follow from both. Only Blocking is written while workers run, each slot
// by the worker that evaluates its node.
type Scope struct {
	Snap *state.Snapshot
	// Committed is the state without the plan; nil: evictions of the plan last as well.
	Committed *state.Snapshot
	Group     *model.Group // that evictions make capacity for
	Now       int64
	// Ceiling is the highest priority that may be evicted.
	Ceiling int64
	// Excluded are allocations that are never candidates; nil: none.
	Excluded map[*model.Allocation]bool
	Order    tiebreak.Order
	Affinity AffinityRules // nil: no rules

	Dims    fit.Dims // that the search tracks
	Budgets Budgets
	Strict  bool // some budgets are strict
	// Blocking is one more than the position of the strict budget that kept a candidate
	// on the node of a slot; 0 if none did. It is empty unless Strict.
	Blocking []int32
}

// Findings hold the results of a search besides its options.
type Findings struct {
	// NonFinal is set if something other than the nodes' capacity and time prevented an
	// eviction: a strict budget, or an allocation on another node.
	NonFinal bool
	Recheck  sdk.Recheck // the earliest time at which the result may differ
}

// Merge adds the findings of another part of the search.
func (f *Findings) Merge(other *Findings) {
	f.NonFinal = f.NonFinal || other.NonFinal
	f.MergeRecheck(other.Recheck)
}

// MinRecheck is the minimum delay of a recheck that a policy requests, in nanoseconds. A
// policy that always requests the next nanosecond would otherwise cause an endless sequence
// of evaluations.
const MinRecheck = int64(time.Second)

// PolicyRecheck returns the time at which a policy is called again that requests r in a call
// at the time now, or 0 if it requests no time in the future.
func PolicyRecheck(r sdk.Recheck, now int64) int64 {
	if t := r.Time(); t > now {
		return max(t, now+MinRecheck)
	}
	return 0
}

// MergePolicyRecheck adds the recheck time that a policy requests in a call at the time now.
func (f *Findings) MergePolicyRecheck(r sdk.Recheck, now int64) {
	if t := PolicyRecheck(r, now); t != 0 {
		f.Recheck.At(t)
	}
}

// MergeRecheck adds a recheck time, unless it is unset.
func (f *Findings) MergeRecheck(r sdk.Recheck) {
	if t := r.Time(); t != 0 {
		f.Recheck.At(t)
	}
}
