package state

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// Check recomputes everything that is derived from nodes, allocations and claims,
// and returns an error that describes the first difference. It costs a walk over
// the whole state and is meant for tests and simulations.
func (sn *Snapshot) Check() error {
	// Allocations are the source of truth. They are grouped once, so that every
	// derived structure is compared with an independent computation and not with
	// another derived structure.
	byNode := map[string][]*model.Allocation{}
	byJob := map[model.JobKey]int{}
	allocs := 0
	for a := range sn.Allocs() {
		allocs++
		byJob[a.Job.Key()]++
		if !a.Client.Terminal() {
			byNode[a.NodeID] = append(byNode[a.NodeID], a)
		}
		if sn.Alloc(a.ID) != a {
			return fmt.Errorf("allocation %s is not found by its id", a.ID)
		}
	}
	if allocs != sn.AllocCount() {
		return fmt.Errorf("%d allocations by job, %d by id", allocs, sn.AllocCount())
	}
	// A row of the job table exists while anything refers to it. An empty row would
	// leak a slot, and an index that still points to it would find the next job of
	// that slot.
	for _, slot := range sn.sortedJobs() {
		r := sn.jobs.At(slot)
		if r.isEmpty() {
			return fmt.Errorf("job %s has an empty row", r.key)
		}
		if got := sn.JobAllocCount(r.key); got != byJob[r.key] {
			return fmt.Errorf("job %s counts %d allocations, has %d", r.key, got, byJob[r.key])
		}
	}
	// Claims on member clusters are compared in checkBindings.
	claims := map[string][]*model.Claim{}
	for c := range sn.Claims() {
		if c.ClusterID == "" {
			claims[c.NodeID] = append(claims[c.NodeID], c)
		}
	}
	if err := sn.checkNodes(byNode, claims); err != nil {
		return err
	}
	if err := sn.checkEvals(); err != nil {
		return err
	}
	if err := sn.checkPerNodeJobs(); err != nil {
		return err
	}
	if err := sn.checkSmallTables(); err != nil {
		return err
	}
	if err := sn.checkBudgets(); err != nil {
		return err
	}
	return sn.checkLabels()
}

// checkNodes compares the node table with the allocations and claims of each node. It
// removes from byNode and claims what it has found, so that the rest has no position.
// Both maps are consumed by the call.
func (sn *Snapshot) checkNodes(byNode map[string][]*model.Allocation, claims map[string][]*model.Claim) error {
	nodes := 0
	members := map[uint64]int32{}
	for pos := range int32(sn.positions.Size()) {
		id := sn.positions.At(pos)
		n := sn.NodeAt(pos)
		if n != nil {
			nodes++
			members[n.ClassKey]++
			if p, ok := sn.Position(n.ID); !ok || p != pos {
				return fmt.Errorf("node %s is at %d, found at %d (%t)", n.ID, pos, p, ok)
			}
		}
		// A deleted node keeps its position while allocations or claims refer to it,
		// because they return to it if the node registers again. Otherwise the
		// position must be free.
		if free := id == ""; !free && n == nil && len(byNode[id]) == 0 && len(claims[id]) == 0 {
			return fmt.Errorf("position %d is used by %s, which nothing refers to", pos, id)
		}
		if err := sn.checkNode(pos, n, byNode[id], claims[id]); err != nil {
			return fmt.Errorf("node %q at %d: %w", id, pos, err)
		}
		delete(byNode, id)
		delete(claims, id)
	}
	if nodes != sn.nodes || len(sn.NodeOrder()) != nodes {
		return fmt.Errorf("%d nodes, counted %d, ordered %d", nodes, sn.nodes, len(sn.NodeOrder()))
	}
	if err := sn.checkClasses(members); err != nil {
		return err
	}
	if len(byNode) > 0 || len(claims) > 0 {
		return fmt.Errorf("allocations on %d and claims on %d nodes without a position", len(byNode), len(claims))
	}
	// Readers find a node by binary search in this order, and ties are broken by it.
	if !slices.IsSortedFunc(sn.NodeOrder(), func(a, b int32) int {
		return strings.Compare(sn.NodeAt(a).ID, sn.NodeAt(b).ID)
	}) {
		return fmt.Errorf("node order is not ascending")
	}
	return nil
}

// checkClasses compares the classes with the expected number of nodes of each.
func (sn *Snapshot) checkClasses(members map[uint64]int32) error {
	if sn.classes.Len() != len(members) {
		return fmt.Errorf("%d classes, nodes are of %d", sn.classes.Len(), len(members))
	}
	for key, n := range members {
		if id, ok := sn.findClass(key); !ok || sn.classes.At(id).nodes != n {
			return fmt.Errorf("class %x does not count %d nodes", key, n)
		}
	}
	return nil
}

