package endpoint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A ClusterLease is capacity that a member cluster reserves for another pool.
type ClusterLease struct {
	Pool      string
	ID        string // assigned by the other pool
	Resources model.Resources
	Priority  int32
}

// validateLeases returns an error that lists all problems of the leases of a cluster.
func validateLeases(cluster string, leases []ClusterLease) error {
	var problems []string
	for i, l := range leases {
		if l.Pool == "" || l.ID == "" || strings.Contains(l.Pool, "/") {
			problems = append(problems, fmt.Sprintf("lease %d has pool %q and ID %q: both are required, and a pool must not contain slashes", i, l.Pool, l.ID))
		}
		problems = append(problems, negativeAmounts(fmt.Sprintf("lease %d: amount", i), l.Resources)...)
		if slices.ContainsFunc(leases[:i], func(o ClusterLease) bool { return o.Pool == l.Pool && o.ID == l.ID }) {
			problems = append(problems, fmt.Sprintf("lease %s of pool %s is listed twice", l.ID, l.Pool))
		}
	}
	return invalid(problems, "cluster %q", cluster)
}

// leaseClaims returns the claims of leases, ascending by ID. They do not expire: the agent
// decides by its clock when a lease ends, and if the agent is disconnected, nothing is
// assigned to its cluster. Resources that the pool has no dimension for are ignored,
// because the pool cannot assign them either.
func leaseClaims(snap *state.Snapshot, cluster string, leases []ClusterLease) (claims []*model.Claim) {
	dims := snap.Dims()
	for _, l := range leases {
		c := &model.Claim{
			ID: "lease/" + cluster + "/" + l.Pool + "/" + l.ID, Claimant: model.LeaseClaimant(l.Pool, l.ID), ClusterID: cluster,
			Priority: l.Priority, Expiry: math.MaxInt64,
		}
		for name, amount := range l.Resources { // in any order: each sets its own dimension
			if d := dims.Index(name); d >= 0 {
				c.Vec[d] = amount
			}
		}
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(x, y *model.Claim) int { return strings.Compare(x.ID, y.ID) })
	return claims
}

// equalLeases reports whether claims are those that the state holds for other pools on a
// cluster.
func equalLeases(snap *state.Snapshot, cluster string, claims []*model.Claim) bool {
	var known []*model.Claim
	for _, c := range snap.ClusterClaims(cluster) {
		if c.IsForeign() {
			known = append(known, c)
		}
	}
	return slices.EqualFunc(known, claims, func(x, y *model.Claim) bool {
		return x.ID == y.ID && x.Vec == y.Vec && x.Priority == y.Priority
	})
}
