package protect

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// A Guard decides which rows of sufficiently low priority are protected nevertheless:
// by a preemption toleration, by membership in an all-or-none job, or by a strict
// budget. Nodes to which none of these applies are not guarded, and searches skip all
// of its checks on them.
//
// A Guard serves one worker. It records in Findings why the result may change later.
type Guard struct {
	Findings Findings

	scope   *Scope
	cohorts map[model.JobKey]*Cohort
	costs   Charges // scratch of strictCosts
}

// Start prepares for a search.
func (g *Guard) Start(scope *Scope) {
	g.scope, g.Findings = scope, Findings{}
	g.Reset()
}

// Reset discards the cohorts. It must be called whenever the scope's snapshot changes.
func (g *Guard) Reset() { clear(g.cohorts) }

// IsGuarded reports whether rows of a node need IsEvictable.
func (g *Guard) IsGuarded(n *fit.Node) bool {
	s := g.scope
	return len(s.Excluded) > 0 || n.Chunk.HasEvictionRules()>>n.Index&1 == 1 || s.Strict && s.Budgets.MayExhaustStrict(n.Rows, s.Ceiling)
}

// IsEvictable reports whether a row of a guarded node may be a victim. If a strict
// budget prevents it, the budget is recorded as blocking at slot.
func (g *Guard) IsEvictable(slot int32, row *state.Row) bool {
	if g.scope.Excluded[row.Alloc] {
		return false
	}
	job := row.Group.Job
	if !job.AllOrNone {
		return g.isEvictableAlone(slot, row)
	}
	c := g.Cohort(job.Key())
	if c.Surplus[row.Group.Name] > 0 && g.isEvictableAlone(slot, row) {
		return true
	}
	if c.Protected {
		g.Findings.NonFinal = true // members on other nodes matter as well
		return false
	}
	return g.withinStrict(slot, c.costs)
}

// isEvictableAlone ignores the cohort of a row.
func (g *Guard) isEvictableAlone(slot int32, row *state.Row) bool {
	if g.IsTolerated(row) {
		return false
	}
	if !g.scope.Strict || !row.Started {
		return true
	}
	return g.withinStrict(slot, g.strictCosts(row))
}

// IsTolerated reports whether the row's job tolerates this preemptor, so that the row
// is protected now. It records when that ends.
func (g *Guard) IsTolerated(row *state.Row) bool {
	s := g.scope
	until, protected := row.Group.Job.ProtectedFrom(row.Alloc, s.Group.Job.Priority, s.Now)
	if until != 0 {
		g.Findings.Recheck.At(until)
	}
	return protected
}

// strictCosts returns the cost of evicting a row to strict budgets. The result is valid
// until the next call.
func (g *Guard) strictCosts(row *state.Row) Charges {
	g.costs = g.scope.Budgets.AppendStrictCosts(g.costs[:0], row)
	return g.costs
}

// withinStrict reports whether every strict budget has the slack for some costs.
func (g *Guard) withinStrict(slot int32, costs Charges) bool {
	for _, c := range costs {
		if c.Count > g.scope.Budgets.Slack[c.Budget] {
			g.block(slot, c.Budget)
			return false
		}
	}
	return true
}

// block records that a strict budget kept a candidate on the node of a slot.
func (g *Guard) block(slot, budget int32) {
	g.Findings.NonFinal = true // evictions on other nodes change the slack
	snap := g.scope.Committed
	if snap == nil {
		snap = g.scope.Snap
	}
	if at := snap.NextEvictionAt(budget, g.scope.Now); at != 0 {
		g.Findings.Recheck.At(at) // and so does time, if the budget limits a rate
	}
	g.scope.Blocking[slot] = budget + 1
}

// Charge adds the cost of evicting rows to the charges of an option. It returns false, and charges nothing, if a strict budget lacks the slack.
func (g *Guard) Charge(slot int32, rows []*state.Row, charged *Charges) bool {
	costs := g.totalCosts(rows)
	for _, c := range costs {
		if charged.Of(c.Budget)+c.Count > g.scope.Budgets.Slack[c.Budget] {
			g.block(slot, c.Budget)
			return false
		}
	}
	for _, c := range costs {
		charged.Add(c.Budget, c.Count)
	}
	return true
}

// totalCosts returns the cost of evicting rows to strict budgets. The result is valid until
// the next call.
func (g *Guard) totalCosts(rows []*state.Row) (costs Charges) {
	if len(rows) == 1 { // most victims leave alone, and need no list of their own
		if !rows[0].Started {
			return nil
		}
		return g.strictCosts(rows[0])
	}
	for _, row := range rows {
		if !row.Started {
			continue
		}
		for _, c := range g.strictCosts(row) {
			costs.Add(c.Budget, 1)
		}
	}
	return costs
}

// Cohort returns the cohort of an all-or-none job. It is collected once a search.
func (g *Guard) Cohort(key model.JobKey) *Cohort {
	if c := g.cohorts[key]; c != nil {
		return c
	}
	c := newCohort(g, key)
	if g.cohorts == nil {
		g.cohorts = map[model.JobKey]*Cohort{}
	}
	g.cohorts[key] = c
	return c
}
