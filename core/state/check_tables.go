package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// checkSmallTables verifies the order of the small tables, the versions of jobs and
// the ring of idempotency keys.
func (sn *Snapshot) checkSmallTables() error {
	a := sn.smallTables
	// The small tables are sorted lists. A lookup is a binary search, which finds a
	// wrong entry or none if the order is broken.
	for table, sorted := range map[string]bool{
		"policy versions":  a.policies.Ascending(versionID),
		"policy states":    a.states.Ascending(stateName),
		"policy trials":    a.trials.Ascending(trialName),
		"uploads":          a.uploads.Ascending(uploadDigest),
		"tokens":           a.tokens.Ascending(tokenAccessor),
		"signers":          a.signers.Ascending(signerKey),
		"audit records":    slices.IsSortedFunc(a.audit, func(x, y *model.AuditRecord) int { return cmp.Or(cmp.Compare(x.Index, y.Index), -1) }) && len(a.audit) <= MaxAuditRecords,
		"priority classes": sn.priorities.Ascending(className),
		"namespaces":       sn.namespaces.Ascending(namespaceName),
	} {
		if !sorted {
			return fmt.Errorf("%s are not ascending, or not unique", table)
		}
	}
	for _, u := range a.uploads {
		size := int64(0)
		for _, c := range u.Chunks {
			size += int64(len(c))
		}
		if size != u.Size {
			return fmt.Errorf("upload %s is of %d bytes and has %d", u.Digest, u.Size, size)
		}
	}
	for _, slot := range sn.sortedJobs() {
		r := sn.jobs.At(slot)
		// Older versions are retained for job history and rollback only while the job
		// is registered. Allocations refer to their versions themselves.
		if len(r.older) >= MaxJobVersions || r.job == nil && len(r.older) > 0 {
			return fmt.Errorf("job %s retains %d older versions", r.key, len(r.older))
		}
		for _, j := range r.older {
			if j.Key() != r.key || j == r.job {
				return fmt.Errorf("job %s retains a version of %s", r.key, j.Key())
			}
		}
	}
	if err := sn.checkBindings(); err != nil {
		return err
	}
	return sn.checkIdempotency()
}

// checkIdempotency verifies that the ring of records and the index of their keys
// agree. The ring bounds memory: the oldest record is dropped for a new one.
func (sn *Snapshot) checkIdempotency() error {
	a, n := &sn.idempotency, 0
	for key, applied := range sn.IdempotencyRecords() {
		n++
		if got, ok := sn.IdempotencyRecord(key); !ok || got.Index != applied.Index || got.Hash != applied.Hash {
			return fmt.Errorf("idempotency key %q is not found by its name", key)
		}
	}
	if n != a.index.Len() || n > MaxIdempotencyRecords {
		return fmt.Errorf("%d idempotency keys in order, %d by name", n, a.index.Len())
	}
	return nil
}

// checkBindings recomputes the usage of clusters from assignments and claims alone.
// Jobs and bindings share one table of rows, because they share one space of names.
func (sn *Snapshot) checkBindings() error {
	assigned, n, bindings := map[string][]*model.Assignment{}, 0, 0
	for _, slot := range sn.sortedJobs() {
		r := sn.jobs.At(slot)
		if r.binding != nil {
			bindings++
			if r.job != nil {
				return fmt.Errorf("%s is a job and a binding", r.key)
			}
		}
		for i, a := range r.assigned {
			n++
			switch {
			case a.Binding != r.key:
				return fmt.Errorf("assignment %s of %s is listed under %s", a.ID, a.Binding, r.key)
			case i > 0 && r.assigned[i-1].ID >= a.ID:
				return fmt.Errorf("assignments of %s are not ascending", r.key)
			case sn.Assignment(a.ID) != a:
				return fmt.Errorf("assignment %s is not found by its id", a.ID)
			}
			// A finished assignment is retained for reports, but holds no capacity.
			if a.HoldsCapacity() {
				assigned[a.ClusterID] = append(assigned[a.ClusterID], a)
			}
		}
	}
	if n != sn.AssignmentCount() || bindings != sn.BindingCount() {
		return fmt.Errorf("%d assignments and %d bindings, counted %d and %d", n, bindings, sn.AssignmentCount(), sn.BindingCount())
	}
	// Each claim is listed twice: with its cluster, whose capacity it holds, and with
	// its claimant, which releases it.
	claims, own := map[string][]*model.Claim{}, map[model.JobKey][]*model.Claim{}
	for c := range sn.Claims() {
		if c.ClusterID != "" {
			claims[c.ClusterID] = append(claims[c.ClusterID], c)
			own[c.Claimant] = append(own[c.Claimant], c)
		}
	}
	for _, slot := range sn.sortedJobs() {
		if r := sn.jobs.At(slot); !slices.Equal(r.claims, own[r.key]) {
			return fmt.Errorf("%s has %d claims, want %d, or others", r.key, len(r.claims), len(own[r.key]))
		}
		delete(own, sn.jobs.At(slot).key)
	}
	if len(own) > 0 {
		return fmt.Errorf("claims of %d bindings without a row", len(own))
	}
	// jobs holds the rows of the assignments' bindings, so that the scheduler reads
	// their priorities without a lookup by name.
	for _, slot := range sn.sortedClusters() {
		r := sn.clusters.At(slot)
		for i, a := range r.assigned {
			if i >= len(r.jobs) || sn.jobs.At(r.jobs[i]).key != a.Binding {
				return fmt.Errorf("cluster %s: assignment %s has the row of another binding", r.id, a.ID)
			}
		}
		if err := r.check(assigned[r.id], claims[r.id]); err != nil {
			return fmt.Errorf("cluster %s: %w", r.id, err)
		}
		delete(assigned, r.id)
		delete(claims, r.id)
	}
	if len(assigned)+len(claims) > 0 {
		return fmt.Errorf("assignments on %d and claims on %d clusters without a row", len(assigned), len(claims))
	}
	return nil
}

// check compares a cluster's row with its assignments and claims. held includes
// stopping assignments, because their replicas use capacity until the agent reports
// their end.
func (r *clusterRow) check(assigned []*model.Assignment, claims []*model.Claim) error {
	slices.SortFunc(assigned, func(a, b *model.Assignment) int { return strings.Compare(a.ID, b.ID) })
	var held, stopping model.Vector
	for _, a := range assigned {
		held.Add(&a.Vec)
		if !a.Live() {
			stopping.Add(&a.Vec)
		}
	}
	switch {
	case !slices.Equal(r.assigned, assigned):
		return fmt.Errorf("has %d assignments, want %d, or others", len(r.assigned), len(assigned))
	case !slices.Equal(r.claims, claims):
		return fmt.Errorf("has %d claims, want %d, or others", len(r.claims), len(claims))
	case r.held != held || r.stopping != stopping:
		return fmt.Errorf("holds %v of which %v stop, want %v and %v", r.held, r.stopping, held, stopping)
	case r.cluster == nil && len(assigned)+len(claims) == 0:
		return fmt.Errorf("has an unreferenced row")
	}
	return nil
}
