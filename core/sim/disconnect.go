package sim

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// disconnected holds events on nodes that are down and may return. They take effect
// when the node returns.
type disconnected struct {
	ends   map[string][]end    // by node, in order
	starts map[string][]string // allocations that may start
}

func newDisconnected() disconnected { return disconnected{map[string][]end{}, map[string][]string{}} }

// retainEnd retains an end until the node of its allocation returns. It returns false if the node is connected.
func (e *engine) retainEnd(a *model.Allocation, due end) bool {
	if !a.Unknown(e.store.Snapshot().Node(a.NodeID)) {
		return false
	}
	e.disconnected.ends[a.NodeID] = append(e.disconnected.ends[a.NodeID], due)
	return true
}

// reachable returns the allocations whose nodes can start them now; the others start
// when their nodes return.
func (e *engine) reachable(ids []string) []string {
	snap := e.store.Snapshot()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		a := snap.Alloc(id)
		if a == nil || !a.Unknown(snap.Node(a.NodeID)) {
			return false
		}
		e.disconnected.starts[a.NodeID] = append(e.disconnected.starts[a.NodeID], id)
		return true
	})
}

// returned applies the retained events of a node that returns.
func (e *engine) returned(nodeID string) {
	for _, due := range e.disconnected.ends[nodeID] {
		e.timers.add(e.now(), due.alloc, due.stop)
	}
	starts := e.disconnected.starts[nodeID]
	delete(e.disconnected.ends, nodeID)
	delete(e.disconnected.starts, nodeID)
	e.start(starts...)
}
