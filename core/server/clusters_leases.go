package server

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// ClusterLease is room that a member cluster keeps for another pool.
type ClusterLease struct {
	Pool      string
	ID        string // what the other pool calls it
	Resources model.Resources
	Priority  int32
}

// checkLeases names everything that is wrong with what a cluster says that it
// keeps for others.
func checkLeases(cluster string, leases []ClusterLease) error {
	var problems []string
	for i, l := range leases {
		if l.Pool == "" || l.ID == "" || strings.Contains(l.Pool, "/") {
			problems = append(problems, fmt.Sprintf("lease %d is of pool %q and has the id %q: want a pool without slashes, and an id", i, l.Pool, l.ID))
		}
		for _, name := range slices.Sorted(maps.Keys(l.Resources)) {
			if l.Resources[name] < 0 {
				problems = append(problems, fmt.Sprintf("lease %d keeps a negative amount of %s: %d", i, name, l.Resources[name]))
			}
		}
		if slices.ContainsFunc(leases[:i], func(o ClusterLease) bool { return o.Pool == l.Pool && o.ID == l.ID }) {
			problems = append(problems, fmt.Sprintf("lease %s of pool %s is listed twice", l.ID, l.Pool))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return apierror.New(apierror.CodeInvalid, "cluster %q: %s", cluster, strings.Join(problems, "; ")).WithDetails(map[string]any{"Problems": problems})
}

// claimsOfLeases makes claims of leases, ascending by id. They hold until the agent
// says otherwise: when one expires its clock decides and not ours, and of a cluster
// whose agent says nothing no room is given out. What the pool has no names for it
// cannot give out either.
func claimsOfLeases(snap *state.Snapshot, cluster string, leases []ClusterLease) (claims []*model.Claim) {
	dims := snap.Dims()
	for _, l := range leases {
		c := &model.Claim{
			ID: "lease/" + cluster + "/" + l.Pool + "/" + l.ID, Claimant: model.LeaseClaimant(l.Pool, l.ID), ClusterID: cluster,
			Priority: l.Priority, Expiry: math.MaxInt64,
		}
		for name, amount := range l.Resources { // any order: each is its own
			if d := dims.Index(name); d >= 0 {
				c.Vec[d] = amount
			}
		}
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(x, y *model.Claim) int { return strings.Compare(x.ID, y.ID) })
	return claims
}

// sameLeases is whether claims are what a cluster is known to keep for other pools.
func sameLeases(snap *state.Snapshot, cluster string, claims []*model.Claim) bool {
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
