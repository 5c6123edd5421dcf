package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// clusterTable holds a row for each member cluster.
type clusterTable struct {
	clusters     cow.Table[*clusterRow]
	clusterOrder *cow.Ordering
}

func newClusterTable() clusterTable { return clusterTable{clusterOrder: &cow.Ordering{}} }

// A clusterRow is a member cluster with its assignments and claims. It exists as long
// as any of them does. Invariant: held and stopping are the sums over assigned. Check
// verifies it.
type clusterRow struct {
	owner    cow.Owner
	id       string
	cluster  *model.Cluster      // nil if it is not registered
	held     model.Vector        // by assigned, stopping ones included
	stopping model.Vector        // of held, by stopping assignments
	assigned []*model.Assignment // that hold capacity, ascending by ID; replaced as a whole
	jobs     []int32             // by position in assigned: row of the binding; replaced as a whole
	claims   []*model.Claim      // ascending by ID; replaced as a whole
	changed  uint64              // index at which its free capacity last changed
}

func (v *clusterTable) findCluster(id string) (int32, bool) {
	return v.clusters.Find(hashID(id), func(slot int32) bool { return v.clusters.At(slot).id == id })
}

func (v *clusterTable) clusterRow(id string) *clusterRow {
	if slot, ok := v.findCluster(id); ok {
		return v.clusters.At(slot)
	}
	return nil
}

// Cluster returns the member cluster with the ID, or nil if there is none.
func (v *clusterTable) Cluster(id string) *model.Cluster {
	if r := v.clusterRow(id); r != nil {
		return r.cluster
	}
	return nil
}

// Clusters yields the member clusters, ascending by ID.
func (v *clusterTable) Clusters() iter.Seq[*model.Cluster] {
	return func(yield func(*model.Cluster) bool) {
		for _, slot := range v.sortedClusters() {
			if c := v.clusters.At(slot).cluster; c != nil && !yield(c) {
				return
			}
		}
	}
}

// sortedClusters returns the rows in use, including rows without a cluster.
func (v *clusterTable) sortedClusters() []int32 {
	return v.clusterOrder.Slots(v.clusters.Size(),
		func(slot int32) bool { return v.clusters.At(slot) != nil },
		func(a, b int32) int { return strings.Compare(v.clusters.At(a).id, v.clusters.At(b).id) })
}

// ClusterAssignments returns the assignments that hold capacity on a cluster,
// stopping ones included, ascending by ID. The slice is shared and read-only.
func (v *clusterTable) ClusterAssignments(id string) []*model.Assignment {
	if r := v.clusterRow(id); r != nil {
		return r.assigned
	}
	return nil
}

// ClusterWorkload yields the ClusterAssignments, each with its binding, or nil if
// the binding was deleted.
func (v *View) ClusterWorkload(id string) iter.Seq2[*model.Assignment, *model.Binding] {
	return func(yield func(*model.Assignment, *model.Binding) bool) {
		r := v.clusterRow(id)
		if r == nil {
			return
		}
		for i, a := range r.assigned {
			if !yield(a, v.jobs.At(r.jobs[i]).binding) {
				return
			}
		}
	}
}

// ClusterClaims returns the claims on a cluster, including expired ones, ascending
// by ID. The slice is shared and read-only.
func (v *clusterTable) ClusterClaims(id string) []*model.Claim {
	if r := v.clusterRow(id); r != nil {
		return r.claims
	}
	return nil
}

// HasClaimOn reports whether a binding has a claim on a cluster.
func (v *clusterTable) HasClaimOn(cluster string, claimant model.JobKey) bool {
	return slices.ContainsFunc(v.ClusterClaims(cluster), func(c *model.Claim) bool { return c.Claimant == claimant })
}

// ClusterFreeCapacity returns the offer of a cluster to a requester at now, in Unix
// nanoseconds: free at once, and soon, when all stopping assignments have ended. Claims
// of others that count against the requester are subtracted from both. A cluster that is
// missing or down offers nothing. Amounts may be negative if the cluster reports less
// capacity than its assignments hold.
func (v *clusterTable) ClusterFreeCapacity(id string, requester model.JobKey, priority int32, now int64) (free, soon model.Vector) {
	r := v.clusterRow(id)
	if r == nil || r.cluster == nil || r.cluster.Down {
		return free, soon
	}
	free = r.cluster.Avail
	free.Sub(&r.held)
	for _, c := range r.claims {
		if c.CountsAgainst(requester, priority, now) {
			free.Sub(&c.Vec)
		}
	}
	soon = free
	soon.Add(&r.stopping)
	return free, soon
}

