package state

import (
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// Everything that is in use on a node changes in this file and nowhere else: free
// capacity, ports, devices, the rows that policies see, and the lists of stopping
// allocations and claims. Check in check.go recomputes all of it.

// A nodeWriter is one node position opened for writing.
type nodeWriter struct {
	nodes *nodeTable
	owner cow.Owner
	index uint64
	c     *Chunk
	i     int // in c
	u     *use
	pos   int32
}

// account replaces the use of one allocation on its node: old and next are two versions
// of it, nil if there is none. Both must be on the same node. Every write of an
// allocation goes through it, so its common case, a new status of a running allocation,
// replaces one row. It costs a copy of the node's rows, once for each node and
// transaction.
func (t AllocWriter) account(old, next *model.Allocation) {
	if len(t.budgets.list) > 0 {
		BudgetWriter(t).countAlloc(old, next)
	}
	was, is := accountStateOf(old), accountStateOf(next)
	if was == absent && is == absent {
		return
	}
	if was == live || is == live {
		t.recordCohortChange(old, next, was, is)
	}
	some := next
	if next == nil {
		some = old
	}
	w := t.openNode(some.NodeID)
	if next != nil {
		// The allocation is not published yet, so it may be written.
		next.NodePos = w.pos
	}
	t.touch(TableNodeAllocs.Of(some.NodeID))
	if was == live && is == live && usesSame(old, next) {
		w.replaceRow(next)
		w.capacityChanged()
		return
	}
	// The old version is removed before the next is added, because both may have the
	// same row.
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
		w.capacityChanged()
	}
	// A position without node, allocations and claims is reused for another node.
	if is == absent {
		w.releasePosition()
	}
}

// accountState is how an allocation counts on its node.
type accountState uint8

const (
	absent   accountState = iota // missing, or with a terminal client status
	stopping                     // not desired, but may still run
	live                         // counts against the capacity of the node
)

// accountStateOf returns how a version of an allocation counts. One that ended is
// absent even if it is still desired, so the order of the cases matters.
func accountStateOf(a *model.Allocation) accountState {
	switch {
	case a == nil || a.Client.Terminal():
		return absent
	case a.Desired == model.DesiredRun:
		return live
	}
	return stopping
}

// usesSame reports whether two versions of an allocation use the same. A group
// belongs to one version of one job, so it stands for the request and the priority.
func usesSame(a, b *model.Allocation) bool {
	return a.Group == b.Group && slices.Equal(a.Devices, b.Devices)
}

// openNode opens a node for writing. It adds a position if the ID has none. The node
// need not be registered: allocations and claims may outlive it, and count again if it
// registers once more.
func (t *branch) openNode(nodeID string) nodeWriter {
	pos, ok := t.findPosition(nodeID)
	if !ok {
		pos = t.addPosition(t.ownerOfNodes(), t.dims.Len(), nodeID)
	}
	return t.openPosition(pos)
}

// openPosition opens a position for writing. Snapshots share chunks and uses with the
// transaction: whatever another transaction owns is copied before the first write. It
// copies the chunk (64 nodes) at most once for each transaction.
func (t *branch) openPosition(pos int32) nodeWriter {
	owner := t.ownerOfNodes()
	c, i := t.ownChunk(owner, int(pos/ChunkSize)), int(pos%ChunkSize)
	u := c.uses[i]
	switch {
	case u == nil:
		u = &use{owner: owner}
		c.uses[i] = u
	case u.owner != owner:
		own := *u
		own.owner = owner
		u = &own
		c.uses[i] = u
	}
	return nodeWriter{nodes: &t.nodeTable, owner: owner, index: t.index, c: c, i: i, u: u, pos: pos}
}

// ownerOfNodes returns the owner of what the transaction writes about nodes.
func (t *branch) ownerOfNodes() cow.Owner {
	if t.nodeOwner != 0 {
		return t.nodeOwner
	}
	return t.owner
}

// ownExtra returns the extra of the node for writing. Most nodes have none: it exists
// only if ports, devices, stopping allocations or claims are in use.
func (w *nodeWriter) ownExtra() *extra {
	x := w.u.extra
	switch {
	case x == nil:
		x = &extra{owner: w.owner}
	case x.owner != w.owner:
		x = &extra{
			owner: w.owner, ports: slices.Clone(x.ports), devices: slices.Clone(x.devices),
			stopping: slices.Clone(x.stopping), claims: slices.Clone(x.claims),
		}
	}
	w.u.extra = x
	return x
}

// searchRow returns the position at which the row of an allocation is, or belongs.
// It is slices.BinarySearchFunc by hand: the hottest comparison of a write.
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

