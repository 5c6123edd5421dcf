package broker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// change is what may have made room.
type change struct {
	place
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

// place is a node, or with an empty node any of a class.
type place struct {
	class uint64
	node  string
}

// waitsFor is whether the record waits for the place, whose class has the number:
// for its nodes, or for any of a class that it does not rule out. A class that it
// has not seen may be the one.
func (r *record) waitsFor(p place, class int32) bool {
	if p.isCluster() != r.binds() {
		return false
	}
	if len(r.nodes) > 0 && p.node != "" {
		_, ok := slices.BinarySearch(r.nodes, p.node)
		return ok
	}
	return r.eval.Escaped || !r.ruledOut.has(class)
}

// isCluster is whether the place is a member cluster.
func (p place) isCluster() bool {
	_, ok := model.ParseClusterLocation(p.node)
	return ok
}

// passes reports whether the filter accepts the evaluation for the location.
func (p place) passes(ev *model.Evaluation, filter UnblockFilter) bool {
	return filter == nil || p.node == "" || filter.MayPlace(ev, p.node)
}

// cursor walks a group. In a group of one shape the first that is turned away
// answers for the rest.
type cursor struct {
	group  group
	shaped bool
}

// release queues what waits for the change. The groups are merged by the order
// of release, so that a screen that hands out room does so in that order.
func (t *Blocked) release(c change) []*model.Evaluation {
	t.cursors.Reset()
	cluster := c.isCluster()
	if cluster || c.everywhere {
		t.walk(cursor{t.bound, false}, &c)
	}
	if !cluster {
		t.walk(cursor{t.nodal, false}, &c)
		t.walk(cursor{t.single, false}, &c)
		for _, g := range t.shapes { // any order: the heap sorts by unique keys
			t.walk(cursor{g, true}, &c)
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
			cur.skip(&c)
		}
	}
	return t.requeue(freed, c.index)
}

// walk puts the cursor in front of the first record that the change may free.
func (t *Blocked) walk(cur cursor, c *change) {
	if cur.skip(c); len(cur.group) > 0 {
		t.cursors.Push(cur.group[0].key, cur)
	}
}

// skip passes over what has seen the change, and what is known at a glance to be
// turned away: no order is needed for that.
func (cur *cursor) skip(c *change) {
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

// unseen is the group from its first record on that has not seen index.
func (g group) unseen(index uint64) group {
	for i, r := range g {
		if r.seen < index {
			return g[i:]
		}
	}
	return nil
}

func (c *change) frees(r *record, class int32) bool {
	return c.everywhere || r.waitsFor(c.place, class) && c.passes(r.eval, c.filter)
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
		case r.binds():
			fromBound = true
		case byNode:
			fromNodal = true
		case r.shape == 0:
			fromSingle = true
		default:
			touched[r.shape] = struct{}{}
		}
	}
	// One pass over each group, however many leave it.
	if fromBound {
		t.bound = t.bound.withoutGone()
	}
	if fromNodal {
		t.nodal = t.nodal.withoutGone()
	}
	if fromSingle {
		t.single = t.single.withoutGone()
	}
	for shape := range touched {
		t.setShape(shape, t.shapes[shape].withoutGone())
	}
	t.b.enqueueUnblocked(index, out...)
	return out
}

func (g group) withoutGone() group {
	return slices.DeleteFunc(g, func(r *record) bool { return r.gone })
}
