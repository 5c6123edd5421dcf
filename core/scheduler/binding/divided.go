package binding

import (
	"github.com/cede-scheduler/cede/core/model"
)

// placeDivided assigns the missing replicas, divided over clusters. Free capacity comes
// first, then leased capacity of lower priority, then evictions.
func (e *evaluation) placeDivided() error {
	missing := e.layout.missing()
	if missing <= 0 {
		e.shrink(-missing)
		return nil
	}
	// Claimed capacity comes first, even if another division would be better.
	if h := e.heldFor(missing); h != nil && h.free {
		e.changes.assignAll(h.slots)
		return nil
	}
	chosen, ok := e.layout.divide(missing, e.layout.free())
	// Leased capacity of lower priority is revoked only if nothing else suffices.
	if !ok && e.view.revoke(e.preempts) {
		chosen, ok = e.layout.divide(missing, e.layout.free())
	}
	if ok {
		e.changes.assignAll(chosen)
		return nil
	}
	// Clusters on which all missing replicas together are within the limits.
	var single []*model.Cluster
	for _, c := range e.layout.feasible {
		if e.layout.fitsOne(c) {
			single = append(single, c)
		}
	}
	return e.preemptOn(single, missing)
}

// shrink withdraws surplus replicas, beginning with the last cluster. Assignments are
// ascending by ID.
func (e *evaluation) shrink(surplus int) {
	live := e.changes.live
	for i := len(live) - 1; i >= 0 && surplus > 0; i-- {
		a := live[i]
		if a.Replicas <= surplus {
			surplus -= a.Replicas
			e.changes.withdraw(a, "the binding wants fewer replicas")
			continue
		}
		e.changes.grow(a, -surplus)
		surplus = 0
	}
}
