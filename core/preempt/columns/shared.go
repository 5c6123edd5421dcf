package columns

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// SharedFor returns the shared tables that a policy reads: those that are the same for
// every option. It returns nil if the policy reads none. Computing the full tables scans
// the cluster, so that only policies that declare them pay for it.
//
// It must not be called while workers run, as totals are cached in the inputs.
func (in *Inputs) SharedFor(columns sdk.Columns, ids *Strings) *sdk.Shared {
	s := in.sharedWithoutBudgets(columns, ids)
	if !columns.Has(sdk.BudgetColumns) {
		return s
	}
	var with sdk.Shared // a copy: the totals may be in use by another call
	if s != nil {
		with = *s
	}
	with.Budgets = in.budgetTable(ids)
	return &with
}

func (in *Inputs) sharedWithoutBudgets(columns sdk.Columns, ids *Strings) *sdk.Shared {
	switch {
	case columns.Has(sdk.SharedTables):
		return in.allShared(ids)
	case columns.Has(sdk.TotalsColumn):
		if in.totals == nil {
			in.totals = &sdk.Shared{Totals: in.sumTotals()}
		}
		return in.totals
	}
	return nil
}

// allShared computes the capacity of ready nodes and the use of each namespace.
func (in *Inputs) allShared(ids *Strings) *sdk.Shared {
	snap := in.Scope.Snap
	s := &sdk.Shared{Totals: in.sumTotals()}
	// The preemptor's namespace has a row even before it uses anything.
	use := map[string]*model.Vector{in.Scope.Group.Job.Namespace: {}}
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			addUse(use, chunk.Rows(i))
		}
	}
	s.Namespaces.Use = make([][]float64, in.Dimensions.Len())
	for _, name := range sortedKeys(use) {
		s.Namespaces.Name = append(s.Namespaces.Name, ids.ID(name))
		s.Namespaces.Weight = append(s.Namespaces.Weight, snap.NamespaceWeight(name))
		for d := range s.Namespaces.Use {
			s.Namespaces.Use[d] = append(s.Namespaces.Use[d], float64(use[name][d]))
		}
	}
	return s
}

// sumTotals returns the capacity of ready nodes, by dimension. Whole numbers are summed within
// a chunk: the sum of one column is then no chain of rounded additions.
func (in *Inputs) sumTotals() []float64 {
	snap := in.Scope.Snap
	totals := make([]float64, in.Dimensions.Len())
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for d := range totals {
			sum, avail := int64(0), chunk.Avail(d)
			for ready := chunk.Eligible(); ready != 0; ready &= ready - 1 {
				sum += avail[bits.TrailingZeros64(ready)]
			}
			totals[d] += float64(sum)
		}
	}
	return totals
}

// addUse adds the resources of rows to the sums of their namespaces.
func addUse(use map[string]*model.Vector, rows []state.Row) {
	var last string
	var sum *model.Vector // of last: neighbours mostly share a namespace
	for i := range rows {
		if name := rows[i].Group.Job.Namespace; sum == nil || name != last {
			if use[name] == nil {
				use[name] = new(model.Vector)
			}
			last, sum = name, use[name]
		}
		sum.Add(&rows[i].Group.Ask.Vec)
	}
}

// budgetTable returns the table of all budgets. Overrun budgets have slack 0.
func (in *Inputs) budgetTable(ids *Strings) (t sdk.BudgetTable) {
	slack := in.Scope.Budgets.Slack
	n := len(slack)
	t.Name, t.Slack, t.Strict = make([]int32, 0, n), make([]int32, 0, n), make([]uint8, 0, n)
	for at, b := range in.Scope.Snap.Budgets() {
		strict := uint8(0)
		if b.Strict {
			strict = 1
		}
		t.Name = append(t.Name, ids.ID(b.ID()))
		t.Slack = append(t.Slack, int32(max(0, slack[at])))
		t.Strict = append(t.Strict, strict)
	}
	return t
}
