package broker

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// A group is a list of records in the order of release.
type group []*record

func compareRecords(a, b *record) int {
	if c := cmp.Compare(a.key.A, b.key.A); c != 0 {
		return c
	}
	if c := cmp.Compare(a.key.B, b.key.B); c != 0 {
		return c
	}
	return cmp.Compare(a.key.C, b.key.C)
}

func (g group) with(r *record) group {
	i, _ := slices.BinarySearchFunc(g, r, compareRecords)
	return slices.Insert(g, i, r)
}

func (g group) without(r *record) group {
	i, ok := slices.BinarySearchFunc(g, r, compareRecords)
	if !ok {
		return g
	}
	return slices.Delete(g, i, i+1)
}

// newness ranks the blocked evaluations of one job: the newest snapshot is the best
// information about what is missing.
func newness(ev *model.Evaluation) uint64 { return max(ev.CreateIndex, ev.SnapshotIndex) }

// track adds r, or retains the record of its job that supersedes it.
func (t *Blocked) track(r *record) BlockResult {
	ev := r.eval
	if known := t.ids[ev.ID]; known != nil {
		if ev.ModifyIndex < known.eval.ModifyIndex {
			return BlockTracked
		}
		t.remove(known)
	}
	j := t.jobs[ev.JobKey()]
	if j == nil {
		j = &blockedJob{}
	}
	if len(r.nodes) == 0 {
		return t.trackByClass(j, r)
	}
	return t.trackByNode(j, r)
}

// nodesOf returns the nodes that ev waits for, ascending; nil if it waits for
// classes.
func nodesOf(ev *model.Evaluation) []string {
	switch {
	case !ev.Type.PerNode():
		return nil
	case slices.IsSorted(ev.BlockedNodes):
		return ev.BlockedNodes
	}
	return slices.Sorted(slices.Values(ev.BlockedNodes))
}

func (t *Blocked) newRecord(ev *model.Evaluation) *record {
	t.seq++
	r := &record{
		head: head{eval: ev, seen: ev.SnapshotIndex},
		key:  heapq.Key{A: uint64(math.MaxInt32 - int64(ev.Priority)), B: ev.ArrivalIndex(), C: t.seq},
	}
	r.nodes = nodesOf(ev)
	if len(t.classes.of) > t.classes.limit {
		t.renumber()
	}
	r.ruledOut = t.classes.ruledOut(ev)
	if t.b.cfg.EquivalenceClass != nil && len(r.nodes) == 0 {
		r.shape = t.b.cfg.EquivalenceClass(ev)
	}
	return r
}

func (t *Blocked) trackByClass(j *blockedJob, r *record) BlockResult {
	if old := j.byClass; old != nil {
		if newness(r.eval) < newness(old.eval) {
			t.duplicate(r, old)
			return BlockDuplicate
		}
		t.remove(old)
		t.duplicate(old, r)
	}
	j.byClass = r
	t.insert(j, r)
	return BlockTracked
}

// trackByNode divides the nodes between r and the other records of its job. An
// older record without nodes is a duplicate. One with nodes remains, or changes of
// those nodes would unblock nothing.
func (t *Blocked) trackByNode(j *blockedJob, r *record) BlockResult {
	others := slices.Clone(j.byNode)
	var newest *record
	for _, o := range others {
		if newness(o.eval) > newness(r.eval) {
			r.nodes = minus(r.nodes, o.nodes)
			if newest == nil || newness(o.eval) > newness(newest.eval) {
				newest = o
			}
		}
	}
	if len(r.nodes) == 0 {
		t.duplicate(r, newest)
		return BlockDuplicate
	}
	for _, o := range others {
		if newness(o.eval) > newness(r.eval) {
			continue
		}
		if o.nodes = minus(o.nodes, r.nodes); len(o.nodes) == 0 {
			t.remove(o)
			t.duplicate(o, r)
		}
	}
	j.byNode = append(j.byNode, r)
	t.insert(j, r)
	return BlockTracked
}

// minus returns a without the elements of b, both ascending; a itself if there are
// none.
func minus(a, b []string) []string {
	var out []string
	same := true
	for i, j := 0, 0; i < len(a); i++ {
		for j < len(b) && b[j] < a[i] {
			j++
		}
		if j < len(b) && b[j] == a[i] {
			if same {
				out, same = append(out, a[:i]...), false
			}
			continue
		}
		if !same {
			out = append(out, a[i])
		}
	}
	if same {
		return a
	}
	return out
}

// duplicate adds r to the evaluations to be cancelled. A later version, such as one with
// another priority, replaces the one that waits for its cancellation. Otherwise a job that
// is written often would have each of its evaluations here once per write.
func (t *Blocked) duplicate(r, winner *record) {
	c := Cancellation{r.eval, winner.eval.ID}
	if waiting := t.dupOf[r.eval.ID]; waiting != nil {
		*waiting = c
	} else {
		t.addDuplicate(&c)
	}
	t.b.reap.wake()
}

func (t *Blocked) addDuplicate(c *Cancellation) {
	t.dups = append(t.dups, c)
	t.dupOf[c.Eval.ID] = c
}

// insert adds r, which its job already refers to, to all other indexes.
func (t *Blocked) insert(j *blockedJob, r *record) {
	t.jobs[r.eval.JobKey()] = j
	t.ids[r.eval.ID] = r
	t.types[r.eval.Type]++
	switch {
	case r.isBinding():
		t.bindings = t.bindings.with(r)
	case len(r.nodes) > 0:
		t.byNode = t.byNode.with(r)
	case r.shape == 0:
		t.byClass = t.byClass.with(r)
	default:
		t.shapes.add(r)
	}
}

// remove removes r from all indexes.
func (t *Blocked) remove(r *record) {
	byNode := t.unlink(r)
	switch {
	case r.isBinding():
		t.bindings = t.bindings.without(r)
	case byNode:
		t.byNode = t.byNode.without(r)
	case r.shape == 0:
		t.byClass = t.byClass.without(r)
	default:
		t.shapes.remove(r)
	}
}

// unlink removes r from all indexes but its group, and reports whether that is the
// group by node.
func (t *Blocked) unlink(r *record) (byNode bool) {
	r.gone = true
	delete(t.ids, r.eval.ID)
	t.types[r.eval.Type]--
	key := r.eval.JobKey()
	j := t.jobs[key]
	if j.byClass == r {
		j.byClass = nil
	} else {
		j.byNode = slices.DeleteFunc(j.byNode, func(o *record) bool { return o == r })
		byNode = true
	}
	if j.byClass == nil && len(j.byNode) == 0 {
		delete(t.jobs, key)
	}
	return byNode
}