// findRow returns the position of an allocation's row. It panics if there is none,
// because the accounting of the node is then wrong and every later decision on it
// would be.
func (w *nodeWriter) findRow(a *model.Allocation) int {
	at := searchRow(w.u.rows, a)
	if at == len(w.u.rows) || w.u.rows[at].Alloc.ID != a.ID {
		panic("state: live allocation " + a.ID + " is not on its node")
	}
	return at
}

// replaceRow replaces the version of an allocation that uses the same resources. The
// sort key of a row is the job's priority and the ID, which do not change with the
// status.
func (w *nodeWriter) replaceRow(next *model.Allocation) {
	w.ownRows()
	row := &w.u.rows[w.findRow(next)]
	row.Alloc, row.Started, row.Start = next, next.Started, startOf(next)
}

// ownRows copies the rows if another transaction owns them.
func (w *nodeWriter) ownRows() {
	if u := w.u; u.rowsOwner != w.owner {
		u.rows, u.rowsOwner = slices.Clone(u.rows), w.owner
	}
}

// insertRow copies shared rows around the gap instead of copying them and then
// moving half of them: nodes may have hundreds.
func (w *nodeWriter) insertRow(at int, row Row) {
	u := w.u
	if u.rowsOwner == w.owner {
		u.rows = slices.Insert(u.rows, at, row)
		return
	}
	rows := make([]Row, len(u.rows)+1)
	copy(rows, u.rows[:at])
	rows[at] = row
	copy(rows[at+1:], u.rows[at:])
	u.rows, u.rowsOwner = rows, w.owner
}

// addRow adds a live allocation and subtracts its request from the free capacity.
// Allocations whose jobs restrict evictions and those with annotations are counted, so
// that the victim search can skip those checks on most nodes.
func (w *nodeWriter) addRow(a *model.Allocation) {
	row := rowOf(a)
	w.insertRow(searchRow(w.u.rows, a), row)
	if a.Job.HasEvictionRules() {
		w.u.withRules++
	}
	if len(a.Group.Annotations) > 0 {
		w.u.annotated++
	}
	w.subtract(a, 1)
}

// removeRow removes a live allocation and returns its request to the free capacity.
func (w *nodeWriter) removeRow(a *model.Allocation) {
	w.ownRows()
	at := w.findRow(a)
	w.u.rows = slices.Delete(w.u.rows, at, at+1)
	if a.Job.HasEvictionRules() {
		w.u.withRules--
	}
	if len(a.Group.Annotations) > 0 {
		w.u.annotated--
	}
	w.subtract(a, -1)
}

// subtract takes the request of an allocation off the free capacity of the node;
// sign -1 returns it.
func (w *nodeWriter) subtract(a *model.Allocation, sign int) {
	ask := &a.Group.Ask
	for _, d := range ask.Dims {
		w.c.free[int(d)*ChunkSize+w.i] -= int64(sign) * ask.Vec[d]
	}
	if len(ask.Ports) > 0 {
		x := w.ownExtra()
		for _, p := range ask.Ports {
			x.ports = countPort(x.ports, p, sign)
		}
	}
	if len(a.Devices) > 0 {
		subtractDevices(w.ownExtra().devices, w.c.Node(w.i), a.Devices, int32(sign))
	}
}

// countPort maintains ports as a sorted multiset, so that a port with two holders
// remains taken when one of them ends. Freeing a port that is not taken means that the
// accounting is wrong, and panics.
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

// subtractDevices subtracts the devices that an allocation uses from the free ones.
// It ignores device groups that the node no longer has: a node may register again
// with fewer devices.
func subtractDevices(free []int32, n *model.Node, uses []model.DeviceUse, sign int32) {
	if n == nil {
		return
	}
	for _, u := range uses {
		if at := n.DevicePosition(u.ID); at >= 0 {
			free[at] -= sign * u.Count
		}
	}
}

// addStopping lists an allocation that is stopping. It holds no capacity, but
// placements that use its capacity must wait for its end.
func (w *nodeWriter) addStopping(a *model.Allocation) {
	x := w.ownExtra()
	at, found := searchAlloc(x.stopping, a.ID)
	if found {
		x.stopping[at] = a
		return
	}
	x.stopping = slices.Insert(x.stopping, at, a)
}

// removeStopping removes an allocation from the list. It panics if the allocation is
// not listed, for the reason given at findRow.
func (w *nodeWriter) removeStopping(a *model.Allocation) {
	x := w.ownExtra()
	at, found := searchAlloc(x.stopping, a.ID)
	if !found {
		panic("state: stopping allocation " + a.ID + " is not on its node")
	}
	x.stopping = slices.Delete(x.stopping, at, at+1)
}

