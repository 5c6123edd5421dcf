package codec

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A Part is an encoded entry that holds all or some of an entry. Parts are applied in
// order, as entries of their own: a failure between them leaves the earlier ones in
// effect.
type Part struct {
	Data  []byte
	plans []int // positions in the batch of the part's plans; nil: all
}

// Join adds the result of a part to the result of the parts before it. The first
// refusal is kept. Dropped groups are translated to positions in the whole batch.
func (p *Part) Join(whole, r *replication.Result) {
	whole.Index, whole.Replayed = r.Index, r.Replayed
	if whole.Err == nil {
		whole.Err = r.Err
	}
	whole.Evals = append(whole.Evals, r.Evals...)
	whole.Freed, whole.Left = append(whole.Freed, r.Freed...), append(whole.Left, r.Left...)
	whole.Returned = append(whole.Returned, r.Returned...)
	whole.Placed = append(whole.Placed, r.Placed...)
	for _, d := range r.Dropped {
		whole.Dropped = append(whole.Dropped, apply.DroppedGroup{Plan: p.plans[d.Plan], Group: d.Group})
	}
}

// A splitter splits an entry that is too large.
type splitter struct {
	entry *replication.Entry
	size  int // in bytes, encoded
	snap  *state.Snapshot
	// encode is Encode. The table of commands refers to splitters and Encode to the
	// table, so that a direct call would be an initialization cycle.
	encode func(*replication.Entry) []byte
}

// A splitFunc returns the parts of an entry, or replication.ErrTooLarge.
type splitFunc func(*splitter) ([]Part, error)

// Split encodes an entry. An entry that exceeds replication.MaxEntry becomes several if
// its command can be split and it has no idempotency key: a key stands for one entry.
// Otherwise Split returns replication.ErrTooLarge. The usual entry is encoded once and
// fits. snap is read only to find the nodes of stopped and evicted allocations.
func Split(e *replication.Entry, snap *state.Snapshot) ([]Part, error) {
	data := Encode(e)
	if len(data) <= replication.MaxEntry {
		return []Part{{Data: data}}, nil
	}
	s := &splitter{entry: e, size: len(data), snap: snap, encode: Encode}
	if e.Key != "" {
		return indivisible(s)
	}
	return commands.Of(e.Command).split(s)
}

// tooLarge returns an error that wraps replication.ErrTooLarge.
func tooLarge(what string, size int) error {
	return fmt.Errorf("%w: %s has %d bytes, the limit is %d", replication.ErrTooLarge, what, size, replication.MaxEntry)
}

// part encodes an entry with another command. The time is that of the whole entry, so
// that the parts result in the same timestamps.
func (s *splitter) part(c replication.Command) Part {
	return Part{Data: s.encode(&replication.Entry{Time: s.entry.Time, Hash: s.entry.Hash, Command: c})}
}

// indivisible is the splitFunc of commands that take effect as a whole.
func indivisible(s *splitter) ([]Part, error) { return nil, tooLarge("entry", s.size) }

// splitEvals splits a write of evaluations. Each takes effect by itself.
func splitEvals(s *splitter) ([]Part, error) {
	return splitList(s, s.entry.Command.(*replication.WriteEvals).Evals, func(evals []*model.Evaluation) replication.Command {
		return &replication.WriteEvals{Evals: evals}
	})
}

// splitUpdates splits a node's reports. Each takes effect by itself.
func splitUpdates(s *splitter) ([]Part, error) {
	return splitList(s, s.entry.Command.(*replication.UpdateAllocs).Updates, func(updates []apply.ClientUpdate) replication.Command {
		return &replication.UpdateAllocs{Updates: updates}
	})
}

// splitList halves a list of independent elements until the parts fit. Halving encodes
// each element at most log2(n) times. A part depends on no other, so their order does
// not matter.
func splitList[T any](s *splitter, list []T, command func([]T) replication.Command) ([]Part, error) {
	p := s.part(command(list))
	switch {
	case len(p.Data) <= replication.MaxEntry:
		return []Part{p}, nil
	case len(list) <= 1:
		return nil, tooLarge("list element", len(p.Data))
	}
	head, err := splitList(s, list[:len(list)/2], command)
	if err != nil {
		return nil, err
	}
	tail, err := splitList(s, list[len(list)/2:], command)
	return append(head, tail...), err
}

// A groupRef is a commit group: the positions of its plan and of the group in it.
type groupRef struct{ plan, group int }

