package columns

import (
	"math"

	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Rare are the columns that few policies read. They are appended row by row; all others
// are filled column by column once the rows of a call are complete.
const Rare = sdk.StartColumn | sdk.LostWorkColumn | sdk.JobColumns | sdk.LabelColumns

// ResetRows empties all columns and keeps their memory.
func ResetRows(r *sdk.Rows) {
	r.Priority, r.Start, r.LostWork = r.Priority[:0], r.Start[:0], r.LostWork[:0]
	r.Namespace, r.Job, r.Group = r.Namespace[:0], r.Job[:0], r.Group[:0]
	r.Evictions, r.EvictionLimit, r.MustLeave = r.Evictions[:0], r.EvictionLimit[:0], r.MustLeave[:0]
	for d := range r.Use {
		r.Use[d] = r.Use[d][:0]
	}
	for d := range r.Devices {
		r.Devices[d] = r.Devices[d][:0]
	}
	if r.Labels != nil {
		r.Labels.First = append(r.Labels.First[:0], 0)
		r.Labels.Key, r.Labels.Value = r.Labels.Key[:0], r.Labels.Value[:0]
	}
	r.Annotations = nil
	r.Relocation, r.DisplacedPriority, r.DisplacedLostWork = r.Relocation[:0], r.DisplacedPriority[:0], r.DisplacedLostWork[:0]
}

// AppendRelocation appends where one row could run.
func AppendRelocation(r *sdk.Rows, a relocate.Answer) {
	r.Relocation = append(r.Relocation, a.Where)
	r.DisplacedPriority, r.DisplacedLostWork = append(r.DisplacedPriority, a.Priority), append(r.DisplacedLostWork, a.LostWork)
}

// FillRows fills the columns that many policies read.
func FillRows(r *sdk.Rows, rows []*state.Row, columns sdk.Columns, evictions *protect.EvictionCounts) {
	n := len(rows)
	r.Priority = scratch.Sized(r.Priority, n)
	for i, row := range rows {
		r.Priority[i] = row.Priority
	}
	if columns.Has(sdk.UseColumns) {
		for d := range r.Use {
			use := scratch.Sized(r.Use[d], n)
			for i, row := range rows {
				use[i] = float64(row.Group.Ask.Vec[d])
			}
			r.Use[d] = use
		}
	}
	if columns.Has(sdk.EvictionColumns) {
		r.Evictions, r.EvictionLimit = scratch.Sized(r.Evictions, n), scratch.Sized(r.EvictionLimit, n)
		for i, row := range rows {
			// Neighbours often share a group: one lookup serves all of them.
			if i > 0 && row.Group == rows[i-1].Group {
				r.Evictions[i], r.EvictionLimit[i] = r.Evictions[i-1], r.EvictionLimit[i-1]
				continue
			}
			r.Evictions[i], r.EvictionLimit[i] = evictions.Of(row.Group), int32(row.Group.MaxParallelEvictions)
		}
	}
}

// AppendRare appends one row to the columns of Rare that a policy reads. Allocations
// that have not started yet are presented as starting now.
func AppendRare(r *sdk.Rows, columns sdk.Columns, ids *Strings, now int64, row *state.Row) {
	if columns.Has(sdk.StartColumn) {
		r.Start = append(r.Start, min(now, row.Start))
	}
	if columns.Has(sdk.LostWorkColumn) {
		r.LostWork = append(r.LostWork, row.Group.LostWork(row.Alloc.Age(now)))
	}
	if columns.Has(sdk.JobColumns) {
		of := ids.Group(row.Group)
		r.Namespace, r.Job, r.Group = append(r.Namespace, of.Namespace), append(r.Job, of.Job), append(r.Group, of.Group)
	}
	if columns.Has(sdk.LabelColumns) {
		appendLabels(r, ids, row.Group.Labels)
	}
}

// appendLabels appends the labels of one row, ascending by key.
func appendLabels(r *sdk.Rows, ids *Strings, labels map[string]string) {
	if r.Labels == nil {
		r.Labels = &sdk.LabelTable{First: []int32{0}}
	}
	for _, key := range sortedKeys(labels) {
		r.Labels.Key = append(r.Labels.Key, ids.ID(key))
		r.Labels.Value = append(r.Labels.Value, ids.ID(labels[key]))
	}
	r.Labels.First = append(r.Labels.First, int32(len(r.Labels.Key)))
}

// FillBudgets fills which budgets each row's eviction would charge.
func FillBudgets(r *sdk.Rows, snap *state.Snapshot, rows []*state.Row) {
	if r.Budgets == nil {
		r.Budgets = &sdk.BudgetRefs{}
	}
	refs := r.Budgets
	refs.At = refs.At[:0]
	if len(snap.Budgets()) == 0 {
		refs.First = scratch.Zeroed(refs.First, len(rows)+1)
		return
	}
	refs.First = scratch.Sized(refs.First, len(rows)+1)
	refs.First[0] = 0
	for i, row := range rows {
		if row.Started {
			refs.At = append(refs.At, snap.GroupBudgets(row.Group)...)
		}
		refs.First[i+1] = int32(len(refs.At))
	}
}

// Annotations returns the annotation columns of all rows at once: the set of names
// depends on all of them.
func Annotations(rows []*state.Row) *sdk.AnnotationTable {
	values := make([]map[string]float64, 0, len(rows))
	names := map[string]bool{}
	for _, row := range rows {
		values = append(values, row.Group.Annotations)
		for name := range row.Group.Annotations {
			names[name] = true
		}
	}
	return annotationTable(sortedKeys(names), values)
}

// annotationTable lays out values by name; NaN marks a missing annotation.
func annotationTable(names []string, rows []map[string]float64) *sdk.AnnotationTable {
	t := &sdk.AnnotationTable{Names: names}
	for _, name := range names {
		column := make([]float64, len(rows))
		for i, values := range rows {
			value, ok := values[name]
			if !ok {
				value = math.NaN()
			}
			column[i] = value
		}
		t.Values = append(t.Values, column)
	}
	return t
}
