package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// part is the part of an assignment that a row represents. A policy that shrinks elastic
// bindings sees an assignment as two rows, the surplus directly before the minimum, so
// that it can pick the surplus alone.
type part uint8

const (
	whole   part = iota // all replicas
	surplus             // those above the binding's minimum
	minimum             // the remaining ones
)

// addCandidate adds the row of an assignment, or the two of one that may be shrunk. If
// the binding's minimum is met on other clusters, there is a surplus row alone: then no
// more replicas leave than are needed, either.
func (s *search) addCandidate(a *model.Assignment, victim *model.Binding) {
	n := 0
	if s.elastic && victim.MinReplicas > 0 {
		n = min(s.surplusOf(a, victim), a.Replicas)
	}
	if n <= 0 {
		s.rows = append(s.rows, row{a, victim.Priority, whole, a.Replicas, a.Vec, victim.Checkpoint})
		return
	}
	above := row{a, victim.Priority, surplus, n, vectorOf(a, n), victim.Checkpoint}
	s.rows = append(s.rows, above)
	if n < a.Replicas {
		rest := row{a, victim.Priority, minimum, a.Replicas - n, a.Vec, victim.Checkpoint}
		rest.vec.Sub(&above.vec)
		s.rows = append(s.rows, rest)
	}
}

// surplusOf returns how many replicas a binding has above its minimum: on all clusters,
// or on the assignment's alone if the binding is duplicated. It may be negative if
// replicas are missing already.
func (s *search) surplusOf(a *model.Assignment, victim *model.Binding) int {
	if victim.Duplicated {
		return a.Replicas - victim.MinReplicas
	}
	total := 0
	for _, x := range s.snap.BindingAssignments(a.Binding) {
		if x.Live() {
			total += x.Replicas
		}
	}
	return total - victim.MinReplicas
}

// vectorOf returns the resources of n replicas of an assignment. All replicas are equal.
func vectorOf(a *model.Assignment, n int) (v model.Vector) {
	for d, all := range a.Vec {
		v[d] = all / int64(a.Replicas) * int64(n)
	}
	return v
}

// picksMinimum reports whether the minimum of an assignment is among the picks.
func picksMinimum(picks []row, a *model.Assignment) bool {
	return slices.ContainsFunc(picks, func(p row) bool { return p.part == minimum && p.assignment == a })
}

// returnReplicas reprieves as many replicas of a surplus as are not needed. At least one
// replica is: otherwise the whole pick would be redundant.
func (s *search) returnReplicas(p *row, left *model.Vector) {
	one := vectorOf(p.assignment, 1)
	back := int64(p.replicas - 1)
	for d := range s.dims {
		if one[d] > 0 {
			back = min(back, -left[d]/one[d])
		}
	}
	returned := vectorOf(p.assignment, int(back))
	left.Add(&returned)
	p.replicas -= int(back)
	p.vec.Sub(&returned)
}

// mergeParts joins the two rows of an assignment that leaves whole into one victim. The
// surplus of a picked minimum is among the picks, because picks adds it first.
func mergeParts(picks []row) []row {
	for k := 0; k < len(picks); k++ {
		if picks[k].part != minimum {
			continue
		}
		at := slices.IndexFunc(picks, func(p row) bool { return p.part == surplus && p.assignment == picks[k].assignment })
		all := &picks[at]
		all.part, all.replicas, all.vec = whole, all.assignment.Replicas, all.assignment.Vec
		picks = slices.Delete(picks, k, k+1)
		k--
	}
	for k := range picks {
		picks[k].part = whole // the second call concerns these replicas as they are
	}
	return picks
}
