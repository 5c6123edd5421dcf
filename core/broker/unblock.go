package broker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A change may have freed capacity.
type change struct {
	location
	everywhere bool
	index      uint64
	filter     UnblockFilter // nil: every waiter may use it
	excludes   bool          // filter.Excludes applies: a single node changed
}

// with returns the change as seen by a filter, which may be nil.
func (c change) with(filter UnblockFilter) change {
	c.filter = filter
	c.excludes = filter != nil && !c.isCluster() && c.node != ""
	return c
}

// A location is a node or cluster or, with an empty node, any node of a class.
type location struct {
	class uint64
	node  string
}

// waitsFor reports whether the record waits for the location with the given class
// number: for one of its nodes, or for any node of a class that is not ruled out. A
// class that the evaluation has not seen may be feasible.
func (r *record) waitsFor(p location, class int32) bool {
	if p.isCluster() != r.isBinding() {
		return false
	}
	if len(r.nodes) > 0 && p.node != "" {
		_, ok := slices.BinarySearch(r.nodes, p.node)
		return ok
	}
	return r.eval.Escaped || !r.ruledOut.has(class)
}

// isCluster reports whether the location is a member cluster.
func (p location) isCluster() bool {
	_, ok := model.ParseClusterLocation(p.node)
	return ok
}

// passes reports whether the filter accepts the record for the location.
func (p location) passes(r *record, filter UnblockFilter) bool {
	return filter == nil || p.node == "" || filter.MayPlace(r.eval, p.node, &r.cache)
}

// A cursor walks a group. In a group of one equivalence class, the first record
// that is rejected stands for the rest.
type cursor struct {
	group  group
	shaped bool
}

// release queues the evaluations that the change unblocks. Groups are merged in the
// order of release, so that a filter that hands out capacity does so in that order.
func (t *Blocked) release(c change) []*model.Evaluation {
	t.cursors.Reset()
	cluster := c.isCluster()
	if cluster || c.everywhere {
		t.addCursor(cursor{t.bindings, false}, &c)
	}
	if !cluster {
		t.addCursor(cursor{t.byNode, false}, &c)
		t.addCursor(cursor{t.byClass, false}, &c)
		for i := range t.shapes.list { // any order: the heap sorts by unique keys
			if s := &t.shapes.list[i]; s.oldest < c.index && !s.isExcluded(&c) {
				t.addCursor(cursor{s.group, true}, &c)
			}
		}
	}
	var freed []*record
	class := t.classes.find(c.class)
	for t.cursors.Len() > 0 {
		cur := t.cursors.Pop().Value
		for len(cur.group) > 0 {
			r := cur.group[0]
			if t.cursors.Len() > 0 && t.cursors.Min().Less(r.key) {
				t.cursors.Push(r.key, cur)
				break
			}
			cur.group = cur.group[1:]
			if c.frees(r, class) {
				freed = append(freed, r)
			} else if cur.shaped {
				break
			}
			cur.skipExcluded(&c)
		}
	}
	return t.requeue(freed, c.index)
}

// addCursor puts the cursor at the first record that the change may unblock.
func (t *Blocked) addCursor(cur cursor, c *change) {
	if cur.skipExcluded(c); len(cur.group) > 0 {
		t.cursors.Push(cur.group[0].key, cur)
	}
}

// skipExcluded skips records with a snapshot that includes the change, and those
// that the filter excludes independently of the order.
func (cur *cursor) skipExcluded(c *change) {
	cur.group = cur.group.unseen(c.index)
	for c.excludes && len(cur.group) > 0 {
		r := cur.group[0]
		if !c.filter.Excludes(r.eval, c.node, &r.cache) {
			return
		}
		if cur.shaped {
			cur.group = nil
			return
		}
		cur.group = cur.group[1:].unseen(c.index)
	}
}

// unseen returns the group from the first record on with a snapshot older than
// index.
func (g group) unseen(index uint64) group {
	for i, r := range g {
		if r.seen < index {
			return g[i:]
		}
	}
	return nil
}

func (c *change) frees(r *record, class int32) bool {
	return c.everywhere || r.waitsFor(c.location, class) && c.passes(r, c.filter)
}

// requeue moves records to the broker.
func (t *Blocked) requeue(freed []*record, index uint64) []*model.Evaluation {
	if len(freed) == 0 {
		return nil
	}
	out := make([]*model.Evaluation, len(freed))
	var fromBound, fromNodal, fromSingle bool
	touched := make(map[uint64]struct{})
	for i, r := range freed {
		out[i] = r.eval
		switch byNode := t.unlink(r); {
		case r.isBinding():
			fromBound = true
		case byNode:
			fromNodal = true
		case r.shape == 0:
			fromSingle = true
		default:
			touched[r.shape] = struct{}{}
		}
	}
	// One pass over each group, however many records leave it.
	if fromBound {
		t.bindings = t.bindings.withoutGone()
	}
	if fromNodal {
		t.byNode = t.byNode.withoutGone()
	}
	if fromSingle {
		t.byClass = t.byClass.withoutGone()
	}
	for shape := range touched {
		t.shapes.removeGone(shape)
	}
	t.b.enqueueUnblocked(index, out...)
	return out
}

func (g group) withoutGone() group {
	return slices.DeleteFunc(g, func(r *record) bool { return r.gone })
}