// searchAlloc returns the position of an ID in a list that is ascending by ID.
func searchAlloc(as []*model.Allocation, id string) (int, bool) {
	return slices.BinarySearchFunc(as, id, func(a *model.Allocation, id string) int {
		return strings.Compare(a.ID, id)
	})
}

// addClaim lists a claim on the node. A claim changes the capacity for all but its
// claimant.
func (w *nodeWriter) addClaim(c *model.Claim) {
	x := w.ownExtra()
	at, _ := searchClaim(x.claims, c.ID)
	x.claims = slices.Insert(x.claims, at, c)
	w.capacityChanged()
}

// removeClaim removes a claim from the list. It may have been the last reference to a
// node that was deleted.
func (w *nodeWriter) removeClaim(c *model.Claim) {
	x := w.ownExtra()
	at, _ := searchClaim(x.claims, c.ID)
	x.claims = slices.Delete(x.claims, at, at+1)
	w.capacityChanged()
	w.releasePosition()
}

// setNode replaces the node at the position; nil deletes it. Free capacity changes by
// the difference of the two versions' capacities, because allocations are not
// recounted.
func (w *nodeWriter) setNode(n *model.Node) {
	s := w.ownStatic()
	w.nodes.countTaints(s.nodes[w.i], n)
	var avail model.Vector
	if n != nil {
		avail = n.Avail
	}
	for d := range len(s.avail) / ChunkSize {
		at := d*ChunkSize + w.i
		w.c.free[at] += avail[d] - s.avail[at]
		s.avail[at] = avail[d]
	}
	s.nodes[w.i] = n
	w.resetPortsAndDevices(n)
	w.setEligible(n)
}

// setStatus replaces the node by a version that differs in status alone. Capacity,
// ports and devices stay as they are, which makes a change of status cheap when
// thousands of nodes fail together.
func (w *nodeWriter) setStatus(n *model.Node) {
	w.ownStatic().nodes[w.i] = n
	w.setEligible(n)
}

// setEligible maintains the bit that the search for feasible nodes tests first.
func (w *nodeWriter) setEligible(n *model.Node) {
	setBit(&w.c.static.eligible, w.i, n != nil && n.IsEligible())
	w.capacityChanged()
}

// ownStatic returns the static part of the chunk for writing. Capacities change rarely,
// so chunks of many snapshots share one static part.
func (w *nodeWriter) ownStatic() *static {
	s := w.c.static
	if s.owner != w.owner {
		own := *s
		own.owner, own.avail = w.owner, slices.Clone(s.avail)
		s = &own
		w.c.static = s
	}
	return s
}

// resetPortsAndDevices recounts the ports and devices in use. They depend on
// positions in Node.Devices and on the ports of the host itself.
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
		subtractDevices(devices, n, r.Alloc.Devices, 1)
	}
	if x := w.u.extra; x == nil && ports == nil && devices == nil {
		return
	}
	slices.Sort(ports)
	x := w.ownExtra()
	x.ports, x.devices = ports, devices
}

// capacityChanged records that the free capacity of the node, or its users, changed,
// and derives the columns that the victim search scans. It must be called after every
// change of rows or claims: a column that lags behind would exclude victims, or offer
// protected ones, without any error.
func (w *nodeWriter) capacityChanged() {
	w.c.modifyIndex[w.i] = w.index
	w.c.maxModifyIndex = w.index
	lowest := int32(math.MaxInt32)
	for _, r := range w.u.rows {
		if !r.Alloc.Job.NonPreemptible {
			lowest = r.Priority
			break
		}
	}
	w.c.minPriority[w.i] = lowest
	setBit(&w.c.lowestNonPreemptible, w.i, len(w.u.rows) > 0 && w.u.rows[0].Alloc.Job.NonPreemptible)
	setBit(&w.c.withRules, w.i, w.u.withRules > 0)
	setBit(&w.c.withAnnotations, w.i, w.u.annotated > 0)
	setBit(&w.c.withClaims, w.i, w.u.extra != nil && len(w.u.extra.claims) > 0)
}

// setBit sets or clears the bit of position i.
func setBit(bits *uint64, i int, set bool) {
	if bit := uint64(1) << i; set {
		*bits |= bit
	} else {
		*bits &^= bit
	}
}

// releasePosition frees the position if no node is registered there and nothing
// refers to it.
func (w *nodeWriter) releasePosition() {
	if w.c.Node(w.i) != nil || len(w.u.rows) > 0 {
		return
	}
	if x := w.u.extra; x != nil && (len(x.stopping) > 0 || len(x.claims) > 0) {
		return
	}
	w.c.uses[w.i] = nil
	w.nodes.deletePosition(w.owner, w.pos)
}