// ClusterLeasedBelow returns the capacity that a cluster reserves for other pools at
// priorities below the given one. ClusterFreeCapacity includes it: if a binding
// uses it, the leases of the other pools are revoked.
func (v *clusterTable) ClusterLeasedBelow(id string, priority int32) (leased model.Vector) {
	if r := v.clusterRow(id); r != nil {
		for _, c := range r.claims {
			if c.IsForeign() && c.Priority < priority {
				leased.Add(&c.Vec)
			}
		}
	}
	return leased
}

// ClusterChangeIndex returns the index at which the free capacity of a cluster last
// changed, or 0 if the cluster is unknown.
func (v *clusterTable) ClusterChangeIndex(id string) uint64 {
	if r := v.clusterRow(id); r != nil {
		return r.changed
	}
	return 0
}

// ownCluster returns the row of an ID for writing at an index. It inserts the row if
// there is none. A row is opened only to change its capacity, claims or status, so
// changed is set here.
func (v *clusterTable) ownCluster(o cow.Owner, index uint64, id string) *clusterRow {
	slot, ok := v.findCluster(id)
	if !ok {
		r := &clusterRow{owner: o, id: id, changed: index}
		slot = v.clusters.Insert(o, hashID(id), r)
		v.clusterOrder = v.clusterOrder.With(o, slot)
		return r
	}
	r := v.clusters.At(slot)
	if r.owner == o {
		r.changed = index
		return r
	}
	own := *r
	own.owner, own.changed = o, index
	v.clusters.Set(o, slot, &own)
	return &own
}

// releaseCluster deletes the row if nothing refers to the ID any more.
func (v *clusterTable) releaseCluster(o cow.Owner, r *clusterRow) {
	if r.cluster != nil || len(r.assigned) > 0 || len(r.claims) > 0 {
		return
	}
	slot, _ := v.findCluster(r.id)
	v.clusters.Delete(o, hashID(r.id), slot)
	v.clusterOrder = v.clusterOrder.With(o, slot)
}

// Upsert stores a member cluster, or another version of it. It compiles the
// cluster and sets its indexes. It returns model.ErrTooManyDimensions if the cluster
// names too many resources.
func (t ClusterWriter) Upsert(c *model.Cluster) error {
	if err := t.RequireDimensions(c.Capacity); err != nil {
		return err
	}
	r := t.ownCluster(t.owner, t.index, c.ID)
	if r.cluster == c {
		panic("state: cluster " + c.ID + " written again without a copy")
	}
	created := uint64(0)
	if r.cluster != nil {
		created = r.cluster.CreateIndex
	}
	t.stamp(&c.CreateIndex, &c.ModifyIndex, created)
	c.Compile(t.dims)
	r.cluster = c
	t.touch(TableClusters.Of(c.ID))
	return nil
}

// Delete deletes a member cluster, if it exists. Its assignments and claims
// remain until they are deleted.
func (t ClusterWriter) Delete(id string) {
	if t.Cluster(id) == nil {
		return
	}
	r := t.ownCluster(t.owner, t.index, id)
	r.cluster = nil
	t.touch(TableClusters.Of(id))
	t.releaseCluster(t.owner, r)
}

// account replaces what an assignment holds on its cluster: old and next are
// two versions of it, nil if there is none. job is the row of its binding, whose slot
// is stable as long as the assignment exists. It costs a copy of the cluster's lists,
// which are short in comparison with a node's.
func (t AssignmentWriter) account(job int32, old, next *model.Assignment) {
	some := next
	if next == nil {
		some = old
	}
	r := t.ownCluster(t.owner, t.index, some.ClusterID)
	if old != nil && old.HoldsCapacity() {
		at, found := searchAssignment(r.assigned, old.ID)
		if !found {
			panic("state: assignment " + old.ID + " is not on its cluster")
		}
		r.assigned = slices.Delete(slices.Clone(r.assigned), at, at+1)
		r.jobs = slices.Delete(slices.Clone(r.jobs), at, at+1)
		r.held.Sub(&old.Vec)
		if !old.Live() {
			r.stopping.Sub(&old.Vec)
		}
	}
	if next != nil && next.HoldsCapacity() {
		at, _ := searchAssignment(r.assigned, next.ID)
		r.assigned = slices.Insert(slices.Clone(r.assigned), at, next)
		r.jobs = slices.Insert(slices.Clone(r.jobs), at, job)
		r.held.Add(&next.Vec)
		if !next.Live() {
			r.stopping.Add(&next.Vec)
		}
	}
	t.touch(TableClusters.Of(some.ClusterID))
	t.releaseCluster(t.owner, r)
}

func searchAssignment(list []*model.Assignment, id string) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(a *model.Assignment, id string) int { return strings.Compare(a.ID, id) })
}
