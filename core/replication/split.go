package replication

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// MaxEntry is how large an entry may be, in bytes. Raft sends whole entries
// between heartbeats: larger ones hold up the one and endanger the other.
const MaxEntry = 512 << 10

// part is an entry of the log that stands for all or some of one.
type part struct {
	data  []byte
	plans []int // positions in the batch of the plans that it holds; nil: all
}

// join adds what a part did to what those before it did.
func (p *part) join(whole, r *Result) {
	whole.Index, whole.Replayed = r.Index, r.Replayed
	if whole.Err == nil {
		whole.Err = r.Err
	}
	whole.Evals = append(whole.Evals, r.Evals...)
	whole.Rooms = append(whole.Rooms, r.Rooms...)
	whole.Returned = append(whole.Returned, r.Returned...)
	whole.Placed = append(whole.Placed, r.Placed...)
	for _, d := range r.Dropped {
		whole.Dropped = append(whole.Dropped, apply.DroppedGroup{Plan: p.plans[d.Plan], Group: d.Group})
	}
}

// encode writes an entry down, as several where its plans are too large for one.
func (n *Node) encode(e *Entry) ([]part, error) {
	data := Encode(e)
	if len(data) <= MaxEntry {
		return []part{{data: data}}, nil
	}
	if e.Key == "" {
		switch c := e.Command.(type) {
		case *ApplyPlans:
			return splitPlans(e, c.Batch, n.cfg.Store.Snapshot())
		case *WriteEvals:
			return splitList(e, c.Evals, func(some []*model.Evaluation) Command { return &WriteEvals{some} })
		case *UpdateAllocs:
			return splitList(e, c.Updates, func(some []apply.ClientUpdate) Command { return &UpdateAllocs{some} })
		}
	}
	return nil, tooLarge("it", len(data))
}

func tooLarge(what string, size int) error {
	return fmt.Errorf("%w: %s has %d bytes, and at most %d are taken", ErrTooLarge, what, size, MaxEntry)
}

// splitList makes several entries of a list of which no part needs the other.
func splitList[T any](e *Entry, list []T, command func([]T) Command) ([]part, error) {
	data := Encode(&Entry{Time: e.Time, Hash: e.Hash, Command: command(list)})
	switch {
	case len(data) <= MaxEntry:
		return []part{{data: data}}, nil
	case len(list) <= 1:
		return nil, tooLarge("one of a list", len(data))
	}
	head, err := splitList(e, list[:len(list)/2], command)
	if err != nil {
		return nil, err
	}
	tail, err := splitList(e, list[len(list)/2:], command)
	return append(head, tail...), err
}

// unit is a commit group: the plan and the group in it.
type unit struct{ plan, group int }

// splitPlans makes several entries of one that is too large. Commit groups that
// touch a node or a cluster in common stay together: one may stand on room that the other
// frees, and it must not be written without it.
func splitPlans(e *Entry, b *apply.Batch, snap *state.Snapshot) ([]part, error) {
	return pack(e, b, connected(b, snap))
}

func pack(e *Entry, b *apply.Batch, sets [][]unit) ([]part, error) {
	p := partOf(e, b, sets)
	switch {
	case len(p.data) <= MaxEntry:
		return []part{p}, nil
	case len(sets) <= 1:
		return nil, tooLarge("a set of commit groups that cannot be parted", len(p.data))
	}
	half := len(sets) / 2
	first := *b
	first.Ineligible = nil // once is enough, and with the last
	head, err := pack(e, &first, sets[:half])
	if err != nil {
		return nil, err
	}
	tail, err := pack(e, b, sets[half:])
	return append(head, tail...), err
}

func partOf(e *Entry, b *apply.Batch, sets [][]unit) part {
	units := slices.Concat(sets...)
	slices.SortFunc(units, func(x, y unit) int {
		if x.plan != y.plan {
			return x.plan - y.plan
		}
		return x.group - y.group
	})
	p := part{plans: []int{}}
	some := &apply.Batch{Now: b.Now, Ineligible: b.Ineligible}
	for _, u := range units {
		if k := len(p.plans); k == 0 || p.plans[k-1] != u.plan {
			p.plans = append(p.plans, u.plan)
			some.Plans = append(some.Plans, apply.BatchPlan{Plan: b.Plans[u.plan].Plan})
		}
		last := &some.Plans[len(some.Plans)-1]
		last.Groups = append(last.Groups, u.group)
	}
	p.data = Encode(&Entry{Time: e.Time, Hash: e.Hash, Command: &ApplyPlans{some}})
	return p
}

// connected is the commit groups of a batch by what they have to do with each
// other, in the order of the first of each.
func connected(b *apply.Batch, snap *state.Snapshot) [][]unit {
	var units []unit
	var parent []int
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	touched := map[string]int{} // node id -> a unit that touches it
	for p := range b.Plans {
		for _, g := range b.Plans[p].Groups {
			at := len(units)
			units, parent = append(units, unit{p, g}), append(parent, at)
			for _, node := range nodesOf(b, p, g, snap) {
				if other, ok := touched[node]; ok {
					x, y := root(other), root(at)
					parent[max(x, y)] = min(x, y)
				}
				touched[node] = at
			}
		}
	}
	var sets [][]unit
	number := map[int]int{}
	for i, u := range units {
		at, ok := number[root(i)]
		if !ok {
			at = len(sets)
			number[root(i)] = at
			sets = append(sets, nil)
		}
		sets[at] = append(sets[at], u)
	}
	return sets
}

// nodesOf is the nodes and the clusters that a commit group touches.
func nodesOf(b *apply.Batch, plan, group int, snap *state.Snapshot) (nodes []string) {
	g := &b.Plans[plan].Plan.Groups[group]
	of := func(id string) {
		if a := snap.Alloc(id); a != nil {
			nodes = append(nodes, a.NodeID)
		}
	}
	for _, a := range g.Placements {
		nodes = append(nodes, a.NodeID)
	}
	for _, a := range g.Updates {
		nodes = append(nodes, a.NodeID)
	}
	for _, c := range g.Claims {
		if c.ClusterID != "" {
			nodes = append(nodes, model.ClusterLocation(c.ClusterID))
			continue
		}
		nodes = append(nodes, c.NodeID)
	}
	for _, a := range g.Assignments {
		nodes = append(nodes, model.ClusterLocation(a.ClusterID))
	}
	for i := range g.Withdrawals {
		if a := snap.Assignment(g.Withdrawals[i].AssignmentID); a != nil {
			nodes = append(nodes, model.ClusterLocation(a.ClusterID))
		}
	}
	for i := range g.Stops {
		of(g.Stops[i].AllocID)
	}
	for i := range g.Evictions {
		of(g.Evictions[i].AllocID)
	}
	return nodes
}
