package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// clusterRow is a member cluster with what is assigned and claimed there. It is
// there for as long as the cluster, an assignment or a claim is.
type clusterRow struct {
	owner    cow.Owner
	id       string
	cluster  *model.Cluster      // nil: it is not registered
	held     model.Vector        // by assigned, those that are stopping included
	stopping model.Vector        // of held, by those that were told to stop
	assigned []*model.Assignment // that hold room, ascending by id; replaced whole
	jobs     []int32             // rows of the bindings of assigned, by its positions; replaced whole
	claims   []*model.Claim      // ascending by id; replaced whole
	changed  uint64              // index at which its room last changed
}

func (v *View) findCluster(id string) (int32, bool) {
	return v.clusters.index.Find(hashID(id), func(slot int32) bool { return v.clusters.at(slot).id == id })
}

func (v *View) clusterRow(id string) *clusterRow {
	if slot, ok := v.findCluster(id); ok {
		return v.clusters.at(slot)
	}
	return nil
}

// Cluster is the member cluster with this id; nil when there is none.
func (v *View) Cluster(id string) *model.Cluster {
	if r := v.clusterRow(id); r != nil {
		return r.cluster
	}
	return nil
}

// Clusters yields the member clusters, ascending by id.
func (v *View) Clusters() iter.Seq[*model.Cluster] {
	return func(yield func(*model.Cluster) bool) {
		for _, slot := range v.sortedClusters() {
			if c := v.clusters.at(slot).cluster; c != nil && !yield(c) {
				return
			}
		}
	}
}

// sortedClusters is the rows in use, rows without a cluster included.
func (v *View) sortedClusters() []int32 {
	return v.clusterOrder.slots(v.clusters.size(),
		func(slot int32) bool { return v.clusters.at(slot) != nil },
		func(a, b int32) int { return strings.Compare(v.clusters.at(a).id, v.clusters.at(b).id) })
}

// ClusterAssignments is what holds room on a cluster, what is stopping included,
// ascending by id. The caller must not change it.
func (v *View) ClusterAssignments(id string) []*model.Assignment {
	if r := v.clusterRow(id); r != nil {
		return r.assigned
	}
	return nil
}

// ClusterWorkload yields what ClusterAssignments has, each with its binding; nil where
// that is gone.
func (v *View) ClusterWorkload(id string) iter.Seq2[*model.Assignment, *model.Binding] {
	return func(yield func(*model.Assignment, *model.Binding) bool) {
		r := v.clusterRow(id)
		if r == nil {
			return
		}
		for i, a := range r.assigned {
			if !yield(a, v.jobs.at(r.jobs[i]).binding) {
				return
			}
		}
	}
}

// ClusterClaims is the claims on a cluster, expired ones included, ascending by
// id. The caller must not change it.
func (v *View) ClusterClaims(id string) []*model.Claim {
	if r := v.clusterRow(id); r != nil {
		return r.claims
	}
	return nil
}

// ClusterFreeCapacity is what a cluster offers to an asker at now: free at once, and
// soon, when everything that was told to stop is gone. Claims of others that
// count against the asker are taken off both. A cluster that is not there, or
// is down, offers nothing.
func (v *View) ClusterFreeCapacity(id string, asker model.JobKey, priority int32, now int64) (free, soon model.Vector) {
	r := v.clusterRow(id)
	if r == nil || r.cluster == nil || r.cluster.Down {
		return free, soon
	}
	free = r.cluster.Avail
	free.Sub(&r.held)
	for _, c := range r.claims {
		if c.CountsAgainst(asker, priority, now) {
			free.Sub(&c.Vec)
		}
	}
	soon = free
	soon.Add(&r.stopping)
	return free, soon
}

// ClusterLeasedBelow is what a cluster keeps for other pools at lower priorities: it is in
// ClusterRoom, and whoever uses it has the others' work revoked there.
func (v *View) ClusterLeasedBelow(id string, priority int32) (kept model.Vector) {
	if r := v.clusterRow(id); r != nil {
		for _, c := range r.claims {
			if c.IsForeign() && c.Priority < priority {
				kept.Add(&c.Vec)
			}
		}
	}
	return kept
}

