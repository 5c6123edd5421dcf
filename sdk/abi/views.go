package abi

import "github.com/cede-scheduler/cede/sdk/policy"

// Candidates decodes the request of a hook that reads candidates.
func (d *Decoder) Candidates() (*policy.Candidates, error) {
	if err := d.index(); err != nil {
		return nil, err
	}
	c := &d.candidates
	n, dims := d.options, d.dims
	d.readPreemptor()
	c.Now, c.Preemptor, c.Strings = d.now, &d.preemptor, d.strings
	c.Dims = d.names(c.Dims[:0], d.dimNames)
	c.FirstRow = d.positions(FirstRow, n+1, d.rows)
	c.Need = d.floatTable(c.Need[:0], Need, dims, n)
	c.Freed = d.floatTable(c.Freed[:0], Freed, dims, n)
	c.DeviceNeed = d.floatTable(c.DeviceNeed[:0], DeviceNeed, d.requests, n)
	c.MustLeave, c.Place = d.int32s(MustLeave, n), d.int32s(Place, n)
	c.Capacity = d.floatTable(c.Capacity[:0], Capacity, dims, n)
	c.Reserved = d.floatTable(c.Reserved[:0], Reserved, dims, n)
	c.Free = d.floatTable(c.Free[:0], Free, dims, n)
	c.Own = d.floatTable(c.Own[:0], Own, dims, n)
	d.readRows(&c.Rows)
	c.Shared = d.readShared()
	if err := d.complete(); err != nil {
		return nil, err
	}
	if len(c.FirstRow) != n+1 || len(c.Rows.Priority) != d.rows || len(c.Need) != dims {
		return nil, ErrMissing
	}
	return c, nil
}

// Options decodes the request of ScoreOptions.
func (d *Decoder) Options() (*policy.Options, error) {
	if err := d.index(); err != nil {
		return nil, err
	}
	o, n := &d.table, d.options
	d.readPreemptor()
	o.Now, o.Preemptor, o.Strings = d.now, &d.preemptor, d.strings
	o.Dims = d.names(o.Dims[:0], d.dimNames)
	o.Node, o.Place = d.int32s(OptionNode, n), d.int32s(Place, n)
	o.HighestPriority, o.VictimCount = d.int32s(HighestPriority, n), d.int32s(VictimCount, n)
	o.PrioritySum, o.LostWork = d.int64s(PrioritySum, n), d.int64s(LostWork, n)
	o.Start, o.BudgetViolations = d.int64s(OptionStart, n), d.int32s(Violations, n)
	o.Stranded, o.Displacing = d.int32s(Stranded, n), d.int32s(Displacing, n)
	o.DisplacedPriority, o.DisplacedLostWork = d.int32s(DisplacedPriority, n), d.int64s(DisplacedLostWork, n)
	o.ExpectedLostWork, o.CascadeDepth, o.ExpectedDelay = d.int64s(ExpectedLostWork, n), d.int32s(CascadeDepth, n), d.int64s(ExpectedDelay, n)
	o.Need = d.floatTable(o.Need[:0], Need, d.dims, n)
	o.DeviceNeed = d.floatTable(o.DeviceNeed[:0], DeviceNeed, d.requests, n)
	o.DeviceGroup = d.deviceGroups(o.DeviceGroup[:0])
	o.FitBefore, o.FitAfter = d.floats(FitBefore, n), d.floats(FitAfter, n)
	o.Components = [policy.NumComponents][]float64{}
	d.floatTable(o.Components[:0], Components, len(o.Components), n)
	o.Present = d.bytes(Present, n)
	o.FirstVictim = d.positions(FirstRow, n+1, d.rows)
	d.readRows(&o.Victims)
	o.Shared = d.readShared()
	if err := d.complete(); err != nil {
		return nil, err
	}
	if len(o.Node) != n || len(o.VictimCount) != n || len(o.HighestPriority) != n || len(o.PrioritySum) != n ||
		o.FirstVictim != nil && len(o.Victims.Priority) != d.rows {
		return nil, ErrMissing
	}
	return o, nil
}

func (d *Decoder) deviceGroups(to [][]int32) [][]int32 {
	n := d.options
	b, ok := d.column(DeviceGroup, I32, int64(d.requests)*int64(n))
	if !ok {
		return to
	}
	all := view[int32](b)
	for r := range d.requests {
		to = append(to, all[r*n:(r+1)*n:(r+1)*n])
	}
	return to
}

// readRows decodes the row columns, which the frames of all hooks may have.
func (d *Decoder) readRows(r *policy.Rows) {
	n := d.rows
	r.Priority = d.int32s(RowPriority, n)
	r.Use = d.floatTable(r.Use[:0], RowUse, d.dims, n)
	r.Start, r.LostWork = d.int64s(RowStart, n), d.int64s(RowLostWork, n)
	r.Namespace, r.Job, r.Group = d.int32s(RowNamespace, n), d.int32s(RowJob, n), d.int32s(RowGroup, n)
	r.Evictions, r.EvictionLimit = d.int32s(RowEvictions, n), d.int32s(RowEvictionLimit, n)
	r.MustLeave = d.bytes(RowMustLeave, n)
	r.Devices = d.floatTable(r.Devices[:0], RowDevices, d.requests, n)
	r.Labels, r.Annotations, r.Budgets = d.readLabels(), d.readAnnotations(), d.readBudgets()
	r.Relocation = d.bytes(RowRelocation, n)
	r.DisplacedPriority, r.DisplacedLostWork = d.int32s(RowDisplacedPriority, n), d.int64s(RowDisplacedLostWork, n)
}

