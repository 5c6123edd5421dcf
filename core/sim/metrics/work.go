package metrics

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// workTable holds the live allocations by ID, and totals of the work that ended
// allocations did and lost.
type workTable struct {
	cols     *columns
	byID     map[string]*allocRow
	freeRows []*allocRow // rows of ended allocations, for reuse
	jobs     map[model.JobKey]*jobRow
	groups   map[groupKey]*groupRow
	order    []*groupRow                // by first appearance
	byPtr    map[*model.Group]*groupRow // finds the groups of one job version without hashing strings
	names    map[string]*namespaceRow

	ran     []integral // by column: work of ended allocations since their starts
	wasted  []integral // the part of ran that evictions discarded
	spoiled []integral // the part of ran that was lost with nodes
}

type groupKey struct {
	job  model.JobKey
	name string
}

// jobRow holds the counters of a job, across its versions.
type jobRow struct {
	namespace *namespaceRow
	perNode   bool
	gang      bool
	desired   int
	live      int
	broken    bool // a gang that evictions left incomplete; reset once it is complete or gone
	touched   bool // a gang that lost instances to evictions at the current instant
}

// groupRow holds the counters of a group, across job versions.
type groupRow struct {
	job         *jobRow
	level       *level
	preemptible bool
	use         []int64 // by column; devices by requested kind

	waits   []wait // oldest first
	waiting int
	resumed []int64 // starts of the waits of evicted instances that never started
}

type namespaceRow struct {
	name     string
	held     []int64
	integral []integral
	since    int64 // the time up to which integral is complete
}

// allocRow holds a live allocation.
type allocRow struct {
	id      string
	group   *groupRow
	level   *level // of the job's priority when it was placed
	node    int32
	index   int32
	victims int32 // number of allocations evicted for it
	started bool
	victim  bool  // preemptible
	start   int64 // start time; negative if it started before time 0
	since   int64 // start of the wait for it
	use     []int64
}

// age returns the running time in nanoseconds, or 0 if it has not started.
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

// job returns the row of a job, updated to this version.
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

// group returns the row of a group and creates it if necessary.
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
	// Live allocations retain the vector they were counted with: their rows refer to
	// it.
	row.use = make([]int64, c.cols.len())
	c.cols.ask(row.use, g)
	w.byPtr[g] = row
	return row
}

// find returns the row of an allocation, or nil if it is not placed or has ended.
func (w *workTable) find(id string) *allocRow { return w.byID[id] }

func (w *workTable) add(a *model.Allocation, g *groupRow, node int32) *allocRow {
	if w.byID[a.ID] != nil {
		panic("metrics: allocation " + a.ID + " is placed twice")
	}
	r := new(allocRow)
	if n := len(w.freeRows); n > 0 {
		r, w.freeRows = w.freeRows[n-1], w.freeRows[:n-1]
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
	w.freeRows = append(w.freeRows, r)
}

// hold counts the resources of an allocation for its job and namespace.
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

// addWork adds the work of an allocation that ends: its running time, and the part of
// it that is lost.
func (w *workTable) addWork(r *allocRow, now, lost int64, to []integral) {
	age := r.age(now)
	for i, use := range r.use {
		w.ran[i].add(use, age)
		if lost > 0 {
			to[i].add(use, lost)
		}
	}
}
