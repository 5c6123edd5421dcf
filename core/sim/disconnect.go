package sim

import (
	"slices"

	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// disconnected holds events on nodes that are down and may return. They take effect
// when the node returns.
type disconnected struct {
	ends   map[string][]lifetime.End // by node, in order
	starts map[string][]string       // allocations that may start
}

func newDisconnected() disconnected {
	return disconnected{map[string][]lifetime.End{}, map[string][]string{}}
}

// retainEnd retains an end until the node of its allocation returns. It returns false
// if the node is connected.
func (d *disconnected) retainEnd(snap *state.Snapshot, a *model.Allocation, due lifetime.End) bool {
	if !a.Unknown(snap.Node(a.NodeID)) {
		return false
	}
	d.ends[a.NodeID] = append(d.ends[a.NodeID], due)
	return true
}

// reachable returns the allocations whose nodes can start them now; the others start
// when their nodes return.
func (d *disconnected) reachable(snap *state.Snapshot, ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		a := snap.Alloc(id)
		if a == nil || !a.Unknown(snap.Node(a.NodeID)) {
			return false
		}
		d.starts[a.NodeID] = append(d.starts[a.NodeID], id)
		return true
	})
}

// release removes and returns the retained events of a node.
func (d *disconnected) release(nodeID string) (ends []lifetime.End, starts []string) {
	ends, starts = d.ends[nodeID], d.starts[nodeID]
	delete(d.ends, nodeID)
	delete(d.starts, nodeID)
	return ends, starts
}

// returned applies the retained events of a node that returns.
func (e *engine) returned(nodeID string) {
	ends, starts := e.disconnected.release(nodeID)
	for _, due := range ends {
		e.timers.Add(lifetime.End{At: e.now(), Alloc: due.Alloc, Stop: due.Stop})
	}
	e.start(starts...)
}