// readBudgets returns the budgets of rows, or nil if the frame has none.
func (d *Decoder) readBudgets() *policy.BudgetRefs {
	b := &d.budgets
	b.At = d.int32s(RowBudget, -1)
	b.First = d.positions(RowBudgetFirst, d.rows+1, len(b.At))
	if b.First == nil {
		return nil
	}
	known := len(d.int32s(BudgetSlack, -1))
	for _, at := range b.At {
		d.check(at >= 0 && int(at) < known)
	}
	return b
}

// readLabels returns the labels of rows, or nil if the frame has none.
func (d *Decoder) readLabels() *policy.LabelTable {
	l := &d.labels
	l.Key, l.Value = d.int32s(RowLabelKey, -1), d.int32s(RowLabelValue, -1)
	l.First = d.positions(RowLabelFirst, d.rows+1, len(l.Key))
	d.check(len(l.Key) == len(l.Value))
	if l.First == nil {
		return nil
	}
	return l
}

// readAnnotations returns the annotations of rows, or nil if the frame has none.
func (d *Decoder) readAnnotations() *policy.AnnotationTable {
	names, values := d.int32s(RowNoteName, -1), d.floats(RowNoteValue, -1)
	if d.check(int64(len(values)) == int64(len(names))*int64(d.rows)); d.columns.bad || names == nil {
		return nil
	}
	t := &d.annotations
	t.Names, t.Values = d.names(t.Names[:0], names), t.Values[:0]
	for k := range names {
		t.Values = append(t.Values, values[k*d.rows:(k+1)*d.rows])
	}
	return t
}

// readShared returns the tables that are the same for every option, or nil if the
// frame has none.
func (d *Decoder) readShared() *policy.Shared {
	s := &d.shared
	s.Totals = d.floats(TotalCapacity, d.dims)
	n := &s.Namespaces
	n.Name, n.Weight, n.Use = d.int32s(NamespaceName, -1), d.floats(NamespaceWeight, -1), n.Use[:0]
	d.check(len(n.Weight) == len(n.Name))
	if d.dims > 0 {
		n.Use = d.floatTable(n.Use, NamespaceUse, d.dims, len(n.Name))
	}
	b := &s.Budgets
	b.Name, b.Slack, b.Strict = d.int32s(BudgetName, -1), d.int32s(BudgetSlack, -1), d.bytes(BudgetStrict, -1)
	d.check(len(b.Name) == len(b.Slack) && len(b.Strict) == len(b.Slack))
	if !d.has(TotalCapacity) && !d.has(BudgetSlack) {
		return nil
	}
	return s
}

// readPreemptor decodes the preemptor.
func (d *Decoder) readPreemptor() {
	p := &d.preemptor
	p.Priority, p.Delta = d.int32(PreemptorPriority), d.int32(PreemptorDelta)
	p.Ports, p.Attempts = int(d.int32(PreemptorPorts)), d.int32(PreemptorAttempts)
	p.Namespace, p.Job = d.text(PreemptorNamespace), d.text(PreemptorJob)
	p.Group, p.JobType = d.text(PreemptorGroup), d.text(PreemptorJobType)
	p.Waiting = 0
	if c := d.int64s(PreemptorWaiting, 1); len(c) == 1 {
		p.Waiting = c[0]
	}
	p.Ask = d.floats(PreemptorAsk, d.dims)
	d.dimNames = d.int32s(DimName, d.dims)
	d.readDevices(p)
	p.Labels, p.Annotations = nil, nil
	keys, values := d.int32s(PreemptorLabelKey, -1), d.int32s(PreemptorLabelValue, -1)
	if d.check(len(keys) == len(values)); len(keys) > 0 && !d.columns.bad {
		p.Labels = make(map[string]string, len(keys))
		for i, key := range keys {
			p.Labels[d.string(key)] = d.string(values[i])
		}
	}
	names, notes := d.int32s(PreemptorNoteName, -1), d.floats(PreemptorNoteValue, -1)
	if d.check(len(names) == len(notes)); len(names) > 0 && !d.columns.bad {
		p.Annotations = make(map[string]float64, len(names))
		for i, name := range names {
			p.Annotations[d.string(name)] = notes[i]
		}
	}
}

func (d *Decoder) readDevices(p *policy.Preemptor) {
	ids, counts := d.int32s(DeviceAskID, d.requests), d.int32s(DeviceAskCount, d.requests)
	d.devices, p.Devices = min(len(ids), len(counts)), p.Devices[:0]
	for r := range d.devices {
		p.Devices = append(p.Devices, policy.DeviceAsk{ID: d.string(ids[r]), Count: counts[r]})
	}
}

// check marks the frame as bad if its columns are inconsistent.
func (d *Decoder) check(fits bool) {
	if !fits {
		d.columns.bad = true
	}
}

// complete returns an error if the decoded tables cannot be used.
func (d *Decoder) complete() error {
	switch {
	case d.columns.bad:
		return ErrColumn
	case len(d.preemptor.Ask) != d.dims || len(d.dimNames) != d.dims || d.devices != d.requests:
		return ErrMissing
	}
	return nil
}
