package lookahead

import (
	"github.com/cede-scheduler/cede/core/model"
)

// A slot identifies an instance through all its replacements.
type slot struct {
	group model.JobKey
	name  string
	index int
	node  string // of a job that runs once per node; otherwise ""
}

func slotOf(a *model.Allocation) slot {
	s := slot{group: a.Job.Key(), name: a.Group.Name, index: a.Index}
	if a.Job.Type.PerNode() {
		s.index, s.node = 0, a.NodeID
	}
	return s
}

// A ledger sums up the evictions of a play. Chains are counted as core/sim/metrics counts
// them.
type ledger struct {
	model.Outlook
	// absent holds the evicted instances that do not run, and since when.
	absent map[slot]int64
	// depths holds the depth of the last eviction of an instance that has not been placed
	// since.
	depths map[slot]int32
}

func newLedger() ledger { return ledger{absent: map[slot]int64{}, depths: map[slot]int32{}} }

// committed records the evictions of a commit group. alloc returns an allocation in the
// state before.
func (l *ledger) committed(now int64, g *model.CommitGroup, alloc func(id string) *model.Allocation) {
	chains := make(map[string]int32, len(g.Placements)) // by placement
	for _, a := range g.Placements {
		s := slotOf(a)
		chains[a.ID] = l.depths[s] + 1
		delete(l.depths, s)
	}
	for _, e := range g.Evictions {
		victim := alloc(e.AllocID)
		if victim == nil || !victim.Live() {
			continue
		}
		s, depth := slotOf(victim), max(1, chains[e.By])
		l.LostWork += victim.Group.LostWork(victim.Age(now))
		l.Depth, l.depths[s] = max(l.Depth, depth), depth
		if _, isAbsent := l.absent[s]; !isAbsent { // an instance may be evicted before it has started
			l.absent[s] = now
		}
	}
}

// started records the start of an allocation.
func (l *ledger) started(now int64, a *model.Allocation) {
	s := slotOf(a)
	if since, ok := l.absent[s]; ok {
		l.Delay += now - since
		delete(l.absent, s)
	}
}

// outlook returns the sums. Instances that do not run count until the horizon.
func (l *ledger) outlook(horizon int64) model.Outlook {
	o := l.Outlook
	for _, since := range l.absent { // sums of whole numbers: any order
		o.Delay += horizon - since
	}
	return o
}