// splitPlans keeps commit groups together that touch the same node or cluster: a
// placement may need the capacity that another group frees, and must not be written
// without it. It returns ErrTooLarge if one set of dependent groups alone is too large.
func splitPlans(s *splitter) ([]Part, error) {
	b := s.entry.Command.(*replication.ApplyPlans).Batch
	if b == nil {
		return indivisible(s)
	}
	return s.pack(b, components(b, s.snap))
}

// pack halves a list of components until the parts fit. The parts are applied in
// order, so that results can be joined.
func (s *splitter) pack(b *apply.Batch, list [][]groupRef) ([]Part, error) {
	p := s.planPart(b, list)
	switch {
	case len(p.Data) <= replication.MaxEntry:
		return []Part{p}, nil
	case len(list) <= 1:
		return nil, tooLarge("set of dependent commit groups", len(p.Data))
	}
	half := len(list) / 2
	first := *b
	first.Ineligible = nil // the last part alone holds it, so that it is applied once
	head, err := s.pack(&first, list[:half])
	if err != nil {
		return nil, err
	}
	tail, err := s.pack(b, list[half:])
	return append(head, tail...), err
}

// planPart encodes the commit groups of some components, in the batch's order.
func (s *splitter) planPart(b *apply.Batch, list [][]groupRef) Part {
	groups := slices.Concat(list...)
	slices.SortFunc(groups, func(x, y groupRef) int {
		if x.plan != y.plan {
			return x.plan - y.plan
		}
		return x.group - y.group
	})
	plans := []int{}
	part := &apply.Batch{Now: b.Now, Ineligible: b.Ineligible}
	for _, g := range groups {
		if k := len(plans); k == 0 || plans[k-1] != g.plan {
			plans = append(plans, g.plan)
			part.Plans = append(part.Plans, apply.BatchPlan{Plan: b.Plans[g.plan].Plan})
		}
		last := &part.Plans[len(part.Plans)-1]
		last.Groups = append(last.Groups, g.group)
	}
	p := s.part(&replication.ApplyPlans{Batch: part})
	p.plans = plans
	return p
}

// components returns the sets of commit groups that depend on each other through a node
// or a cluster, in order of the first group of each. It is a union-find over the groups
// in which the lowest position is the root. It costs a pass over the changes of the
// batch, and nearly constant time for each union.
func components(b *apply.Batch, snap *state.Snapshot) [][]groupRef {
	var groups []groupRef
	var parent []int
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	touched := map[string]int{} // by node or cluster: the last group that touches it
	for p := range b.Plans {
		for _, g := range b.Plans[p].Groups {
			at := len(groups)
			groups, parent = append(groups, groupRef{p, g}), append(parent, at)
			for _, id := range locations(&b.Plans[p].Plan.Groups[g], snap) {
				if other, ok := touched[id]; ok {
					x, y := root(other), root(at)
					parent[max(x, y)] = min(x, y)
				}
				touched[id] = at
			}
		}
	}
	var sets [][]groupRef
	number := map[int]int{} // position in sets by root
	for i, g := range groups {
		at, ok := number[root(i)]
		if !ok {
			at = len(sets)
			number[root(i)] = at
			sets = append(sets, nil)
		}
		sets[at] = append(sets[at], g)
	}
	return sets
}

// locations returns the nodes and clusters that a commit group touches. Stops and
// evictions refer to allocations by ID; snap is the state from which their nodes are
// known. An ID that is unknown there was deleted and has no effect.
func locations(g *model.CommitGroup, snap *state.Snapshot) (ids []string) {
	nodeOf := func(id string) {
		if a := snap.Alloc(id); a != nil {
			ids = append(ids, a.NodeID)
		}
	}
	for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
		for _, a := range list {
			ids = append(ids, a.NodeID)
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID != "" {
			ids = append(ids, model.ClusterLocation(c.ClusterID))
			continue
		}
		ids = append(ids, c.NodeID)
	}
	for _, a := range g.Assignments {
		ids = append(ids, model.ClusterLocation(a.ClusterID))
	}
	for i := range g.Withdrawals {
		if a := snap.Assignment(g.Withdrawals[i].AssignmentID); a != nil {
			ids = append(ids, model.ClusterLocation(a.ClusterID))
		}
	}
	for i := range g.Stops {
		nodeOf(g.Stops[i].AllocID)
	}
	for i := range g.Evictions {
		nodeOf(g.Evictions[i].AllocID)
	}
	return ids
}
