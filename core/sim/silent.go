package sim

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// silent holds what happens on nodes that are down and may return: nobody hears of it
// before.
type silent struct {
	ends   map[string][]end    // by node, in order
	starts map[string][]string // allocations that may begin to work
}

func newSilent() silent { return silent{map[string][]end{}, map[string][]string{}} }

// unheard keeps an end for when the node of its allocation returns. False: it is heard.
func (e *engine) unheard(a *model.Allocation, due end) bool {
	if !a.Unknown(e.store.Snapshot().Node(a.NodeID)) {
		return false
	}
	e.silent.ends[a.NodeID] = append(e.silent.ends[a.NodeID], due)
	return true
}

// heard is the allocations whose nodes may begin to work on them now; the others begin
// when their nodes return.
func (e *engine) heard(ids []string) []string {
	snap := e.store.Snapshot()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		a := snap.Alloc(id)
		if a == nil || !a.Unknown(snap.Node(a.NodeID)) {
			return false
		}
		e.silent.starts[a.NodeID] = append(e.silent.starts[a.NodeID], id)
		return true
	})
}

// returned lets a node tell what became of its work meanwhile, and go on.
func (e *engine) returned(nodeID string) {
	for _, due := range e.silent.ends[nodeID] {
		e.agenda.add(e.now(), due.alloc, due.stop)
	}
	starts := e.silent.starts[nodeID]
	delete(e.silent.ends, nodeID)
	delete(e.silent.starts, nodeID)
	e.start(starts...)
}