// expected is the content of a position, computed from its node and allocations
// alone. Its fields correspond to the columns of a chunk.
type expected struct {
	free, avail model.Vector
	ports       []uint16
	devices     []int32
	rows        []Row
	stopping    []*model.Allocation
	lowest      int32
	guarded     bool
	annotated   bool
}

// expect computes the content of a position. n is nil if the node was deleted; its
// capacity is then zero, so that free capacity is negative while allocations remain.
func expect(n *model.Node, allocs []*model.Allocation) expected {
	e := expected{lowest: math.MaxInt32}
	if n != nil {
		e.free, e.avail = n.Avail, n.Avail
		e.ports = slices.Clone(n.Ports)
		for _, d := range n.Devices {
			e.devices = append(e.devices, d.Count)
		}
	}
	for _, a := range allocs {
		// A stopping allocation holds no capacity in the state: new work is placed on
		// its capacity and starts once it has stopped.
		if a.Desired != model.DesiredRun {
			e.stopping = append(e.stopping, a)
			continue
		}
		e.rows = append(e.rows, rowOf(a))
		e.free.Sub(&a.Group.Ask.Vec)
		e.ports = append(e.ports, a.Group.Ask.Ports...)
		subtractDevices(e.devices, n, a.Devices, 1)
		e.guarded = e.guarded || a.Job.HasEvictionRules()
		e.annotated = e.annotated || len(a.Group.Annotations) > 0
		if !a.Job.NonPreemptible {
			e.lowest = min(e.lowest, a.Job.Priority)
		}
	}
	// Rows are sorted as policies see them: by priority, and by ID within a priority.
	slices.SortFunc(e.rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Alloc.ID, b.Alloc.ID))
	})
	slices.SortFunc(e.stopping, func(a, b *model.Allocation) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(e.ports)
	return e
}

// checkNode compares one position with what its allocations and claims result in. The
// cases are ordered from the structure to the sums, so that the first difference is
// the cause of the others.
func (sn *Snapshot) checkNode(pos int32, n *model.Node, allocs []*model.Allocation, claims []*model.Claim) error {
	c, i := sn.chunks[pos/ChunkSize], int(pos%ChunkSize)
	want := expect(n, allocs)
	x, room := c.extra(i), c.FreeCapacity(i)
	switch {
	case i >= c.Len():
		return fmt.Errorf("beyond the chunk's %d positions", c.Len())
	case n != nil && sn.ClassKey(c.Class(i)) != n.ClassKey:
		return fmt.Errorf("class %d is of another key", c.Class(i))
	case (c.Eligible()>>i&1 == 1) != (n != nil && n.IsEligible()):
		return fmt.Errorf("eligible bit is wrong")
	case !slices.Equal(c.Rows(i), want.rows):
		return fmt.Errorf("has %d rows, want %d, or others", len(c.Rows(i)), len(want.rows))
	case !slices.Equal(x.stopping, want.stopping):
		return fmt.Errorf("has %d stopping, want %d, or others", len(x.stopping), len(want.stopping))
	case !slices.Equal(room.Ports, want.ports):
		return fmt.Errorf("has ports %v taken, want %v", room.Ports, want.ports)
	case !slices.Equal(room.Devices, want.devices):
		return fmt.Errorf("has devices %v free, want %v", room.Devices, want.devices)
	case !slices.Equal(x.claims, claims):
		return fmt.Errorf("has %d claims, want %d, or others", len(x.claims), len(claims))
	case c.MinPriority(i) != want.lowest:
		return fmt.Errorf("has minimum priority %d, want %d", c.MinPriority(i), want.lowest)
	case (c.LowestNonPreemptible()>>i&1 == 1) != (len(want.rows) > 0 && want.rows[0].Alloc.Job.NonPreemptible):
		return fmt.Errorf("lowest-non-preemptible bit is wrong")
	case (c.HasEvictionRules()>>i&1 == 1) != want.guarded:
		return fmt.Errorf("eviction-rules bit is wrong")
	case (c.HasAnnotations()>>i&1 == 1) != want.annotated:
		return fmt.Errorf("annotations bit is wrong")
	case (c.HasClaims()>>i&1 == 1) != (len(claims) > 0):
		return fmt.Errorf("claimed bit is wrong")
	// Blocking queries compare the index of a chunk before those of its positions. If
	// the chunk's index were lower, they would miss a change.
	case c.ModifyIndex(i) > c.MaxModifyIndex():
		return fmt.Errorf("changed at %d, the chunk at %d", c.ModifyIndex(i), c.MaxModifyIndex())
	}
	for d := range sn.dims.Len() {
		if c.Free(d)[i] != want.free[d] || c.Avail(d)[i] != want.avail[d] {
			return fmt.Errorf("%s: %d of %d free, want %d of %d",
				sn.dims.Name(d), c.Free(d)[i], c.Avail(d)[i], want.free[d], want.avail[d])
		}
	}
	return nil
}

