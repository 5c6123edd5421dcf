package binding

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// changes collects the commit group of a plan. It is complete only after releaseClaims,
// which must come last.
type changes struct {
	binding *model.Binding
	evalID  string
	index   uint64 // of the snapshot
	now     int64

	live     []*model.Assignment // that are retained
	retained []string            // IDs of claims that are retained
	group    model.CommitGroup
}

// withdraw stops all replicas of an assignment of the binding itself.
func (c *changes) withdraw(a *model.Assignment, reason string) {
	c.group.Withdrawals = append(c.group.Withdrawals, model.Withdrawal{AssignmentID: a.ID, Reason: reason})
}

// assignAll adds the replicas of slots.
func (c *changes) assignAll(slots []slot) {
	for _, s := range slots {
		c.assign(s.cluster.ID, s.add)
	}
}

// assign adds replicas on a cluster. An existing assignment on the cluster grows
// instead: a binding has at most one live assignment on a cluster.
func (c *changes) assign(cluster string, replicas int) {
	if at := slices.IndexFunc(c.live, func(a *model.Assignment) bool { return a.ClusterID == cluster }); at >= 0 {
		c.grow(c.live[at], replicas)
		return
	}
	key := c.binding.Key()
	c.group.Assignments = append(c.group.Assignments, &model.Assignment{
		ID: model.AssignmentID(key, cluster, c.evalID), Binding: key, ClusterID: cluster, Replicas: replicas,
		Vec: c.binding.TotalAsk(replicas), EvalID: c.evalID,
	})
}

// grow changes the replicas of an assignment by a positive or negative number. The
// assignment keeps its ID, so its running replicas are not restarted.
func (c *changes) grow(a *model.Assignment, by int) {
	next := *a
	next.Replicas += by
	next.Vec, next.EvalID = c.binding.TotalAsk(next.Replicas), c.evalID
	c.group.Assignments = append(c.group.Assignments, &next)
}

// assigns reports whether the plan assigns replicas to a cluster.
func (c *changes) assigns(cluster string) bool {
	return slices.ContainsFunc(c.group.Assignments, func(a *model.Assignment) bool { return a.ClusterID == cluster })
}

// claim reserves capacity for the replicas of a slot until wait, in nanoseconds, and
// claimTTL have passed. It returns the claim. The claim outlives the stops that it
// waits for, and ends by itself if the binding never uses it.
func (c *changes) claim(s slot, wait int64) *model.Claim {
	expiry := c.now + claimTTL
	if wait < math.MaxInt64-expiry {
		expiry += wait
	}
	claim := &model.Claim{
		ID:       fmt.Sprintf("claim/%s/%d", model.AssignmentID(c.binding.Key(), s.cluster.ID, c.evalID), c.index),
		Claimant: c.binding.Key(), ClusterID: s.cluster.ID, Vec: c.binding.TotalAsk(s.add), Priority: c.binding.Priority, Expiry: expiry,
	}
	c.group.Claims = append(c.group.Claims, claim)
	return claim
}

// releaseClaims releases those of the binding's claims that are not retained.
func (c *changes) releaseClaims(ids []string) {
	for _, id := range ids {
		if !slices.Contains(c.retained, id) {
			c.group.ReleasedClaims = append(c.group.ReleasedClaims, id)
		}
	}
}
