package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// claimTable holds the claims by ID. Their lists by node are in Chunk, by cluster in
// clusterRow, and those of bindings also in jobRow. Expired claims remain until they
// are deleted: readers compare Expires with their own time.
type claimTable struct {
	claims     cow.Table[*model.Claim]
	claimOrder *cow.Ordering
}

func newClaimTable() claimTable { return claimTable{claimOrder: &cow.Ordering{}} }

func (v *claimTable) findClaim(id string) (int32, bool) {
	return v.claims.Find(hashID(id), func(slot int32) bool { return v.claims.At(slot).ID == id })
}

// Claim returns the claim with the ID, or nil if there is none.
func (v *claimTable) Claim(id string) *model.Claim {
	if slot, ok := v.findClaim(id); ok {
		return v.claims.At(slot)
	}
	return nil
}

// Claims yields the claims, including expired ones, ascending by ID.
func (v *claimTable) Claims() iter.Seq[*model.Claim] {
	return func(yield func(*model.Claim) bool) {
		slots := v.claimOrder.Slots(v.claims.Size(),
			func(slot int32) bool { return v.claims.At(slot) != nil },
			func(a, b int32) int { return strings.Compare(v.claims.At(a).ID, v.claims.At(b).ID) })
		for _, slot := range slots {
			if !yield(v.claims.At(slot)) {
				return
			}
		}
	}
}

// Upsert stores a claim, or another version of it, and sets its index. A new
// version may be on another node or cluster, so the old one is deleted first. It
// retains the index at which the claim was created.
func (t ClaimWriter) Upsert(c *model.Claim) {
	created := t.index
	if old := t.Claim(c.ID); old != nil {
		created = old.CreateIndex
		t.Delete(c.ID)
	}
	if !t.restores {
		c.CreateIndex = created
	}
	slot := t.claims.Insert(t.owner, hashID(c.ID), c)
	t.claimOrder = t.claimOrder.With(t.owner, slot)
	if c.ClusterID != "" {
		t.addToCluster(c)
	} else {
		w := t.openNode(c.NodeID)
		w.addClaim(c)
	}
	t.touch(TableClaims.Of(c.ID))
}

// Delete deletes a claim, if it exists. It also frees the position or row that the
// claim alone kept in use.
func (t ClaimWriter) Delete(id string) {
	slot, ok := t.findClaim(id)
	if !ok {
		return
	}
	c := t.claims.At(slot)
	t.claims.Delete(t.owner, hashID(id), slot)
	t.claimOrder = t.claimOrder.With(t.owner, slot)
	if c.ClusterID != "" {
		t.removeFromCluster(c)
	} else {
		w := t.openNode(c.NodeID)
		w.removeClaim(c)
	}
	t.touch(TableClaims.Of(id))
}

// addToCluster adds a claim to the lists of its cluster and its claimant.
func (t ClaimWriter) addToCluster(c *model.Claim) {
	r := t.ownCluster(t.owner, t.index, c.ClusterID)
	r.claims = withClaim(r.claims, c)
	_, job := t.ownJob(t.owner, c.Claimant)
	job.claims = withClaim(job.claims, c)
	t.touch(TableClusters.Of(c.ClusterID))
}

func (t ClaimWriter) removeFromCluster(c *model.Claim) {
	r := t.ownCluster(t.owner, t.index, c.ClusterID)
	r.claims = withoutClaim(r.claims, c.ID)
	slot, job := t.ownJob(t.owner, c.Claimant)
	job.claims = withoutClaim(job.claims, c.ID)
	t.touch(TableClusters.Of(c.ClusterID))
	t.releaseCluster(t.owner, r)
	t.releaseJob(t.owner, slot, job)
}

func searchClaim(cs []*model.Claim, id string) (int, bool) {
	return slices.BinarySearchFunc(cs, id, func(c *model.Claim, id string) int {
		return strings.Compare(c.ID, id)
	})
}

// withClaim returns a copy of a list with the claim: snapshots share the old list.
func withClaim(list []*model.Claim, c *model.Claim) []*model.Claim {
	at, _ := searchClaim(list, c.ID)
	return slices.Insert(slices.Clone(list), at, c)
}

func withoutClaim(list []*model.Claim, id string) []*model.Claim {
	at, _ := searchClaim(list, id)
	return slices.Delete(slices.Clone(list), at, at+1)
}
