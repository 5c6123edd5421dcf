package abi

import "github.com/cede-scheduler/cede/sdk/policy"

// Candidates reads the question of a hook about candidates.
func (d *Decoder) Candidates() (*policy.Candidates, error) {
	c := &d.candidates
	d.forget()
	*c = policy.Candidates{
		Need: c.Need[:0], Freed: c.Freed[:0], DeviceNeed: c.DeviceNeed[:0],
		Capacity: c.Capacity[:0], Reserved: c.Reserved[:0], Free: c.Free[:0], Own: c.Own[:0],
		Dims: c.Dims[:0], Rows: emptied(&c.Rows),
	}
	if err := d.loadStrings(); err != nil {
		return nil, err
	}
	if err := d.each(offColumns, offColumnsOff, d.candidateColumn); err != nil {
		return nil, err
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	if len(c.FirstRow) != d.options+1 || len(c.Rows.Priority) != d.rows || len(c.Need) != d.dims {
		return nil, ErrMissing
	}
	c.Now, c.Preemptor, c.Strings = d.now, &d.preemptor, d.strings
	c.Dims = d.names(c.Dims, d.dimNames)
	d.tables(&c.Rows, &c.Shared)
	return c, nil
}

// Options reads the question of ScoreOptions.
func (d *Decoder) Options() (*policy.Options, error) {
	o := &d.table
	d.forget()
	*o = policy.Options{
		Need: o.Need[:0], DeviceGroup: o.DeviceGroup[:0], DeviceNeed: o.DeviceNeed[:0],
		Dims: o.Dims[:0], Victims: emptied(&o.Victims),
	}
	if err := d.loadStrings(); err != nil {
		return nil, err
	}
	if err := d.each(offColumns, offColumnsOff, d.optionColumn); err != nil {
		return nil, err
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	if len(o.Node) != d.options || len(o.VictimCount) != d.options || len(o.HighestPriority) != d.options ||
		len(o.PrioritySum) != d.options || o.FirstVictim != nil && len(o.Victims.Priority) != d.rows {
		return nil, ErrMissing
	}
	o.Now, o.Preemptor, o.Strings = d.now, &d.preemptor, d.strings
	o.Dims = d.names(o.Dims, d.dimNames)
	d.tables(&o.Victims, &o.Shared)
	return o, nil
}

// emptied keeps the memory of the tables of columns and forgets the columns.
func emptied(r *policy.Rows) policy.Rows {
	return policy.Rows{Use: r.Use[:0], Devices: r.Devices[:0]}
}

// forget drops what an earlier frame said.
func (d *Decoder) forget() {
	p := &d.preemptor
	*p = policy.Preemptor{Ask: nil, Devices: p.Devices[:0]}
	d.labels, d.notes = policy.LabelTable{}, policy.AnnotationTable{Names: d.notes.Names[:0], Values: d.notes.Values[:0]}
	d.shared = policy.Shared{Namespaces: policy.NamespaceTable{Use: d.shared.Namespaces.Use[:0]}}
	d.hasShared = false
	d.label, d.note.names, d.note.values = [2][]int32{}, nil, nil
	d.deviceIDs, d.deviceCounts, d.dimNames, d.noteNames, d.noteValues = nil, nil, nil, nil, nil
}

func (d *Decoder) candidateColumn(e entry) error {
	c := &d.candidates
	switch e.id {
	case FirstRow:
		return d.firstRow(e, &c.FirstRow)
	case Need:
		return table(d, e, F64, d.dims, d.options, &c.Need)
	case Freed:
		return table(d, e, F64, d.dims, d.options, &c.Freed)
	case DeviceNeed:
		return table(d, e, F64, d.requests, d.options, &c.DeviceNeed)
	case MustLeave:
		return readColumn(d, e, I32, int64(d.options), &c.MustLeave)
	case Place:
		return readColumn(d, e, I32, int64(d.options), &c.Place)
	case Capacity:
		return table(d, e, F64, d.dims, d.options, &c.Capacity)
	case Reserved:
		return table(d, e, F64, d.dims, d.options, &c.Reserved)
	case Free:
		return table(d, e, F64, d.dims, d.options, &c.Free)
	case Own:
		return table(d, e, F64, d.dims, d.options, &c.Own)
	}
	return d.sharedColumn(e, &c.Rows)
}

func (d *Decoder) optionColumn(e entry) error {
	o := &d.table
	switch e.id {
	case OptionNode:
		return readColumn(d, e, I32, int64(d.options), &o.Node)
	case HighestPriority:
		return readColumn(d, e, I32, int64(d.options), &o.HighestPriority)
	case VictimCount:
		return readColumn(d, e, I32, int64(d.options), &o.VictimCount)
	case PrioritySum:
		return readColumn(d, e, I64, int64(d.options), &o.PrioritySum)
	case LostWork:
		return readColumn(d, e, I64, int64(d.options), &o.LostWork)
	case Place:
		return readColumn(d, e, I32, int64(d.options), &o.Place)
	case Need:
		return table(d, e, F64, d.dims, d.options, &o.Need)
	case DeviceNeed:
		return table(d, e, F64, d.requests, d.options, &o.DeviceNeed)
	case DeviceGroup:
		return table(d, e, I32, d.requests, d.options, &o.DeviceGroup)
	case FirstRow:
		return d.firstRow(e, &o.FirstVictim)
	case FitBefore:
		return readColumn(d, e, F64, int64(d.options), &o.FitBefore)
	case FitAfter:
		return readColumn(d, e, F64, int64(d.options), &o.FitAfter)
	case Present:
		return readColumn(d, e, U8, int64(d.options), &o.Present)
	case Components:
		parts := o.Components[:0]
		return table(d, e, F64, len(o.Components), d.options, &parts)
	}
	return d.sharedColumn(e, &o.Victims)
}

// firstRow reads where rows of options begin, and checks that they do so in
// order: policies index by it.
func (d *Decoder) firstRow(e entry, to *[]int32) error {
	if err := readColumn(d, e, I32, int64(d.options)+1, to); err != nil {
		return err
	}
	return ascending(*to, d.rows)
}

// ascending is whether positions begin at 0, never fall, and end at n.
func ascending(first []int32, n int) error {
	at := int32(0)
	for i, f := range first {
		if f < at || i == 0 && f != 0 {
			return ErrColumn
		}
		at = f
	}
	if int(at) != n {
		return ErrColumn
	}
	return nil
}

// sharedColumn reads what frames of all hooks have.
func (d *Decoder) sharedColumn(e entry, r *policy.Rows) error {
	n := d.rows
	switch e.id {
	case RowPriority:
		return readColumn(d, e, I32, int64(n), &r.Priority)
	case RowUse:
		return table(d, e, F64, d.dims, n, &r.Use)
	case RowStart:
		return readColumn(d, e, I64, int64(n), &r.Start)
	case RowLostWork:
		return readColumn(d, e, I64, int64(n), &r.LostWork)
	case RowNamespace:
		return readColumn(d, e, I32, int64(n), &r.Namespace)
	case RowJob:
		return readColumn(d, e, I32, int64(n), &r.Job)
	case RowGroup:
		return readColumn(d, e, I32, int64(n), &r.Group)
	case RowEvictions:
		return readColumn(d, e, I32, int64(n), &r.Evictions)
	case RowEvictionLimit:
		return readColumn(d, e, I32, int64(n), &r.EvictionLimit)
	case RowMustLeave:
		return readColumn(d, e, U8, int64(n), &r.MustLeave)
	case RowDevices:
		return table(d, e, F64, d.requests, n, &r.Devices)
	case RowLabelFirst:
		return readColumn(d, e, I32, int64(n)+1, &d.labels.First)
	case RowLabelKey:
		return readColumn(d, e, I32, -1, &d.labels.Key)
	case RowLabelValue:
		return readColumn(d, e, I32, -1, &d.labels.Value)
	case RowNoteName:
		return readColumn(d, e, I32, -1, &d.noteNames)
	case RowNoteValue:
		return readColumn(d, e, F64, -1, &d.noteValues)
	case TotalCapacity:
		d.hasShared = true
		return readColumn(d, e, F64, int64(d.dims), &d.shared.Totals)
	case NamespaceName:
		return readColumn(d, e, I32, -1, &d.shared.Namespaces.Name)
	case NamespaceWeight:
		return readColumn(d, e, F64, -1, &d.shared.Namespaces.Weight)
	case NamespaceUse:
		if d.dims == 0 {
			return nil
		}
		return table(d, e, F64, d.dims, e.count/d.dims, &d.shared.Namespaces.Use)
	}
	return d.preemptorColumn(e)
}

func (d *Decoder) preemptorColumn(e entry) error {
	p := &d.preemptor
	switch e.id {
	case PreemptorPriority:
		return scalar(d, e, I32, &p.Priority)
	case PreemptorDelta:
		return scalar(d, e, I32, &p.Delta)
	case PreemptorAsk:
		return readColumn(d, e, F64, int64(d.dims), &p.Ask)
	case PreemptorPorts:
		return number(d, e, func(n int32) { p.Ports = int(n) })
	case PreemptorNamespace:
		return number(d, e, func(id int32) { p.Namespace = d.string(id) })
	case PreemptorJob:
		return number(d, e, func(id int32) { p.Job = d.string(id) })
	case PreemptorGroup:
		return number(d, e, func(id int32) { p.Group = d.string(id) })
	case PreemptorJobType:
		return number(d, e, func(id int32) { p.JobType = d.string(id) })
	case PreemptorWaiting:
		return scalar(d, e, I64, &p.Waiting)
	case PreemptorAttempts:
		return scalar(d, e, I32, &p.Attempts)
	case DeviceAskID:
		return readColumn(d, e, I32, int64(d.requests), &d.deviceIDs)
	case DeviceAskCount:
		return readColumn(d, e, I32, int64(d.requests), &d.deviceCounts)
	case DimName:
		return readColumn(d, e, I32, int64(d.dims), &d.dimNames)
	case PreemptorLabelKey:
		return readColumn(d, e, I32, -1, &d.label[0])
	case PreemptorLabelValue:
		return readColumn(d, e, I32, -1, &d.label[1])
	case PreemptorNoteName:
		return readColumn(d, e, I32, -1, &d.note.names)
	case PreemptorNoteValue:
		return readColumn(d, e, F64, -1, &d.note.values)
	}
	return nil // a column of a newer host
}

func number(d *Decoder, e entry, set func(int32)) error {
	var n int32
	if err := scalar(d, e, I32, &n); err != nil {
		return err
	}
	set(n)
	return nil
}

// complete puts together what came in several columns, and checks that it fits
// together.
func (d *Decoder) complete() error {
	p := &d.preemptor
	l, n := &d.labels, &d.shared.Namespaces
	switch {
	case len(p.Ask) != d.dims || len(d.deviceIDs) != d.requests || len(d.deviceCounts) != d.requests || len(d.dimNames) != d.dims:
		return ErrMissing
	case len(d.label[0]) != len(d.label[1]) || len(d.note.names) != len(d.note.values) || len(l.Key) != len(l.Value):
		return ErrColumn
	case len(n.Weight) != len(n.Name) || int64(len(d.noteValues)) != int64(len(d.noteNames))*int64(d.rows):
		return ErrColumn
	}
	if l.First != nil {
		if err := ascending(l.First, len(l.Key)); err != nil {
			return err
		}
	}
	for _, use := range n.Use {
		if len(use) != len(n.Name) {
			return ErrColumn
		}
	}
	for r, id := range d.deviceIDs {
		p.Devices = append(p.Devices, policy.DeviceAsk{ID: d.string(id), Count: d.deviceCounts[r]})
	}
	if len(d.label[0]) > 0 {
		p.Labels = make(map[string]string, len(d.label[0]))
	}
	for i, key := range d.label[0] {
		p.Labels[d.string(key)] = d.string(d.label[1][i])
	}
	if len(d.note.names) > 0 {
		p.Annotations = make(map[string]float64, len(d.note.names))
	}
	for i, name := range d.note.names {
		p.Annotations[d.string(name)] = d.note.values[i]
	}
	return nil
}

// tables hands the optional tables out where the frame has them.
func (d *Decoder) tables(r *policy.Rows, shared **policy.Shared) {
	if d.labels.First != nil {
		r.Labels = &d.labels
	}
	if d.noteNames != nil {
		d.notes.Names = d.names(d.notes.Names, d.noteNames)
		for k := range d.noteNames {
			d.notes.Values = append(d.notes.Values, d.noteValues[k*d.rows:(k+1)*d.rows])
		}
		r.Annotations = &d.notes
	}
	if d.hasShared {
		*shared = &d.shared
	}
}

func (d *Decoder) names(to []string, ids []int32) []string {
	for _, id := range ids {
		to = append(to, d.string(id))
	}
	return to
}
