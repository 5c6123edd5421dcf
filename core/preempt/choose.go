package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Choice is an option that was chosen.
type Choice struct {
	Pos     int32               // of the node
	Device  []int16             // position in Node.Devices for each device request
	Victims []*model.Allocation // until the Finder is asked for another choice
	Version *policy.Version     // that chose the victims
	Score   float64
}

// table is the call of ScoreOptions: the options that fit, in columns.
type table struct {
	options sdk.Options
	at      []int32      // position in Finder.options, by option of the call
	rows    []*state.Row // the victims of all of them
	scores  sdk.OptionScores
	ids     columns.Strings
}

// Best is the best option; ok is false when there is none.
func (f *Finder) Best() (choice Choice, ok bool, err error) {
	f.searchOn(false)
	if err := f.scoreOptions(); err != nil || len(f.table.at) == 0 {
		return Choice{}, false, err
	}
	best := 0
	for i := 1; i < len(f.table.at); i++ {
		if f.table.better(i, best) {
			best = i
		}
	}
	return f.choice(best), true, nil
}

// EachNode visits the best option of every node that has one, in the order of the
// request's nodes: for jobs that run on every node.
func (f *Finder) EachNode(visit func(Choice)) error {
	f.searchOn(true)
	if err := f.scoreOptions(); err != nil {
		return err
	}
	t := &f.table
	for i := 0; i < len(t.at); {
		best, next := i, i+1
		for ; next < len(t.at) && t.options.Node[next] == t.options.Node[i]; next++ {
			if t.better(next, best) {
				best = next
			}
		}
		visit(f.choice(best))
		i = next
	}
	return nil
}

// choice makes an option of the table known to the scheduler.
func (f *Finder) choice(i int) Choice {
	o := &f.options[f.table.at[i]]
	c := Choice{Pos: o.pos, Version: f.victims(), Score: f.table.scores.Score[i]}
	if len(f.req.Group.Ask.Devices) > 0 {
		c.Device = f.device(o, f.snap.NodeAt(o.pos))
	}
	f.chosen = f.victimsOf(o, f.chosen[:0])
	c.Victims = f.chosen
	return c
}

// victims is the version that picks victims.
func (f *Finder) victims() *policy.Version { return f.workers[0].victims.version }

// scoreOptions asks the policy about all options that fit.
func (f *Finder) scoreOptions() error {
	if f.fault != nil {
		return f.fault
	}
	f.fillTable()
	t := &f.table
	n := len(t.at)
	if n == 0 {
		return nil
	}
	for i := range t.scores.Tiers {
		t.scores.Tiers[i] = zeroed(t.scores.Tiers[i], n)
	}
	t.scores.Score = zeroed(t.scores.Score, n)
	t.scores.Recheck = sdk.Recheck{}
	v := f.chooser.version
	if err := v.RecordCall("ScoreOptions", f.chooser.instance.ScoreOptions(&t.options, &t.scores)); err != nil {
		return err
	}
	if at := t.scores.Recheck.Time(); at != 0 {
		f.recheck.At(at)
	}
	for i, score := range t.scores.Score {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return v.RecordBadAnswer("ScoreOptions", "option %d has the score %v; scores must be finite", i, score)
		}
	}
	return nil
}

func zeroed[T any](column []T, n int) []T {
	column = slices.Grow(column[:0], n)[:n]
	clear(column)
	return column
}

// better is whether option i comes before option j: lower tiers, then the
// higher score, then the earlier one.
func (t *table) better(i, j int) bool {
	for _, tier := range &t.scores.Tiers {
		if tier[i] != tier[j] {
			return tier[i] < tier[j]
		}
	}
	if t.scores.Score[i] != t.scores.Score[j] {
		return t.scores.Score[i] > t.scores.Score[j]
	}
	return i < j
}

// fillTable lays the options that fit out in columns.
func (f *Finder) fillTable() {
	t := &f.table
	o := &t.options
	o.Now, o.Preemptor, o.Dims = f.req.Now, &f.preemptor, f.dimNames
	t.ids.Reset()
	t.at = t.at[:0]
	for i := range f.options {
		if f.options[i].alive {
			t.at = append(t.at, int32(i))
		}
	}
	n := len(t.at)
	o.Node, o.HighestPriority, o.VictimCount = sized(o.Node, n), sized(o.HighestPriority, n), sized(o.VictimCount, n)
	o.PrioritySum, o.LostWork, o.BudgetViolations = sized(o.PrioritySum, n), sized(o.LostWork, n), sized(o.BudgetViolations, n)
	for i, at := range t.at {
		opt := &f.options[at]
		o.Node[i], o.HighestPriority[i], o.VictimCount[i] = opt.pos, opt.highest, int32(len(opt.victims))
		o.PrioritySum[i], o.LostWork[i], o.BudgetViolations[i] = opt.sum, opt.lost, opt.violations
	}
	if f.columns.Has(sdk.StartColumn) {
		o.Start = sized(o.Start, n)
		for i, at := range t.at {
			o.Start[i] = f.options[at].start
		}
	}
	if f.columns.Has(sdk.FitColumns) {
		f.fillFit()
	}
	if f.columns.Has(sdk.PlaceColumn) {
		o.Place = sized(o.Place, n)
		for i, at := range t.at {
			node := f.snap.NodeAt(f.options[at].pos)
			o.Place[i] = t.ids.ID(node.ID)
		}
	}
	if f.columns.Has(sdk.DeviceColumns) && len(f.req.Group.Ask.Devices) > 0 {
		f.fillDevices()
	}
	if f.columns.Has(sdk.VictimColumns) {
		f.fillVictims()
	}
	o.Shared = f.sharedFor(f.columns, &t.ids)
	o.Strings = t.ids.List
}

