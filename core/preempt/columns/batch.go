package columns

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// MaxRows is the number of candidates at which a call is full. The last option of a
// call may exceed it, as an option is never split.
const MaxRows = 4096

// A Batch is a call to a policy under construction: options with their candidates, in
// columns. Callers append candidates to Rows, then add their option with Add, and
// finally call Complete.
type Batch struct {
	Cand    sdk.Candidates
	Entries []Entry      // by option of the call
	Rows    []*state.Row // by row of the call
	// Relocations answers where rows could run, if the policy reads that.
	Relocations *relocate.View

	deficits []int64 // of each entry, by tracked dimension
	columns  sdk.Columns
	dims     int
	ids      Strings
}

// Start empties the batch for a new search by a policy that reads columns.
func (b *Batch) Start(in *Inputs, columns sdk.Columns) {
	b.columns, b.dims = columns, in.Dimensions.Len()
	c, devices := &b.Cand, len(in.Scope.Group.Ask.Devices)
	c.Now, c.Preemptor, c.Dims = in.Scope.Now, &in.Preemptor, in.DimNames
	for _, table := range []*[][]float64{&c.Need, &c.Freed, &c.Capacity, &c.Reserved, &c.Free, &c.Own, &c.Rows.Use} {
		scratch.Columns(table, b.dims)
	}
	scratch.Columns(&c.DeviceNeed, devices)
	scratch.Columns(&c.Rows.Devices, devices)
	b.ids.Reset()
	b.RefreshShared(in)
	if !columns.Has(sdk.BudgetColumns) {
		c.Rows.Budgets = nil
	}
	b.Reset()
}

// RefreshShared recomputes the shared tables.
func (b *Batch) RefreshShared(in *Inputs) { b.Cand.Shared = in.SharedFor(b.columns, &b.ids) }

// Reset empties the batch for the next call.
func (b *Batch) Reset() {
	c := &b.Cand
	b.Entries, b.deficits, b.Rows = b.Entries[:0], b.deficits[:0], b.Rows[:0]
	c.FirstRow = append(c.FirstRow[:0], 0)
	c.MustLeave, c.Place = c.MustLeave[:0], c.Place[:0]
	for _, table := range [][][]float64{c.Need, c.Freed, c.DeviceNeed, c.Capacity, c.Reserved, c.Free, c.Own} {
		for d := range table {
			table[d] = table[d][:0]
		}
	}
	ResetRows(&c.Rows)
}

// Add adds an option with its candidates: the rows appended to b.Rows since the last
// one. mustLeave is by candidate; nil: none must leave. It does not fill the columns
// that Complete fills.
func (b *Batch) Add(in *Inputs, e *Entry, deficit []int64, mustLeave []uint8) {
	c := &b.Cand
	b.deficits = append(b.deficits, deficit...)
	rows := b.Rows[c.FirstRow[len(c.FirstRow)-1]:]
	b.Entries = append(b.Entries, *e)
	c.FirstRow = append(c.FirstRow, int32(len(b.Rows)))
	if len(mustLeave) > 0 && b.columns.Has(sdk.MustLeaveColumn) {
		// Earlier options may have had none, and then left these columns short.
		c.MustLeave = append(scratch.Extended(c.MustLeave, len(b.Entries)-1), countMarked(mustLeave))
		c.Rows.MustLeave = append(scratch.Extended(c.Rows.MustLeave, len(b.Rows)-len(rows)), mustLeave...)
	}
	if len(e.Choice) > 0 {
		b.addDevices(&in.Scope.Group.Ask, e, rows)
	}
	if b.columns.Has(sdk.PlaceColumn) {
		c.Place = append(c.Place, b.ids.ID(e.Model().ID))
	}
	if b.columns.Has(sdk.CapacityColumns) {
		b.addCapacity(in, e)
	}
	if b.columns&Rare != 0 {
		for _, row := range rows {
			AppendRare(&c.Rows, b.columns, &b.ids, in.Scope.Now, row)
		}
	}
}

// addDevices appends the device needs, and how many instances of them candidates hold.
func (b *Batch) addDevices(ask *model.Ask, e *Entry, rows []*state.Row) {
	c := &b.Cand
	for r, at := range e.Choice {
		c.DeviceNeed[r] = append(c.DeviceNeed[r], DeviceNeed(ask, e.Capacity(), e.Choice, r))
		for _, row := range rows {
			c.Rows.Devices[r] = append(c.Rows.Devices[r], DeviceUse(e.Model(), row.Alloc, at))
		}
	}
}

// countMarked returns how many candidates must leave.
func countMarked(mustLeave []uint8) (n int32) {
	for _, m := range mustLeave {
		if m != 0 {
			n++
		}
	}
	return n
}

