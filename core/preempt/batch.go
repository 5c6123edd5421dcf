package preempt

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
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

	places []place // by option of the call
	at     []int32 // position in the node's rows, by row of the call

	strings dictionary
}

// place is where an option of the call is.
type place struct {
	option int32 // position in Finder.options
	k      int32 // position in Finder.req.Nodes
	chunk  *state.Chunk
	i      int32 // in chunk
	// separated counts rows that exclude the preemptor, candidates or not.
	separated int32
	rows      []state.Row
	claimed   *model.Room // what claims leave; nil: they take nothing
	choice    []int16
}

func (p *place) node() *model.Node { return p.chunk.Node(int(p.i)) }

// free is what is left of a dimension.
func (p *place) free(d int) int64 {
	if p.claimed != nil {
		return p.claimed.Free[d*p.claimed.Stride]
	}
	return p.chunk.Free(d)[p.i]
}

func (p *place) room() model.Room {
	if p.claimed != nil {
		return *p.claimed
	}
	return p.chunk.Room(int(p.i))
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
	b.strings.reset()
	b.cand.Shared = f.sharedFor(columns, &b.strings)
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
	b.places, b.at = b.places[:0], b.at[:0]
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

// addOption appends an option with its candidates: the positions in the node's
// rows that have been appended to b.at since the last one. mustLeave is by
// candidate; nil: none must.
func (b *batch) addOption(f *Finder, p *place, mustLeave []uint8) {
	c := &b.cand
	b.places = append(b.places, *p)
	b.addRows(f, p, b.at[c.FirstRow[len(c.FirstRow)-1]:], mustLeave)
	c.FirstRow = append(c.FirstRow, int32(len(b.at)))
	for r := range p.choice {
		c.DeviceNeed[r] = append(c.DeviceNeed[r], deviceNeed(&f.req.Group.Ask, p.room(), p.choice, r))
	}
	if b.columns.Has(sdk.MustLeaveColumn) {
		c.MustLeave = append(c.MustLeave, marked(mustLeave))
	}
	if b.columns.Has(sdk.PlaceColumn) {
		c.Place = append(c.Place, b.strings.id(p.node().ID))
	}
	if b.columns.Has(sdk.CapacityColumns) {
		b.addCapacity(f, p)
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
func deviceNeed(ask *model.Ask, room model.Room, choice []int16, r int) float64 {
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

// addRows appends the candidates of an option, column by column.
func (b *batch) addRows(f *Finder, p *place, eligible []int32, mustLeave []uint8) {
	r := &b.cand.Rows
	for _, at := range eligible {
		r.Priority = append(r.Priority, p.rows[at].Priority)
	}
	if b.columns.Has(sdk.UseColumns) {
		for d := range b.dims {
			column := r.Use[d]
			for _, at := range eligible {
				column = append(column, float64(p.rows[at].Group.Ask.Vec[d]))
			}
			r.Use[d] = column
		}
	}
	if b.columns.Has(sdk.MustLeaveColumn) {
		if mustLeave == nil {
			r.MustLeave = append(r.MustLeave, make([]uint8, len(eligible))...)
		}
		r.MustLeave = append(r.MustLeave, mustLeave...)
	}
	if b.columns.Has(sdk.EvictionColumns) {
		for _, at := range eligible {
			g := p.rows[at].Group
			r.Evictions = append(r.Evictions, f.req.Evicted.Of(g))
			r.EvictionLimit = append(r.EvictionLimit, int32(g.MaxParallelEvictions))
		}
	}
	for i := range p.choice {
		for _, at := range eligible {
			r.Devices[i] = append(r.Devices[i], held(p.node(), p.rows[at].Alloc, p.choice[i]))
		}
	}
	if b.columns&rareColumns != 0 {
		for _, at := range eligible {
			addRareColumns(r, b.columns, &b.strings, f.req.Now, &p.rows[at])
		}
	}
}

// row is the allocation behind a row of the call that belongs to option o.
func (b *batch) row(o int, row int32) *state.Row { return &b.places[o].rows[b.at[row]] }

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
func addRareColumns(r *sdk.Rows, columns sdk.Columns, ids *dictionary, now int64, row *state.Row) {
	if columns.Has(sdk.StartColumn) {
		r.Start = append(r.Start, now-row.Alloc.Age(now))
	}
	if columns.Has(sdk.LostWorkColumn) {
		r.LostWork = append(r.LostWork, row.Group.LostWork(row.Alloc.Age(now)))
	}
	if columns.Has(sdk.JobColumns) {
		of := ids.group(row.Group)
		r.Namespace, r.Job, r.Group = append(r.Namespace, of.namespace), append(r.Job, of.job), append(r.Group, of.group)
	}
	if columns.Has(sdk.LabelColumns) {
		addLabels(r, ids, row.Group.Labels)
	}
}

func addLabels(r *sdk.Rows, ids *dictionary, labels map[string]string) {
	if r.Labels == nil {
		r.Labels = &sdk.LabelTable{First: []int32{0}}
	}
	for _, key := range sortedKeys(labels) {
		r.Labels.Key = append(r.Labels.Key, ids.id(key))
		r.Labels.Value = append(r.Labels.Value, ids.id(labels[key]))
	}
	r.Labels.First = append(r.Labels.First, int32(len(r.Labels.Key)))
}

// complete adds what is known only once everything is gathered.
func (b *batch) complete(ask *model.Ask) {
	for d := range b.dims {
		b.cand.Need[d], b.cand.Freed[d] = sized(b.cand.Need[d], len(b.places)), zeroed(b.cand.Freed[d], len(b.places))
		for o := range b.places {
			b.cand.Need[d][o] = float64(ask.Vec[d] - b.places[o].free(d))
		}
	}
	b.cand.Strings = b.strings.list
	if b.columns.Has(sdk.AnnotationColumns) {
		b.addAnnotations()
	}
}

// addAnnotations makes the annotation columns of all rows at once: which names
// there are is known only when the call is complete.
func (b *batch) addAnnotations() {
	rows := make([]map[string]float64, 0, len(b.at))
	names := map[string]bool{}
	for o := range b.places {
		for row := b.cand.FirstRow[o]; row < b.cand.FirstRow[o+1]; row++ {
			notes := b.row(o, row).Group.Annotations
			rows = append(rows, notes)
			for name := range notes {
				names[name] = true
			}
		}
	}
	b.cand.Rows.Annotations = annotationTable(sortedKeys(names), rows)
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
