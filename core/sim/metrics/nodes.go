package metrics

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// nodeTable integrates capacity, use and stranded capacity. Before a node changes,
// its contribution is subtracted from the totals, and added again afterwards. A
// change therefore costs one node, never all.
type nodeTable struct {
	cols    *columns
	byID    map[string]int32
	rows    []nodeRow
	cap     []int64 // row-major, one amount per column
	held    []int64
	scratch []int64
	typical []int64

	totals   []amounts // of ready nodes, by column
	integral []integrals
}

type nodeRow struct{ ready, hosts bool }

// amounts holds the values of one column at an instant.
type amounts struct{ cap, held, free, stranded int64 }

// integrals holds the values of one column over a period.
type integrals struct{ cap, held, free, stranded integral }

func (i *integrals) add(a *amounts, dt int64) {
	i.cap.add(a.cap, dt)
	i.held.add(a.held, dt)
	i.free.add(a.free, dt)
	i.stranded.add(a.stranded, dt)
}

func (i *integrals) plus(o *integrals) {
	i.cap.plus(o.cap)
	i.held.plus(o.held)
	i.free.plus(o.free)
	i.stranded.plus(o.stranded)
}

func (t *nodeTable) init(cols *columns, nodes int, typical []int64) {
	n := cols.len()
	*t = nodeTable{
		cols: cols, typical: typical, byID: make(map[string]int32, nodes), rows: make([]nodeRow, 0, nodes),
		cap: make([]int64, 0, nodes*n), held: make([]int64, 0, nodes*n), scratch: make([]int64, n),
		totals: make([]amounts, n), integral: make([]integrals, n),
	}
}

// find returns the position of a node and creates it if necessary.
func (t *nodeTable) find(id string) int32 {
	at, ok := t.byID[id]
	if !ok {
		at = int32(len(t.rows))
		t.byID[id] = at
		t.rows = append(t.rows, nodeRow{})
		t.cap = append(t.cap, t.zero()...)
		t.held = append(t.held, t.zero()...)
	}
	return at
}

func (t *nodeTable) zero() []int64 {
	clear(t.scratch)
	return t.scratch
}

func (t *nodeTable) change(n *model.Node) {
	at := t.find(n.ID)
	t.count(at, -1)
	t.cols.capacity(t.row(t.cap, at), n)
	t.rows[at].ready = n.Status == model.NodeReady
	t.addToTotals(at)
}

func (t *nodeTable) hold(at int32, use []int64, sign int64) {
	t.count(at, -1)
	for i, held := range t.row(t.held, at) {
		t.held[int(at)*len(use)+i] = held + sign*use[i]
	}
	t.addToTotals(at)
}

// addToTotals adds a changed node to the totals again.
func (t *nodeTable) addToTotals(at int32) {
	capacity, held := t.row(t.cap, at), t.row(t.held, at)
	t.rows[at].hosts = true
	for i, want := range t.typical {
		if capacity[i]-held[i] < want {
			t.rows[at].hosts = false
			break
		}
	}
	t.count(at, +1)
}

// count adds the contribution of a node to the totals, or subtracts it.
func (t *nodeTable) count(at int32, sign int64) {
	if !t.rows[at].ready {
		return
	}
	capacity, held := t.row(t.cap, at), t.row(t.held, at)
	for i := range t.totals {
		total := &t.totals[i]
		free := max(0, capacity[i]-held[i])
		total.cap += sign * capacity[i]
		total.held += sign * held[i]
		total.free += sign * free
		if !t.rows[at].hosts {
			total.stranded += sign * free
		}
	}
}

func (t *nodeTable) row(of []int64, at int32) []int64 {
	n := t.cols.len()
	return of[int(at)*n : int(at)*n+n]
}

func (t *nodeTable) advance(dt int64) {
	for i := range t.totals {
		t.integral[i].add(&t.totals[i], dt)
	}
}

// over returns column i integrated over the run, or its current values if no time has
// passed.
func (t *nodeTable) over(i int) integrals {
	sum := t.integral[i]
	if sum == (integrals{}) {
		sum.add(&t.totals[i], 1)
	}
	return sum
}

// hasTypicalRequest reports whether the typical request is not zero. If it is zero,
// it fits on every node and no capacity is stranded.
func (t *nodeTable) hasTypicalRequest() bool {
	return slices.ContainsFunc(t.typical, func(a int64) bool { return a > 0 })
}
