package state

import (
	"fmt"
)

// checkAside looks at the order of the small tables, at the versions of jobs
// and at the ring of idempotency keys.
func (sn *Snapshot) checkAside() error {
	a := sn.aside
	for what, sorted := range map[string]bool{
		"policy versions":  ascending(a.policies, versionID),
		"policy states":    ascending(a.states, stateName),
		"uploads":          ascending(a.uploads, uploadDigest),
		"tokens":           ascending(a.tokens, tokenAccessor),
		"priority classes": ascending(sn.priorities, className),
	} {
		if !sorted {
			return fmt.Errorf("%s are not ascending, or not unique", what)
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
		r := sn.jobs.at(slot)
		if len(r.older) >= MaxJobVersions || r.job == nil && len(r.older) > 0 {
			return fmt.Errorf("job %s remembers %d versions before its own", r.key, len(r.older))
		}
		for _, j := range r.older {
			if j.Key() != r.key || j == r.job {
				return fmt.Errorf("job %s remembers a version of %s", r.key, j.Key())
			}
		}
	}
	if err := sn.checkBindings(); err != nil {
		return err
	}
	return sn.checkApplied()
}

func ascending[T any](list []*T, nameOf func(*T) string) bool {
	for i := 1; i < len(list); i++ {
		if nameOf(list[i-1]) >= nameOf(list[i]) {
			return false
		}
	}
	return true
}

func (sn *Snapshot) checkApplied() error {
	a, n := &sn.aside.applied, 0
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