// ClusterChangeIndex is the index at which the room of a cluster last changed; 0
// when nothing is known of it.
func (v *View) ClusterChangeIndex(id string) uint64 {
	if r := v.clusterRow(id); r != nil {
		return r.changed
	}
	return 0
}

// UpsertCluster stores a member cluster, or another version of it. It compiles
// the cluster and sets its indexes.
func (t *Txn) UpsertCluster(c *model.Cluster) error {
	if err := t.RequireDimensions(c.Capacity); err != nil {
		return err
	}
	r := t.ownCluster(c.ID)
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

// DeleteCluster forgets a member cluster, if it is there. What is assigned and
// claimed there remains until it is deleted.
func (t *Txn) DeleteCluster(id string) {
	if t.Cluster(id) == nil {
		return
	}
	r := t.ownCluster(id)
	r.cluster = nil
	t.touch(TableClusters.Of(id))
	t.releaseCluster(r)
}

// ownCluster is the row of an id, made or copied for writing.
func (t *Txn) ownCluster(id string) *clusterRow {
	slot, ok := t.findCluster(id)
	if !ok {
		r := &clusterRow{owner: t.owner, id: id, changed: t.index}
		slot = t.clusters.insert(t.owner, hashID(id), r)
		t.clusterOrder = t.clusterOrder.with(t.owner, slot)
		return r
	}
	r := t.clusters.at(slot)
	if r.owner == t.owner {
		r.changed = t.index
		return r
	}
	own := *r
	own.owner, own.changed = t.owner, t.index
	t.clusters.set(t.owner, slot, &own)
	return &own
}

// releaseCluster drops the row when nothing refers to the id any more.
func (t *Txn) releaseCluster(r *clusterRow) {
	if r.cluster != nil || len(r.assigned) > 0 || len(r.claims) > 0 {
		return
	}
	slot, _ := t.findCluster(r.id)
	t.clusters.delete(t.owner, hashID(r.id), slot)
	t.clusterOrder = t.clusterOrder.with(t.owner, slot)
}

// accountAssignment replaces what an assignment holds of its cluster: old and
// next are two versions of it, nil where there is none. job is the row of its
// binding, which stays where it is for as long as there is the assignment.
func (t *Txn) accountAssignment(job int32, old, next *model.Assignment) {
	some := next
	if next == nil {
		some = old
	}
	r := t.ownCluster(some.ClusterID)
	if old != nil && old.HoldsCapacity() {
		at, found := findAssigned(r.assigned, old.ID)
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
		at, _ := findAssigned(r.assigned, next.ID)
		r.assigned = slices.Insert(slices.Clone(r.assigned), at, next)
		r.jobs = slices.Insert(slices.Clone(r.jobs), at, job)
		r.held.Add(&next.Vec)
		if !next.Live() {
			r.stopping.Add(&next.Vec)
		}
	}
	t.touch(TableClusters.Of(some.ClusterID))
	t.releaseCluster(r)
}

func findAssigned(list []*model.Assignment, id string) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(a *model.Assignment, id string) int { return strings.Compare(a.ID, id) })
}

// claimCluster and unclaimCluster keep the claims of a cluster, and of who has
// them.
func (t *Txn) claimCluster(c *model.Claim) {
	r := t.ownCluster(c.ClusterID)
	r.claims = withClaim(r.claims, c)
	_, job := t.ownJob(c.Claimant)
	job.claims = withClaim(job.claims, c)
	t.touch(TableClusters.Of(c.ClusterID))
}

func (t *Txn) unclaimCluster(c *model.Claim) {
	r := t.ownCluster(c.ClusterID)
	r.claims = withoutClaim(r.claims, c.ID)
	slot, job := t.ownJob(c.Claimant)
	job.claims = withoutClaim(job.claims, c.ID)
	t.touch(TableClusters.Of(c.ClusterID))
	t.releaseCluster(r)
	t.releaseJob(slot, job)
}

func withClaim(list []*model.Claim, c *model.Claim) []*model.Claim {
	at, _ := findClaim(list, c.ID)
	return slices.Insert(slices.Clone(list), at, c)
}

func withoutClaim(list []*model.Claim, id string) []*model.Claim {
	at, _ := findClaim(list, id)
	return slices.Delete(slices.Clone(list), at, at+1)
}
