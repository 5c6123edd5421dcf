package bound

import (
	"math"
	"slices"
)

// Infinite is the bound of a problem that has no answer.
const Infinite = math.MaxInt64

// A Problem is one decision: instances of several groups are placed on nodes, and
// victims are evicted until everything fits. Its cost is the sum over the victims.
type Problem struct {
	// Counts holds the number of instances to place, by group.
	Counts []int
	Nodes  []Node
	// Cohorts are evicted as a whole or not at all.
	Cohorts []Cohort
	// Budgets holds the number of evictions that each strict budget allows; at least 0.
	Budgets []int
	// OneDomain requires that all instances are placed in one domain.
	OneDomain bool
}

// A Node is a place for instances. Amounts are by dimension: resources, device groups and
// ports are treated alike.
type Node struct {
	ID     string
	Free   []int64 // may be negative
	Domain int     // negative: the node is in no domain
	// Options holds, by group, the ways in which one instance uses the node, each as
	// amounts by dimension. A group without options cannot be placed on the node.
	Options [][][]int64
	// Limit is the maximum number of instances by group.
	Limit []int
	// Conflicts holds, by group, the positions of victims that must be evicted if an
	// instance of the group is placed on the node.
	Conflicts [][]int
	Victims   []Victim
}

// A Victim is an allocation that may be evicted.
type Victim struct {
	ID    string
	Frees []int64
	// Cost is at least 0. Invariant: it is 0 for members of cohorts, which have one cost.
	Cost    int64
	Cohort  int   // position in Problem.Cohorts; negative: none
	Budgets []int // positions in Problem.Budgets that an eviction is charged to
	// MustMove is set if the allocation may be moved, but not evicted. The problem does not
	// contain the place that it would need.
	MustMove bool
}

// A Cohort is a set of victims that are evicted together, on any nodes.
type Cohort struct {
	Cost int64 // of all members
}

// An Answer is a set of placements and victims.
type Answer struct {
	// Placed holds the number of instances by group, by node; without nodes that have none.
	Placed  map[string][]int `json:"placed"`
	Victims []string         `json:"victims"` // ascending
}

// Causes of results that are not exact.
const (
	CauseSteps  = "the search ended at its limit of steps"
	CauseGroups = "the combinations of instances are too many for one search, so that each group was bounded alone"
)

// A Result is the result of a search.
type Result struct {
	// Lower is a lower bound on the cost of every answer; Infinite: there is no answer.
	Lower int64
	// Exact reports that Lower is the cost of Answer, or that there is no answer.
	Exact  bool
	Answer *Answer // nil unless Exact and Lower is finite
	// Cause is why the result is not exact; "": it is.
	Cause string
	Steps int64 // of the search; deterministic
}

// moves reports whether an answer needs places for moved instances; nil: it does not.
func (p *Problem) moves(a *Answer) bool {
	if a == nil {
		return false
	}
	for i := range p.Nodes {
		for k := range p.Nodes[i].Victims {
			v := &p.Nodes[i].Victims[k]
			if _, leaves := slices.BinarySearch(a.Victims, v.ID); leaves && v.MustMove {
				return true
			}
		}
	}
	return false
}

// position identifies a victim.
type position struct{ node, victim int }

// decision is the value of a branching decision about a victim or a cohort.
type decision int8

const (
	undecided decision = iota
	evicted
	spared
)