// checkEvals compares the evaluations of each job with the table of all evaluations.
// Both are in order of creation, so that equal sets are equal lists.
func (sn *Snapshot) checkEvals() error {
	jobs := map[model.JobKey][]*model.Evaluation{}
	evals := 0
	for e := range sn.Evals() {
		evals++
		jobs[e.JobKey()] = append(jobs[e.JobKey()], e)
	}
	if evals != sn.EvalCount() {
		return fmt.Errorf("%d evaluations in order, %d by id", evals, sn.EvalCount())
	}
	for key, want := range jobs {
		if !slices.Equal(sn.EvalsOfJob(key), want) {
			return fmt.Errorf("job %s has other evaluations than the table", key)
		}
		pending := slices.DeleteFunc(want, func(e *model.Evaluation) bool { return e.Status.Final() })
		if !slices.Equal(sn.PendingEvals(key), pending) {
			return fmt.Errorf("job %s has other pending evaluations than the table", key)
		}
	}
	return nil
}

// checkPerNodeJobs compares the list of system jobs with the job table. A job that is
// missing in the list would not be evaluated when a node becomes ready.
func (sn *Snapshot) checkPerNodeJobs() error {
	listed := map[model.JobKey]bool{}
	for slot := range sn.perNode.All {
		listed[sn.jobs.At(slot).key] = true
	}
	for j := range sn.Jobs() {
		if j.Type.PerNode() != listed[j.Key()] {
			return fmt.Errorf("job %s: per node %t, listed %t", j.Key(), j.Type.PerNode(), listed[j.Key()])
		}
		delete(listed, j.Key())
	}
	if len(listed) > 0 {
		return fmt.Errorf("%d deleted jobs are listed as per-node jobs", len(listed))
	}
	return nil
}

// checkLabels verifies that every retained version is listed under its labels, and
// that the number of listings agrees.
func (sn *Snapshot) checkLabels() error {
	listings := 0
	for _, slot := range sn.sortedJobs() {
		r := sn.jobs.At(slot)
		listings += len(r.labels)
		if r.job != nil {
			if err := sn.checkListed(r.job); err != nil {
				return err
			}
		}
	}
	for a := range sn.Allocs() {
		if err := sn.checkListed(a.Job); err != nil {
			return err
		}
	}
	// Every listing was counted once per job above. If the sum is positive now, an
	// index lacks a listing; if it is negative, an index has a stale one.
	for x := range labelIndexes {
		for slot := range int32(sn.labels[x].Size()) {
			if row := sn.labels[x].At(slot); row != nil {
				listings -= row.jobs.Len()
			}
		}
	}
	if listings != 0 {
		return fmt.Errorf("jobs have %d more listings than labels", listings)
	}
	return nil
}

// checkListed verifies that a job version is listed under each of its labels, in the
// index of labels and in that of separation terms. It reads each list up to the job, so
// the walk is quadratic for a label that all jobs share; the check is for tests.
func (sn *Snapshot) checkListed(j *model.Job) error {
	for x, labels := range [labelIndexes][]label{byLabel: labelsOf(j), bySeparation: separationLabelsOf(j)} {
		for _, l := range labels {
			found := false
			sn.eachListed(labelIndex(x), l, func(key model.JobKey) bool {
				found = key == j.Key()
				return !found
			})
			if !found {
				return fmt.Errorf("job %s is not listed under %s=%s", j.Key(), l.key, l.value)
			}
		}
	}
	return nil
}

// checkBudgets recounts the allocations of each budget. The counts are maintained
// incrementally by every change of an allocation, of its node and of a job's count.
func (sn *Snapshot) checkBudgets() error {
	if sn.budgetCounts.Len() != len(sn.budgets.list) {
		return fmt.Errorf("%d budgets, %d counts", len(sn.budgets.list), sn.budgetCounts.Len())
	}
	for i, b := range sn.budgets.list {
		var want budgetCount
		for j := range sn.Jobs() {
			for _, g := range sn.jobRow(j.Key()).countedGroups() {
				if b.Matches(g) {
					want.addGroup(g, 1)
				}
			}
		}
		for a := range sn.Allocs() {
			want.count(b, sn.jobRow(a.Job.Key()), a, sn.isAvailable(a))
		}
		got := sn.budgetCounts.At(i)
		want.recent = got.recent // not derivable: the allocations may be deleted
		if got != want {
			return fmt.Errorf("budget %s counts %+v, has %+v", b.Key(), got, want)
		}
	}
	return nil
}