// addCapacity appends the offered, reserved and free amounts of the node, and how much
// the preemptor's own job holds of them.
func (b *Batch) addCapacity(in *Inputs, e *Entry) {
	c := &b.Cand
	capacity, reserved := in.Dimensions.Vector(e.Model().Capacity), in.Dimensions.Vector(e.Model().Reserved)
	var own model.Vector
	for i := range e.Rows {
		if e.Rows[i].Group.Job.Key() == in.Scope.Group.Job.Key() {
			own.Add(&e.Rows[i].Group.Ask.Vec)
		}
	}
	for d := range b.dims {
		c.Capacity[d] = append(c.Capacity[d], float64(capacity[d]))
		c.Reserved[d] = append(c.Reserved[d], float64(reserved[d]))
		c.Free[d] = append(c.Free[d], float64(e.Free(d)))
		c.Own[d] = append(c.Own[d], float64(own[d]))
	}
}

// DeficitOf returns the deficit of option o.
func (b *Batch) DeficitOf(o int, dims *fit.Dims) []int64 {
	n := len(dims.Tracked)
	return b.deficits[o*n : (o+1)*n]
}

// RowsOf returns the candidates of option o.
func (b *Batch) RowsOf(o int) []*state.Row { return b.Rows[b.Cand.FirstRow[o]:b.Cand.FirstRow[o+1]] }

// Complete fills the columns that are the same for every option, and those that
// depend on all options.
func (b *Batch) Complete(in *Inputs) {
	b.fillNeeds(&in.Scope.Dims)
	FillRows(&b.Cand.Rows, b.Rows, b.columns, in.Evictions)
	if b.columns.Has(sdk.BudgetColumns) {
		FillBudgets(&b.Cand.Rows, in.Scope.Snap, b.Rows)
	}
	b.Cand.Strings = b.ids.List
	b.zeroRemoteUse()
	if b.columns.Has(sdk.AnnotationColumns) {
		b.Cand.Rows.Annotations = Annotations(b.Rows)
	}
	if b.columns.Has(sdk.RelocationColumns) {
		for o := range b.Entries {
			for _, row := range b.RowsOf(o) {
				AppendRelocation(&b.Cand.Rows, b.Relocations.OfNode(row, b.Entries[o].Home(row)))
			}
		}
	}
}

// zeroRemoteUse sets the amounts of rows of other nodes to zero: they free nothing on an
// option's own node.
func (b *Batch) zeroRemoteUse() {
	c := &b.Cand
	for o := range b.Entries {
		for _, row := range b.Entries[o].Remote() {
			at := slices.Index(b.RowsOf(o), row)
			if at < 0 {
				continue // the policy's own limit removed it from the candidates
			}
			at += int(c.FirstRow[o])
			for _, table := range [][][]float64{c.Rows.Use, c.Rows.Devices} {
				for _, column := range table {
					if at < len(column) {
						column[at] = 0
					}
				}
			}
		}
	}
}

// fillNeeds fills the deficit of each option by dimension. If an amount is to spare, it is
// negative.
func (b *Batch) fillNeeds(dims *fit.Dims) {
	c, n := &b.Cand, len(b.Entries)
	for d := range b.dims {
		c.Need[d], c.Freed[d] = scratch.Sized(c.Need[d], n), scratch.Zeroed(c.Freed[d], n)
	}
	for d, need := range c.Need {
		if at := slices.Index(dims.Tracked, uint8(d)); at >= 0 {
			for o := range need {
				need[o] = float64(b.deficits[at])
				at += len(dims.Tracked)
			}
			continue
		}
		for o := range need {
			need[o] = float64(-b.Entries[o].Free(d)) // not requested
		}
	}
	if b.columns.Has(sdk.MustLeaveColumn) {
		c.MustLeave, c.Rows.MustLeave = scratch.Extended(c.MustLeave, n), scratch.Extended(c.Rows.MustLeave, len(b.Rows))
	}
}

// Evict moves the amounts of a row of option o from Need to Freed. It is called after each pick
// of an adaptive policy.
func (b *Batch) Evict(o int, row int32) {
	c := &b.Cand
	for d := range c.Need {
		use := float64(b.Rows[row].Group.Ask.Vec[d])
		c.Need[d][o] -= use
		c.Freed[d][o] += use
	}
	for r := range c.DeviceNeed {
		c.DeviceNeed[r][o] -= c.Rows.Devices[r][row]
	}
	if b.columns.Has(sdk.MustLeaveColumn) && c.Rows.MustLeave[row] != 0 {
		c.MustLeave[o]--
	}
}
