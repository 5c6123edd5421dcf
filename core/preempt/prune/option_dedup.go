package prune

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// OptionDedup finds options that the policy cannot distinguish from an earlier option of
// the same call, its leader. An option's answer depends on its own rows alone, so that the
// leader's answer holds for its duplicates. Uniform nodes with a uniform workload are
// common in large clusters, and a call then costs as much as the distinct options.
//
// Leaders are searched for in the option's own call only, and by content: the input of a policy depends neither on the number of workers nor on addresses.
type OptionDedup struct {
	// IsUsable is set if the policy reads nothing that distinguishes any two options.
	IsUsable bool
	// Duplicates are those of the call.
	Duplicates []Duplicate

	// Relocations answers where candidates could run, if the policy reads that.
	Relocations *relocate.View

	byGroup      bool // the policy reads properties of groups besides amounts and priorities
	byRelocation bool // the policy reads where candidates could run

	slots [dedupSlots]int32 // hash table: position in the batch's entries + 1; 0: empty
	used  []int32           // occupied slots
	rows  []*state.Row      // candidates of all Duplicates
}

// A Duplicate is an option that shares the answer of its leader.
type Duplicate struct {
	columns.Entry
	Leader int32 // position in the batch's entries
	first  int32 // position of its first candidate in OptionDedup.rows
}

const (
	dedupSlots  = 1 << 11 // a call has one block of nodes, or the nodes that one placement changed
	dedupProbes = 8

	amountColumns = sdk.UseColumns | sdk.MustLeaveColumn | sdk.DeviceColumns | sdk.VictimColumns |
		sdk.FitColumns | sdk.TimeColumns | sdk.SharedTables | sdk.TotalsColumn | sdk.RelocationColumns
	groupColumns = sdk.JobColumns | sdk.EvictionColumns | sdk.LabelColumns | sdk.AnnotationColumns
)

// Start prepares for a policy that reads columns.
func (d *OptionDedup) Start(columns sdk.Columns) {
	d.IsUsable = columns&^(amountColumns|groupColumns) == 0
	d.byGroup, d.byRelocation = columns&groupColumns != 0, columns.Has(sdk.RelocationColumns)
	d.Reset()
}

// Reset forgets the options of a call.
func (d *OptionDedup) Reset() {
	for _, slot := range d.used {
		d.slots[slot] = 0
	}
	d.used, d.Duplicates, d.rows = d.used[:0], d.Duplicates[:0], d.rows[:0]
}

// Add reports whether an option, about to be added to the batch with some candidates of its
// node, is equal to an earlier one. Amounts alone must decide there. If so, it becomes its duplicate; otherwise later options
// may become duplicates of it. After dedupProbes collisions an option is not recorded.
func (d *OptionDedup) Add(b *columns.Batch, dims *fit.Dims, e *columns.Entry, deficit []int64, rows []*state.Row) bool {
	at := hashOption(deficit, rows)
	for range dedupProbes {
		at %= dedupSlots
		known := d.slots[at]
		if known == 0 {
			d.slots[at], d.used = int32(len(b.Entries))+1, append(d.used, int32(at))
			return false
		}
		if d.isEqual(b, dims, int(known)-1, e, deficit, rows) {
			d.Duplicates = append(d.Duplicates, Duplicate{*e, known - 1, int32(len(d.rows))})
			d.rows = append(d.rows, rows...)
			return true
		}
		at++
	}
	return false
}

// Candidate returns candidate i of a duplicate.
func (d *OptionDedup) Candidate(dup *Duplicate, i int32) *state.Row { return d.rows[dup.first+i] }

// hashOption mixes a part of the compared properties.
func hashOption(deficit []int64, rows []*state.Row) uint64 {
	h := uint64(len(rows))
	for _, lack := range deficit {
		h = (h ^ uint64(lack)) * 0x9e3779b97f4a7c15
	}
	h = (h ^ uint64(rows[0].Group.Ask.Vec[model.CPU])) * 0x9e3779b97f4a7c15
	for _, row := range rows {
		h = (h ^ uint64(row.Priority)) * 0x9e3779b97f4a7c15
	}
	return h >> 32
}

// isEqual reports whether the policy sees the same in option o of the batch and in e
// with some candidates.
func (d *OptionDedup) isEqual(b *columns.Batch, dims *fit.Dims, o int, e *columns.Entry, deficit []int64, rows []*state.Row) bool {
	theirs := b.RowsOf(o)
	if len(theirs) != len(rows) {
		return false
	}
	for i, lack := range b.DeficitOf(o, dims) {
		if lack != deficit[i] {
			return false
		}
	}
	for _, dim := range dims.Untracked {
		if b.Entries[o].Free(int(dim)) != e.Free(int(dim)) {
			return false
		}
	}
	for i, row := range rows {
		if !d.isEqualRow(row, theirs[i]) {
			return false
		}
		if d.byRelocation && d.Relocations.OfNode(row, e.Pos) != d.Relocations.OfNode(theirs[i], b.Entries[o].Pos) {
			return false
		}
	}
	return true
}

// isEqualRow reports whether the policy sees the same in two candidates, except for where they
// could run.
func (d *OptionDedup) isEqualRow(a, b *state.Row) bool {
	return a.Group == b.Group || !d.byGroup && a.Priority == b.Priority && a.Group.Ask.Vec == b.Group.Ask.Vec
}
