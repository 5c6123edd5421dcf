package state

import (
	"iter"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

func (v *View) findClaim(id string) (int32, bool) {
	return v.claims.index.Find(hashID(id), func(slot int32) bool { return v.claims.at(slot).ID == id })
}

// Claim is the claim with this id; nil when there is none.
func (v *View) Claim(id string) *model.Claim {
	if slot, ok := v.findClaim(id); ok {
		return v.claims.at(slot)
	}
	return nil
}

// Claims yields the claims, expired ones included, ascending by id.
func (v *View) Claims() iter.Seq[*model.Claim] {
	return func(yield func(*model.Claim) bool) {
		slots := v.claimOrder.slots(v.claims.size(),
			func(slot int32) bool { return v.claims.at(slot) != nil },
			func(a, b int32) int { return strings.Compare(v.claims.at(a).ID, v.claims.at(b).ID) })
		for _, slot := range slots {
			if !yield(v.claims.at(slot)) {
				return
			}
		}
	}
}

// UpsertClaim stores a claim, or another version of it, and sets its index.
func (t *Txn) UpsertClaim(c *model.Claim) {
	created := t.index
	if old := t.Claim(c.ID); old != nil {
		created = old.CreateIndex
		t.DeleteClaim(c.ID)
	}
	if !t.restores {
		c.CreateIndex = created
	}
	slot := t.claims.insert(t.owner, hashID(c.ID), c)
	t.claimOrder = t.claimOrder.with(t.owner, slot)
	if c.ClusterID != "" {
		t.claimCluster(c)
	} else {
		w := t.open(c.NodeID)
		w.addClaim(c)
	}
	t.touch(TableClaims.Of(c.ID))
}

// DeleteClaim forgets a claim, if it is there.
func (t *Txn) DeleteClaim(id string) {
	slot, ok := t.findClaim(id)
	if !ok {
		return
	}
	c := t.claims.at(slot)
	t.claims.delete(t.owner, hashID(id), slot)
	t.claimOrder = t.claimOrder.with(t.owner, slot)
	if c.ClusterID != "" {
		t.unclaimCluster(c)
	} else {
		w := t.open(c.NodeID)
		w.removeClaim(c)
	}
	t.touch(TableClaims.Of(id))
}
