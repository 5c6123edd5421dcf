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

// ClusterClaims is the claims on a cluster, expired ones included, ascending by
// id. The caller must not change it.
func (v *View) ClusterClaims(id string) []*model.Claim {
	if r := v.clusterRow(id); r != nil {
		return r.claims
	}
	return nil
}

// ClusterRoom is what a cluster offers to an asker at now: free at once, and
// soon, when everything that was told to stop is gone. Claims of others that
// count against the asker are taken off both. A cluster that is not there, or
// is down, offers nothing.
func (v *View) ClusterRoom(id string, asker model.JobKey, priority int32, now int64) (free, soon model.Vector) {
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

// ClusterChanged is the index at which the room of a cluster last changed; 0
// when nothing is known of it.
func (v *View) ClusterChanged(id string) uint64 {
	if r := v.clusterRow(id); r != nil {
		return r.changed
	}
	return 0
}

// UpsertCluster stores a member cluster, or another version of it. It compiles
// the cluster and sets its indexes.
func (t *Txn) UpsertCluster(c *model.Cluster) error {
	if err := t.grow(c.Capacity); err != nil {
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
// next are two versions of it, nil where there is none.
func (t *Txn) accountAssignment(old, next *model.Assignment) {
	some := next
	if next == nil {
		some = old
	}
	r := t.ownCluster(some.ClusterID)
	if old != nil && old.Holds() {
		at, found := findAssigned(r.assigned, old.ID)
		if !found {
			panic("state: assignment " + old.ID + " is not on its cluster")
		}
		r.assigned = slices.Delete(slices.Clone(r.assigned), at, at+1)
		r.held.Sub(&old.Vec)
		if !old.Live() {
			r.stopping.Sub(&old.Vec)
		}
	}
	if next != nil && next.Holds() {
		at, _ := findAssigned(r.assigned, next.ID)
		r.assigned = slices.Insert(slices.Clone(r.assigned), at, next)
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

// claimCluster and unclaimCluster keep the claims of a cluster.
func (t *Txn) claimCluster(c *model.Claim) {
	r := t.ownCluster(c.ClusterID)
	at, _ := findClaim(r.claims, c.ID)
	r.claims = slices.Insert(slices.Clone(r.claims), at, c)
	t.touch(TableClusters.Of(c.ClusterID))
}

func (t *Txn) unclaimCluster(c *model.Claim) {
	r := t.ownCluster(c.ClusterID)
	at, _ := findClaim(r.claims, c.ID)
	r.claims = slices.Delete(slices.Clone(r.claims), at, at+1)
	t.touch(TableClusters.Of(c.ClusterID))
	t.releaseCluster(r)
}
