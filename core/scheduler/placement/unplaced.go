package placement

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Unplaced lists the instances that an evaluation could not place, and the changes
// that could unblock it.
type Unplaced struct {
	// Failed and Queued hold, by group, why instances could not be placed and how many.
	Failed map[string]*model.Explanation
	Queued map[string]int
	// Classes holds, by key, whether a node class could unblock the evaluation.
	Classes map[uint64]bool
	// Escaped is set if changes of any node class could unblock it.
	Escaped      bool
	BlockedNodes []string // IDs of nodes that could unblock a system job
	RecheckAt    int64    // when the policy is to be called again; 0: never
	SearchesCut  int      // searches that ended at a bound before they had tried everything

	merged []*classSet // already in Classes
}

// IsEmpty reports whether everything was placed.
func (u *Unplaced) IsEmpty() bool { return len(u.Failed) == 0 }

// RecheckBy lowers RecheckAt to a time in Unix nanoseconds; 0: no effect.
func (u *Unplaced) RecheckBy(at int64) {
	if at != 0 && (u.RecheckAt == 0 || at < u.RecheckAt) {
		u.RecheckAt = at
	}
}

// addClasses records which node classes could unblock one more group. A class that
// some group has not checked may be feasible for it, so a class counts as
// infeasible only if every group found it so.
func (u *Unplaced) addClasses(classes map[uint64]bool, escaped bool) {
	u.Escaped = u.Escaped || escaped
	if u.Classes == nil {
		u.Classes = maps.Clone(classes)
		return
	}
	for key, feasible := range u.Classes {
		if other, checked := classes[key]; !checked && !feasible {
			delete(u.Classes, key)
		} else {
			u.Classes[key] = feasible || other
		}
	}
	for key, feasible := range classes {
		if feasible {
			u.Classes[key] = true
		}
	}
}

// addCached is addClasses for a group with a cached failure. Many groups of a
// job share a class set, which is then merged once.
func (u *Unplaced) addCached(f *failure) {
	if slices.Contains(u.merged, f.classes) {
		u.Escaped = u.Escaped || f.escaped
		return
	}
	u.merged = append(u.merged, f.classes)
	u.addClasses(f.classes.feasible, f.escaped)
}
