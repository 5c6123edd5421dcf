package placement

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
)

// PlaceGroup places the missing instances of one group. After the first instance
// without a node the others are not tried, since they request the same. Instances that
// replace an allocation are tried, since each frees capacity of its own. It returns the
// error of a policy at fault. A group whose cached failure still holds costs no scan.
// If placements of the group hold only together, they share a commit group.
func (e *Evaluation) PlaceGroup(g *model.Group, missing []reconcile.Missing) error {
	if len(missing) == 0 {
		return nil
	}
	rules := feasible.NewRules(e.Rules, g)
	if !slices.ContainsFunc(missing, func(m reconcile.Missing) bool { return m.Replaces != nil }) {
		if f, infeasible := e.stillInfeasible(g, rules); infeasible {
			e.Unplaced.addCached(&f)
			why := *f.why
			why.Waiting = len(missing) - 1
			e.Fail(g, len(missing), &why)
			return nil
		}
	}
	p := e.NewPlacer(g, rules)
	defer p.Close()
	p.WaitingSince = slices.MinFunc(missing, func(a, b reconcile.Missing) int { return cmp.Compare(a.Since, b.Since) }).Since
	if rules.Binds() && e.Plan.Bind("topology "+g.Name) {
		defer e.Plan.Unbind()
	}
	failed := 0
	for i, m := range missing {
		if failed > 0 && m.Replaces == nil {
			failed++
			continue
		}
		ok, err := p.Place(m, i+1 < len(missing))
		if err != nil {
			return err
		}
		if !ok && m.Replaces == nil {
			failed++
		}
		if !ok && m.Replaces != nil {
			e.Fail(g, 1, p.Explain())
		}
	}
	if failed > 0 {
		why := p.Explain()
		why.Waiting = failed - 1
		e.Fail(g, failed, why)
	}
	p.cacheFailure(failed > 0)
	return nil
}
