package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// batchRows is how many candidates one call to a policy holds at most. The last
// option of a call may exceed it, as an option is never split.
const batchRows = 4096

// batch is one call to a policy in the making: options with their candidates,
// laid out in columns.
type batch struct {
	cand    sdk.Candidates
	columns sdk.Columns
	dims    int

	places []place      // by option of the call
	lacks  []int64      // of each of them, by watched dimension
	rows   []*state.Row // by row of the call

	strings columns.Strings
}

// place is where an option of the call is.
type place struct {
	option int32 // position in Finder.options
	k      int32 // position in Finder.req.Nodes
	chunk  *state.Chunk
	i      int32 // in chunk
	// separated counts rows that exclude the preemptor, candidates or not.
	separated int32
	guarded   bool    // see searcher.guarded
	apart     bool    // some of its rows may exclude the preemptor
	plain     bool    // amounts alone decide whether the ask fits
	showsAll  bool    // its candidates would overrun a budget between them
	limits    *limits // nil: none
	rows      []state.Row
	claimed   *model.FreeCapacity // what claims leave; nil: they take nothing
	choice    []int16
	// searcher.kept[kept:][:keeps] are the candidates that are its victims, once
	// that is known.
	kept, keeps int32
}

// limits is what few options have: who has to leave other nodes, and what has to
// be known to ask about the option again.
type limits struct {
	elsewhere []*state.Row // ascending by priority
	excluded  []*state.Row // candidates that the policy chose and strict budgets kept
	all       []*state.Row // every candidate, where the policy has a say in who is one
}

// elsewhere is the rows of other nodes that have to leave.
func (p *place) elsewhere() []*state.Row {
	if p.limits == nil {
		return nil
	}
	return p.limits.elsewhere
}

// offer is what the node offers of a dimension when it is empty.
func (p *place) offer(d int) int64 { return p.chunk.Avail(d)[p.i] }

func (p *place) node() *model.Node { return p.chunk.Node(int(p.i)) }

// free is what is left of a dimension.
func (p *place) free(d int) int64 {
	if p.claimed != nil {
		return p.claimed.Free[d*p.claimed.Stride]
	}
	return p.chunk.Free(d)[p.i]
}

func (p *place) room() model.FreeCapacity {
	if p.claimed != nil {
		return *p.claimed
	}
	return p.chunk.FreeCapacity(int(p.i))
}

// begin empties the batch for a new search.
func (b *batch) begin(f *Finder, columns sdk.Columns) {
	b.columns, b.dims = columns, f.dims.Len()
	b.cand.Now, b.cand.Preemptor, b.cand.Dims = f.req.Now, &f.preemptor, f.dimNames
	resize(&b.cand.Need, b.dims)
	resize(&b.cand.Freed, b.dims)
	resize(&b.cand.DeviceNeed, len(f.req.Group.Ask.Devices))
	resize(&b.cand.Rows.Devices, len(f.req.Group.Ask.Devices))
	for _, table := range []*[][]float64{&b.cand.Capacity, &b.cand.Reserved, &b.cand.Free, &b.cand.Own} {
		resize(table, b.dims)
	}
	resize(&b.cand.Rows.Use, b.dims)
	b.strings.Reset()
	b.cand.Shared = f.sharedFor(columns, &b.strings)
	if !columns.Has(sdk.BudgetColumns) {
		b.cand.Rows.Budgets = nil
	}
	b.reset()
}

// resize makes a table have n columns and keeps their memory.
func resize(table *[][]float64, n int) {
	for len(*table) < n {
		*table = append(*table, nil)
	}
	*table = (*table)[:n]
}

// reset empties the batch for the next call.
func (b *batch) reset() {
	c := &b.cand
	b.places, b.lacks, b.rows = b.places[:0], b.lacks[:0], b.rows[:0]
	c.FirstRow = append(c.FirstRow[:0], 0)
	c.MustLeave, c.Place = c.MustLeave[:0], c.Place[:0]
	for _, table := range [][][]float64{c.Need, c.Freed, c.DeviceNeed, c.Capacity, c.Reserved, c.Free, c.Own} {
		for d := range table {
			table[d] = table[d][:0]
		}
	}
	resetRows(&c.Rows)
}

func resetRows(r *sdk.Rows) {
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
}

