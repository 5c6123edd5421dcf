package metrics

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// workTable holds what is placed, by allocation id, and how much work what has
// ended did and lost.
type workTable struct {
	cols   *columns
	byID   map[string]*allocRow
	spare  []*allocRow // ended rows, to be used again
	jobs   map[model.JobKey]*jobRow
	groups map[groupKey]*groupRow
	order  []*groupRow                // in the order in which they were first seen
	byPtr  map[*model.Group]*groupRow // finds the groups of one job version without hashing strings
	names  map[string]*namespaceRow

	ran     []integral // by column: work that allocations which ended did, from their starts
	wasted  []integral // of it, lost to evictions
	spoiled []integral // of it, lost with nodes
}

type groupKey struct {
	job  model.JobKey
	name string
}

// jobRow is a job, whatever its version.
type jobRow struct {
	namespace *namespaceRow
	perNode   bool
	gang      bool
	desired   int
	live      int
	broken    bool // a gang that an eviction left with some of its instances, until it is whole or gone
	touched   bool // a gang that lost instances to evictions in this instant
}

// groupRow is a group of a job, whatever its version.
type groupRow struct {
	job         *jobRow
	level       *level
	preemptible bool
	use         []int64 // by column; kinds of devices as asked

	waits   []wait // oldest first
	waiting int
	resumed []int64 // since when displaced instances that never started have waited
}

type namespaceRow struct {
	name     string
	held     []int64
	integral []integral
	since    int64 // the time up to which integral is complete
}

// allocRow is an allocation that is placed and has not ended.
type allocRow struct {
	id      string
	group   *groupRow
	level   *level // of the job's priority when it was placed
	node    int32
	index   int32
	victims int32 // evicted for it
	started bool
	victim  bool  // preemption may take it
	start   int64 // when it started; negative for what ran before time 0
	since   int64 // since when it was waited for
	use     []int64
}

func (r *allocRow) age(now int64) int64 {
	if !r.started || now <= r.start {
		return 0
	}
	return now - r.start
}

func (w *workTable) init(cols *columns) {
	n := cols.len()
	*w = workTable{
		cols: cols, byID: map[string]*allocRow{}, jobs: map[model.JobKey]*jobRow{},
		groups: map[groupKey]*groupRow{}, byPtr: map[*model.Group]*groupRow{}, names: map[string]*namespaceRow{},
		ran: make([]integral, n), wasted: make([]integral, n), spoiled: make([]integral, n),
	}
}

// job is the row of a job, brought up to date with this version.
func (c *Collector) job(j *model.Job) *jobRow {
	w := &c.work
	row := w.jobs[j.Key()]
	if row == nil {
		name := w.names[j.Namespace]
		if name == nil {
			n := c.cols.len()
			name = &namespaceRow{name: j.Namespace, held: make([]int64, n), integral: make([]integral, n)}
			w.names[j.Namespace] = name
		}
		row = &jobRow{namespace: name}
		w.jobs[j.Key()] = row
	}
	row.perNode, row.gang, row.desired = j.Type.PerNode(), j.AllAtOnce, 0
	for _, g := range j.Groups {
		row.desired += g.Count
	}
	return row
}

// group is the row of a group.
func (c *Collector) group(g *model.Group) *groupRow {
	w := &c.work
	if row := w.byPtr[g]; row != nil {
		return row
	}
	key := groupKey{g.Job.Key(), g.Name}
	row := w.groups[key]
	if row == nil {
		row = &groupRow{level: c.demand.level(g.Job.Priority)}
		w.groups[key], w.order = row, append(w.order, row)
	}
	row.job = c.job(g.Job)
	c.demand.move(row, g.Job)
	// What already runs keeps the vector it was counted with: rows point to it.
	row.use = make([]int64, c.cols.len())
	c.cols.ask(row.use, g)
	w.byPtr[g] = row
	return row
}

// find is the row of an allocation, nil when it is not placed or has ended.
func (w *workTable) find(id string) *allocRow { return w.byID[id] }

func (w *workTable) add(a *model.Allocation, g *groupRow, node int32) *allocRow {
	if w.byID[a.ID] != nil {
		panic("metrics: allocation " + a.ID + " is placed twice")
	}
	r := new(allocRow)
	if n := len(w.spare); n > 0 {
		r, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	*r = allocRow{id: a.ID, group: g, node: node, index: int32(a.Index), use: g.use, level: g.level, victim: g.preemptible}
	if len(a.Devices) > 0 {
		r.use = slices.Clone(g.use)
		w.cols.resources(r.use, &a.Group.Ask.Vec)
		for _, d := range a.Devices {
			if at, ok := w.cols.device[d.ID]; ok {
				r.use[at] += int64(d.Count)
			}
		}
	}
	w.byID[a.ID] = r
	return r
}

func (w *workTable) remove(r *allocRow) {
	delete(w.byID, r.id)
	w.spare = append(w.spare, r)
}

// hold counts what an allocation holds for its job and namespace.
func (w *workTable) hold(r *allocRow, sign, now int64) {
	j := r.group.job
	if j.live += int(sign); j.live == 0 || j.live >= j.desired {
		j.broken = false
	}
	name := j.namespace
	name.advance(now)
	for i, use := range r.use {
		name.held[i] += sign * use
	}
}

func (n *namespaceRow) advance(now int64) {
	for i := range n.held {
		n.integral[i].add(n.held[i], now-n.since)
	}
	n.since = now
}

// done adds the work of an allocation that ends: what it ran, and what of that
// is lost.
func (w *workTable) done(r *allocRow, now, lost int64, to []integral) {
	age := r.age(now)
	for i, use := range r.use {
		w.ran[i].add(use, age)
		if lost > 0 {
			to[i].add(use, lost)
		}
	}
}