func sized[T any](column []T, n int) []T { return slices.Grow(column[:0], n)[:n] }

// fillFit lays out the node ranking of every option.
func (f *Finder) fillFit() {
	t := &f.table
	o, n := &t.options, len(t.at)
	o.FitBefore, o.FitAfter = sized(o.FitBefore, n), sized(o.FitAfter, n)
	for k := range o.Components {
		o.Components[k] = zeroed(o.Components[k], n)
	}
	o.Present = zeroed(o.Present, n)
	for i, at := range t.at {
		o.FitBefore[i], o.FitAfter[i] = f.options[at].fitBefore, f.options[at].fitAfter
	}
	if f.req.Rules == nil {
		return
	}
	for i, at := range t.at {
		values, present := f.req.Rules.Components(f.options[at].pos)
		o.Present[i] = present
		for k := range values {
			o.Components[k][i] = values[k]
		}
	}
}

// fillDevices lays out which device groups serve the requests and what they lack.
func (f *Finder) fillDevices() {
	t := &f.table
	ask := &f.req.Group.Ask
	o := &t.options
	resize(&o.DeviceNeed, len(ask.Devices))
	for len(o.DeviceGroup) < len(ask.Devices) {
		o.DeviceGroup = append(o.DeviceGroup, nil)
	}
	o.DeviceGroup = o.DeviceGroup[:len(ask.Devices)]
	for r := range ask.Devices {
		o.DeviceNeed[r], o.DeviceGroup[r] = o.DeviceNeed[r][:0], o.DeviceGroup[r][:0]
	}
	for _, at := range t.at {
		opt := &f.options[at]
		node := f.snap.NodeAt(opt.pos)
		room := f.snap.Chunk(int(opt.pos) / state.ChunkSize).FreeCapacity(int(opt.pos) % state.ChunkSize)
		choice := f.device(opt, node)
		for r := range ask.Devices {
			o.DeviceNeed[r] = append(o.DeviceNeed[r], deviceNeed(ask, room, choice, r))
			o.DeviceGroup[r] = append(o.DeviceGroup[r], int32(choice[r]))
		}
	}
}

// device is the way in which an option serves the ask's devices.
func (f *Finder) device(o *option, node *model.Node) []int16 {
	return node.DeviceChoices(&f.req.Group.Ask)[o.device]
}

// fillVictims lays out the victims of every option in picking order.
func (f *Finder) fillVictims() {
	t := &f.table
	o := &t.options
	v := &o.Victims
	resize(&v.Use, f.dims.Len())
	resize(&v.Devices, len(f.req.Group.Ask.Devices))
	resetRows(v)
	t.rows, o.FirstVictim = t.rows[:0], append(o.FirstVictim[:0], 0)
	for _, at := range t.at {
		t.rows = append(t.rows, f.options[at].victims...)
		o.FirstVictim = append(o.FirstVictim, int32(len(t.rows)))
	}
	resize(&o.Need, f.dims.Len())
	for d := range o.Need {
		o.Need[d] = sized(o.Need[d], len(t.at))
		for i, at := range t.at {
			o.Need[d][i] = f.options[at].need[d]
		}
	}
	fillRows(v, t.rows, f.columns, f.req.Evictions)
	if v.Budgets = nil; f.columns.Has(sdk.BudgetColumns) {
		addBudgets(v, f.snap, t.rows)
	}
	f.fillRareColumns(v)
	if f.columns.Has(sdk.AnnotationColumns) {
		v.Annotations = annotationsOf(t.rows)
	}
}

// fillRareColumns lays out what most policies do not read of victims, or what
// most preemptors do not ask for.
func (f *Finder) fillRareColumns(v *sdk.Rows) {
	t := &f.table
	if f.columns.Has(sdk.MustLeaveColumn) {
		v.MustLeave = zeroed(v.MustLeave, len(t.rows))
	}
	w := f.workers[0]
	rare := !w.amounts || f.columns&rareColumns != 0
	if !rare && !w.separates {
		return
	}
	for i, at := range t.at {
		opt := &f.options[at]
		if !rare && !f.req.Rules.HasSeparatedRows(opt.pos) {
			continue
		}
		for x := t.options.FirstVictim[i]; x < t.options.FirstVictim[i+1]; x++ {
			f.fillVictim(v, opt, x)
		}
	}
}

func (f *Finder) fillVictim(v *sdk.Rows, opt *option, x int32) {
	row := f.table.rows[x]
	here := row.Alloc.NodePos == opt.pos // else it goes with another victim
	if w := f.workers[0]; here && f.columns.Has(sdk.MustLeaveColumn) {
		v.MustLeave[x] = w.mustGo(opt.pos, row)
	}
	if f.columns&rareColumns != 0 {
		addRareColumns(v, f.columns, &f.table.ids, f.req.Now, row)
	}
	if len(v.Devices) > 0 {
		node := f.snap.NodeAt(opt.pos)
		for r, at := range f.device(opt, node) {
			n := 0.0
			if here {
				n = held(node, row.Alloc, at)
			}
			v.Devices[r] = append(v.Devices[r], n)
		}
	}
}