// addOption appends an option with its candidates: the rows that have been
// appended to b.rows since the last one. mustLeave is by candidate; nil: none
// must. What many policies read of rows is laid out by complete, column by column.
func (b *batch) addOption(f *Finder, p *place, lacks []int64, mustLeave []uint8) {
	c := &b.cand
	b.lacks = append(b.lacks, lacks...)
	rows := b.rows[c.FirstRow[len(c.FirstRow)-1]:]
	b.places = append(b.places, *p)
	c.FirstRow = append(c.FirstRow, int32(len(b.rows)))
	if len(mustLeave) > 0 && b.columns.Has(sdk.MustLeaveColumn) {
		// Options before this one may have had none: those columns were not begun.
		c.MustLeave = append(extended(c.MustLeave, len(b.places)-1), marked(mustLeave))
		c.Rows.MustLeave = append(extended(c.Rows.MustLeave, len(b.rows)-len(rows)), mustLeave...)
	}
	if len(p.choice) > 0 {
		b.addDevices(f, p, rows)
	}
	if b.columns.Has(sdk.PlaceColumn) {
		c.Place = append(c.Place, b.strings.ID(p.node().ID))
	}
	if b.columns.Has(sdk.CapacityColumns) {
		b.addCapacity(f, p)
	}
	if b.columns&rareColumns != 0 {
		for _, row := range rows {
			addRareColumns(&c.Rows, b.columns, &b.strings, f.req.Now, row)
		}
	}
}

// addDevices appends what the requests lack, and what candidates hold of it.
func (b *batch) addDevices(f *Finder, p *place, rows []*state.Row) {
	c := &b.cand
	for r, at := range p.choice {
		c.DeviceNeed[r] = append(c.DeviceNeed[r], deviceNeed(&f.req.Group.Ask, p.room(), p.choice, r))
		for _, row := range rows {
			c.Rows.Devices[r] = append(c.Rows.Devices[r], held(p.node(), row.Alloc, at))
		}
	}
}

func marked(mustLeave []uint8) (n int32) {
	for _, m := range mustLeave {
		if m != 0 {
			n++
		}
	}
	return n
}

// deviceNeed is what request r lacks of its device group, after what earlier
// requests take of the same one.
func deviceNeed(ask *model.Ask, room model.FreeCapacity, choice []int16, r int) float64 {
	need := ask.Devices[r].Count - room.Devices[choice[r]]
	for earlier := range r {
		if choice[earlier] == choice[r] {
			need += ask.Devices[earlier].Count
		}
	}
	return float64(need)
}

func (b *batch) addCapacity(f *Finder, p *place) {
	c := &b.cand
	capacity, reserved := f.dims.Vector(p.node().Capacity), f.dims.Vector(p.node().Reserved)
	var own model.Vector
	for i := range p.rows {
		if p.rows[i].Group.Job.Key() == f.req.Group.Job.Key() {
			own.Add(&p.rows[i].Group.Ask.Vec)
		}
	}
	for d := range b.dims {
		c.Capacity[d] = append(c.Capacity[d], float64(capacity[d]))
		c.Reserved[d] = append(c.Reserved[d], float64(reserved[d]))
		c.Free[d] = append(c.Free[d], float64(p.free(d)))
		c.Own[d] = append(c.Own[d], float64(own[d]))
	}
}

// lacksOf is what option o lacks.
func (b *batch) lacksOf(o int, watch *watched) []int64 {
	n := len(watch.dims)
	return b.lacks[o*n : (o+1)*n]
}

// held is how many instances of the device group at position an allocation has.
func held(node *model.Node, a *model.Allocation, position int16) float64 {
	n := int32(0)
	for _, u := range a.Devices {
		if node.Devices[position].ID == u.ID {
			n += u.Count
		}
	}
	return float64(n)
}

const rareColumns = sdk.StartColumn | sdk.LostWorkColumn | sdk.JobColumns | sdk.LabelColumns

// addRareColumns appends the columns that most policies do not read.
func addRareColumns(r *sdk.Rows, columns sdk.Columns, ids *columns.Strings, now int64, row *state.Row) {
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
		addLabels(r, ids, row.Group.Labels)
	}
}

func addLabels(r *sdk.Rows, ids *columns.Strings, labels map[string]string) {
	if r.Labels == nil {
		r.Labels = &sdk.LabelTable{First: []int32{0}}
	}
	for _, key := range columns.SortedKeys(labels) {
		r.Labels.Key = append(r.Labels.Key, ids.ID(key))
		r.Labels.Value = append(r.Labels.Value, ids.ID(labels[key]))
	}
	r.Labels.First = append(r.Labels.First, int32(len(r.Labels.Key)))
}

