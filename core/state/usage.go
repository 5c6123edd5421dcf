package state

import (
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// Everything that a node has in use changes in this file and nowhere else.

// nodeWriter is one node opened for writing.
type nodeWriter struct {
	t   *Txn
	c   *Chunk
	i   int // in c
	u   *use
	pos int32
}

// account replaces what one allocation takes from its node: old and next are
// two versions of it, nil where there is none. They share the node.
func (t *Txn) account(old, next *model.Allocation) {
	if len(t.budgets.list) > 0 {
		t.countForBudgets(old, next)
	}
	was, is := standingOf(old), standingOf(next)
	if was == absent && is == absent {
		return
	}
	if was == live || is == live {
		t.regroup(old, next, was, is)
	}
	some := next
	if next == nil {
		some = old
	}
	w := t.open(some.NodeID)
	if next != nil {
		next.NodePos = w.pos
	}
	t.touch(TableNodeAllocs.Of(some.NodeID))
	if was == live && is == live && takesTheSame(old, next) {
		w.replaceRow(next)
		w.roomChanged()
		return
	}
	switch was {
	case live:
		w.removeRow(old)
	case stopping:
		w.removeStopping(old)
	}
	switch is {
	case live:
		w.addRow(next)
	case stopping:
		w.addStopping(next)
	}
	if was == live || is == live {
		w.roomChanged()
	}
	if is == absent {
		w.release()
	}
}

type standing uint8

const (
	absent   standing = iota // not there, or the node has seen the end of it
	stopping                 // no longer wanted, may still run
	live                     // counts against the node
)

func standingOf(a *model.Allocation) standing {
	switch {
	case a == nil || a.Client.Terminal():
		return absent
	case a.Desired == model.DesiredRun:
		return live
	}
	return stopping
}

// takesTheSame is whether two versions of an allocation differ in nothing that
// counts. One group belongs to one version of one job, so it stands for the
// ask and for the priority.
func takesTheSame(a, b *model.Allocation) bool {
	return a.Group == b.Group && slices.Equal(a.Devices, b.Devices)
}

// open makes what is on a node writable. The position is made when nobody
// referred to that node before.
func (t *Txn) open(nodeID string) nodeWriter {
	pos, ok := t.place(nodeID)
	if !ok {
		pos = t.addPlace(nodeID)
	}
	return t.openAt(pos)
}

func (t *Txn) openAt(pos int32) nodeWriter {
	c, i := t.chunk(int(pos/ChunkSize)), int(pos%ChunkSize)
	u := c.uses[i]
	switch {
	case u == nil:
		u = &use{owner: t.owner}
		c.uses[i] = u
	case u.owner != t.owner:
		own := *u
		own.owner = t.owner
		u = &own
		c.uses[i] = u
	}
	return nodeWriter{t: t, c: c, i: i, u: u, pos: pos}
}

func (w *nodeWriter) extra() *extra {
	x := w.u.extra
	switch {
	case x == nil:
		x = &extra{owner: w.t.owner}
	case x.owner != w.t.owner:
		x = &extra{
			owner: w.t.owner, ports: slices.Clone(x.ports), devices: slices.Clone(x.devices),
			stopping: slices.Clone(x.stopping), claims: slices.Clone(x.claims),
		}
	}
	w.u.extra = x
	return x
}

// searchRow is where the row of an allocation is, or belongs. It is
// slices.BinarySearchFunc by hand: the hottest comparison of a write.
func searchRow(rows []Row, a *model.Allocation) int {
	priority := a.Job.Priority
	low, high := 0, len(rows)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if r := &rows[mid]; r.Priority < priority || r.Priority == priority && r.Alloc.ID < a.ID {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (w *nodeWriter) findRow(a *model.Allocation) int {
	at := searchRow(w.u.rows, a)
	if at == len(w.u.rows) || w.u.rows[at].Alloc.ID != a.ID {
		panic("state: live allocation " + a.ID + " is not on its node")
	}
	return at
}

func (w *nodeWriter) replaceRow(next *model.Allocation) {
	w.ownRows()
	row := &w.u.rows[w.findRow(next)]
	row.Alloc, row.Started, row.Start = next, next.Started, startOf(next)
}

func (w *nodeWriter) ownRows() {
	if u := w.u; u.rowsOwner != w.t.owner {
		u.rows, u.rowsOwner = slices.Clone(u.rows), w.t.owner
	}
}

// insertRow copies rows that are shared around the gap, rather than copy them
// and then move half of them: nodes may have hundreds.
func (w *nodeWriter) insertRow(at int, row Row) {
	u := w.u
	if u.rowsOwner == w.t.owner {
		u.rows = slices.Insert(u.rows, at, row)
		return
	}
	rows := make([]Row, len(u.rows)+1)
	copy(rows, u.rows[:at])
	rows[at] = row
	copy(rows[at+1:], u.rows[at:])
	u.rows, u.rowsOwner = rows, w.t.owner
}

func (w *nodeWriter) addRow(a *model.Allocation) {
	row := rowOf(a)
	w.insertRow(searchRow(w.u.rows, a), row)
	if a.Job.HasEvictionRules() {
		w.u.guarded++
	}
	w.take(a, 1)
}

func (w *nodeWriter) removeRow(a *model.Allocation) {
	w.ownRows()
	at := w.findRow(a)
	w.u.rows = slices.Delete(w.u.rows, at, at+1)
	if a.Job.HasEvictionRules() {
		w.u.guarded--
	}
	w.take(a, -1)
}

// take takes what an allocation asks for off the node's room; sign -1 gives it
// back.
func (w *nodeWriter) take(a *model.Allocation, sign int) {
	ask := &a.Group.Ask
	for _, d := range ask.Dims {
		w.c.free[int(d)*ChunkSize+w.i] -= int64(sign) * ask.Vec[d]
	}
	if len(ask.Ports) > 0 {
		x := w.extra()
		for _, p := range ask.Ports {
			x.ports = countPort(x.ports, p, sign)
		}
	}
	if len(a.Devices) > 0 {
		takeDevices(w.extra().devices, w.c.Node(w.i), a.Devices, int32(sign))
	}
}

// countPort keeps ports a sorted multiset, so that giving back one of two
// holders of a port leaves it taken.
func countPort(ports []uint16, p uint16, sign int) []uint16 {
	at, found := slices.BinarySearch(ports, p)
	switch {
	case sign > 0:
		return slices.Insert(ports, at, p)
	case !found:
		panic("state: freed port was not taken")
	}
	return slices.Delete(ports, at, at+1)
}

// takeDevices leaves out device groups that the node no longer has.
func takeDevices(free []int32, n *model.Node, uses []model.DeviceUse, sign int32) {
	if n == nil {
		return
	}
	for _, u := range uses {
		if at := n.DevicePosition(u.ID); at >= 0 {
			free[at] -= sign * u.Count
		}
	}
}

func (w *nodeWriter) addStopping(a *model.Allocation) {
	x := w.extra()
	at, found := findAlloc(x.stopping, a.ID)
	if found {
		x.stopping[at] = a
		return
	}
	x.stopping = slices.Insert(x.stopping, at, a)
}

func (w *nodeWriter) removeStopping(a *model.Allocation) {
	x := w.extra()
	at, found := findAlloc(x.stopping, a.ID)
	if !found {
		panic("state: stopping allocation " + a.ID + " is not on its node")
	}
	x.stopping = slices.Delete(x.stopping, at, at+1)
}

func findAlloc(as []*model.Allocation, id string) (int, bool) {
	return slices.BinarySearchFunc(as, id, func(a *model.Allocation, id string) int {
		return strings.Compare(a.ID, id)
	})
}

func (w *nodeWriter) addClaim(c *model.Claim) {
	x := w.extra()
	at, _ := findClaim(x.claims, c.ID)
	x.claims = slices.Insert(x.claims, at, c)
	w.roomChanged()
}

func (w *nodeWriter) removeClaim(c *model.Claim) {
	x := w.extra()
	at, _ := findClaim(x.claims, c.ID)
	x.claims = slices.Delete(x.claims, at, at+1)
	w.roomChanged()
	w.release()
}

func findClaim(cs []*model.Claim, id string) (int, bool) {
	return slices.BinarySearchFunc(cs, id, func(c *model.Claim, id string) int {
		return strings.Compare(c.ID, id)
	})
}

// setNode puts another version of the node under what is on it; nil takes it
// away.
func (w *nodeWriter) setNode(n *model.Node) {
	s := w.still()
	w.t.countTaints(s.nodes[w.i], n)
	var avail model.Vector
	if n != nil {
		avail = n.Avail
	}
	for d := range w.t.dims.Len() {
		at := d*ChunkSize + w.i
		w.c.free[at] += avail[d] - s.avail[at]
		s.avail[at] = avail[d]
	}
	s.nodes[w.i] = n
	w.resetPortsAndDevices(n)
	w.setSchedulable(n)
}

// setStatus puts in another version of the node that differs in status alone.
func (w *nodeWriter) setStatus(n *model.Node) {
	w.still().nodes[w.i] = n
	w.setSchedulable(n)
}

func (w *nodeWriter) setSchedulable(n *model.Node) {
	bit := uint64(1) << w.i
	if n != nil && n.IsEligible() {
		w.c.still.schedulable |= bit
	} else {
		w.c.still.schedulable &^= bit
	}
	w.roomChanged()
}

func (w *nodeWriter) still() *still {
	s := w.c.still
	if s.owner != w.t.owner {
		own := *s
		own.owner, own.avail = w.t.owner, slices.Clone(s.avail)
		s = &own
		w.c.still = s
	}
	return s
}

// resetPortsAndDevices recounts what positions in Node.Devices and the host's
// own ports enter into.
func (w *nodeWriter) resetPortsAndDevices(n *model.Node) {
	var ports []uint16
	var devices []int32
	if n != nil {
		ports = slices.Clone(n.Ports)
		for _, d := range n.Devices {
			devices = append(devices, d.Count)
		}
	}
	for _, r := range w.u.rows {
		ports = append(ports, r.Group.Ask.Ports...)
		takeDevices(devices, n, r.Alloc.Devices, 1)
	}
	if x := w.u.extra; x == nil && ports == nil && devices == nil {
		return
	}
	slices.Sort(ports)
	x := w.extra()
	x.ports, x.devices = ports, devices
}

// roomChanged notes that what the node has left, or who takes it, is new.
func (w *nodeWriter) roomChanged() {
	w.c.modifyIndex[w.i] = w.t.index
	w.c.maxModifyIndex = w.t.index
	lowest := int32(math.MaxInt32)
	for _, r := range w.u.rows {
		if !r.Alloc.Job.NonPreemptible {
			lowest = r.Priority
			break
		}
	}
	w.c.minPriority[w.i] = lowest
	w.mark(&w.c.pinned, len(w.u.rows) > 0 && w.u.rows[0].Alloc.Job.NonPreemptible)
	w.mark(&w.c.guarded, w.u.guarded > 0)
	w.mark(&w.c.claimed, w.u.extra != nil && len(w.u.extra.claims) > 0)
}

// mark sets or clears the node's bit.
func (w *nodeWriter) mark(bits *uint64, set bool) {
	if bit := uint64(1) << w.i; set {
		*bits |= bit
	} else {
		*bits &^= bit
	}
}

// release gives the position back when neither a node is registered there nor
// anything refers to it.
func (w *nodeWriter) release() {
	if w.c.Node(w.i) != nil || len(w.u.rows) > 0 {
		return
	}
	if x := w.u.extra; x != nil && (len(x.stopping) > 0 || len(x.claims) > 0) {
		return
	}
	w.c.uses[w.i] = nil
	w.t.dropPlace(w.pos)
}
