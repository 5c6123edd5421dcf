package preempt

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// shared computes the tables that are the same for every option: what ready
// nodes offer, and what each namespace uses. Only policies that ask for them
// pay for the scan.
func (f *Finder) shared(ids *columns.Strings) *sdk.Shared {
	s := &sdk.Shared{Totals: f.sumTotals()}
	use := map[string]*model.Vector{f.req.Group.Job.Namespace: {}} // the asker's counts before it has anything
	for c := range f.snap.ChunkCount() {
		chunk := f.snap.Chunk(c)
		for i := range chunk.Len() {
			addUse(use, chunk.Rows(i))
		}
	}
	s.Namespaces.Use = make([][]float64, f.dims.Len())
	for _, name := range columns.SortedKeys(use) {
		s.Namespaces.Name = append(s.Namespaces.Name, ids.ID(name))
		s.Namespaces.Weight = append(s.Namespaces.Weight, f.req.weight(name))
		for d := range s.Namespaces.Use {
			s.Namespaces.Use[d] = append(s.Namespaces.Use[d], float64(use[name][d]))
		}
	}
	return s
}

// sharedFor is what the columns ask for of the shared tables; nil: nothing.
func (f *Finder) sharedFor(columns sdk.Columns, ids *columns.Strings) *sdk.Shared {
	s := f.sharedBut(columns, ids)
	if !columns.Has(sdk.BudgetColumns) {
		return s
	}
	var with sdk.Shared
	if s != nil {
		with = *s
	}
	with.Budgets = f.budgetTable(ids)
	return &with
}

// sharedBut is sharedFor without budgets.
func (f *Finder) sharedBut(columns sdk.Columns, ids *columns.Strings) *sdk.Shared {
	switch {
	case columns.Has(sdk.SharedTables):
		return f.shared(ids)
	case columns.Has(sdk.TotalsColumn):
		if f.totals == nil {
			f.totals = &sdk.Shared{Totals: f.sumTotals()}
		}
		return f.totals
	}
	return nil
}

// sumTotals adds up what ready nodes offer.
func (f *Finder) sumTotals() []float64 {
	totals := make([]float64, f.dims.Len())
	for c := range f.snap.ChunkCount() {
		chunk := f.snap.Chunk(c)
		for d := range totals {
			avail := chunk.Avail(d)
			for ready := chunk.Eligible(); ready != 0; ready &= ready - 1 {
				totals[d] += float64(avail[bits.TrailingZeros64(ready)])
			}
		}
	}
	return totals
}

func addUse(use map[string]*model.Vector, rows []state.Row) {
	var last string
	var sum *model.Vector // of last: neighbours are mostly of one namespace
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

// weight is a namespace's weight, 1 where nothing says otherwise.
func (r *Request) weight(namespace string) float64 {
	if w, ok := r.Weights[namespace]; ok {
		return w
	}
	return 1
}