// complete lays out what is the same for every option, and what is known only
// once everything is gathered.
func (b *batch) complete(f *Finder) {
	b.fillNeeds(f)
	fillRows(&b.cand.Rows, b.rows, b.columns, f.req.Evictions)
	if b.columns.Has(sdk.BudgetColumns) {
		addBudgets(&b.cand.Rows, f.snap, b.rows)
	}
	b.cand.Strings = b.strings.List
	b.freeNothingElsewhere()
	if b.columns.Has(sdk.AnnotationColumns) {
		b.cand.Rows.Annotations = annotationsOf(b.rows)
	}
}

// freeNothingElsewhere lays out that rows of other nodes free nothing on an
// option's own.
func (b *batch) freeNothingElsewhere() {
	c := &b.cand
	for o := range b.places {
		for _, row := range b.places[o].elsewhere() {
			at := slices.Index(b.rows[c.FirstRow[o]:c.FirstRow[o+1]], row)
			if at < 0 {
				continue // the policy spares it
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

func (b *batch) fillNeeds(f *Finder) {
	c, n := &b.cand, len(b.places)
	for d := range b.dims {
		c.Need[d], c.Freed[d] = sized(c.Need[d], n), zeroed(c.Freed[d], n)
	}
	for d, need := range c.Need {
		if at := slices.Index(f.watch.dims, uint8(d)); at >= 0 {
			for o := range need {
				need[o] = float64(b.lacks[at])
				at += len(f.watch.dims)
			}
			continue
		}
		for o := range need {
			need[o] = float64(-b.places[o].free(d)) // not asked
		}
	}
	if b.columns.Has(sdk.MustLeaveColumn) {
		c.MustLeave, c.Rows.MustLeave = extended(c.MustLeave, n), extended(c.Rows.MustLeave, len(b.rows))
	}
}

// extended is a column with zeros to a length.
func extended[T any](column []T, n int) []T {
	from := len(column)
	column = slices.Grow(column, n-from)[:n]
	clear(column[from:])
	return column
}

// fillRows lays out what many policies read of rows.
func fillRows(r *sdk.Rows, rows []*state.Row, columns sdk.Columns, evicted *protect.EvictionCounts) {
	n := len(rows)
	r.Priority = sized(r.Priority, n)
	for i, row := range rows {
		r.Priority[i] = row.Priority
	}
	if columns.Has(sdk.UseColumns) {
		for d := range r.Use {
			use := sized(r.Use[d], n)
			for i, row := range rows {
				use[i] = float64(row.Group.Ask.Vec[d])
			}
			r.Use[d] = use
		}
	}
	if columns.Has(sdk.EvictionColumns) {
		r.Evictions, r.EvictionLimit = sized(r.Evictions, n), sized(r.EvictionLimit, n)
		for i, row := range rows {
			if i > 0 && row.Group == rows[i-1].Group {
				r.Evictions[i], r.EvictionLimit[i] = r.Evictions[i-1], r.EvictionLimit[i-1]
				continue
			}
			r.Evictions[i], r.EvictionLimit[i] = evicted.Of(row.Group), int32(row.Group.MaxParallelEvictions)
		}
	}
}

// annotationsOf makes the annotation columns of all rows at once: which names
// there are is known only when a call is complete.
func annotationsOf(rows []*state.Row) *sdk.AnnotationTable {
	notes := make([]map[string]float64, 0, len(rows))
	names := map[string]bool{}
	for _, row := range rows {
		notes = append(notes, row.Group.Annotations)
		for name := range row.Group.Annotations {
			names[name] = true
		}
	}
	return annotationTable(columns.SortedKeys(names), notes)
}

// annotationTable lays notes out by name; NaN stands for none.
func annotationTable(names []string, rows []map[string]float64) *sdk.AnnotationTable {
	t := &sdk.AnnotationTable{Names: names}
	for _, name := range names {
		column := make([]float64, len(rows))
		for i, notes := range rows {
			value, ok := notes[name]
			if !ok {
				value = math.NaN()
			}
			column[i] = value
		}
		t.Values = append(t.Values, column)
	}
	return t
}
