package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// part is which replicas of an assignment a row is about.
type part uint8

const (
	whole   part = iota // all of them
	surplus             // those that its binding can do without
	minimum             // those that are left then: they are the next row
)

// addCandidate adds the row of an assignment, or the two of one that may be
// shrunk. There is one as well where its binding can do without all of it, because
// of what it has elsewhere: then no more of it leaves than is needed either.
func (b *bindingSearch) addCandidate(a *model.Assignment, victim *model.Binding) {
	spare := 0
	if b.elastic && victim.MinReplicas > 0 {
		spare = min(b.spare(a, victim), a.Replicas)
	}
	if spare <= 0 {
		b.rows = append(b.rows, bindingRow{a, victim.Priority, whole, a.Replicas, a.Vec, victim.Checkpoint})
		return
	}
	above := bindingRow{a, victim.Priority, surplus, spare, replicasOf(a, spare), victim.Checkpoint}
	b.rows = append(b.rows, above)
	if spare < a.Replicas {
		rest := bindingRow{a, victim.Priority, minimum, a.Replicas - spare, a.Vec, victim.Checkpoint}
		rest.vec.Sub(&above.vec)
		b.rows = append(b.rows, rest)
	}
}

// spare is how many replicas of an assignment its binding can do without: what it
// has on all clusters counts, unless it is duplicated.
func (b *bindingSearch) spare(a *model.Assignment, victim *model.Binding) int {
	if victim.Duplicated {
		return a.Replicas - victim.MinReplicas
	}
	have := 0
	for _, x := range b.snap.BindingAssignments(a.Binding) {
		if x.Live() {
			have += x.Replicas
		}
	}
	return have - victim.MinReplicas
}

// replicasOf is what some replicas of an assignment hold: all are alike.
func replicasOf(a *model.Assignment, n int) (v model.Vector) {
	for d, all := range a.Vec {
		v[d] = all / int64(a.Replicas) * int64(n)
	}
	return v
}

// goesWhole is whether the minimum of an assignment is among the picks.
func goesWhole(picks []bindingRow, a *model.Assignment) bool {
	return slices.ContainsFunc(picks, func(p bindingRow) bool { return p.part == minimum && p.assignment == a })
}

// keepSome gives back as many replicas of a surplus as are not needed.
func (b *bindingSearch) keepSome(p *bindingRow, left *model.Vector) {
	one := replicasOf(p.assignment, 1)
	back := int64(p.replicas - 1)
	for d := range b.dims {
		if one[d] > 0 {
			back = min(back, -left[d]/one[d])
		}
	}
	given := replicasOf(p.assignment, int(back))
	left.Add(&given)
	p.replicas -= int(back)
	p.vec.Sub(&given)
}

// united joins the two rows of what leaves whole: it is one victim.
func united(picks []bindingRow) []bindingRow {
	for k := 0; k < len(picks); k++ {
		if picks[k].part != minimum {
			continue
		}
		at := slices.IndexFunc(picks, func(p bindingRow) bool { return p.part == surplus && p.assignment == picks[k].assignment })
		all := &picks[at]
		all.part, all.replicas, all.vec = whole, all.assignment.Replicas, all.assignment.Vec
		picks = slices.Delete(picks, k, k+1)
		k--
	}
	for k := range picks {
		picks[k].part = whole // nothing of it is left to choose
	}
	return picks
}
