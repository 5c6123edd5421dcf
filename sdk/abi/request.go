package abi

import "github.com/cede-scheduler/cede/sdk/policy"

// Describe lays out a request for the policy's description.
func (e *Encoder) Describe() int {
	e.reset(OpDescribe, 0)
	e.strings.load(nil)
	e.answer(AnswerName, U8, NameCap)
	e.answer(AnswerVersion, U8, VersionCap)
	e.answer(AnswerHooks, I32, 1)
	e.answer(AnswerFlags, I32, 1)
	e.answer(AnswerDelta, I32, 1)
	e.answer(AnswerColumns, I64, 1)
	e.answer(AnswerSettings, U8, SettingsCap)
	return e.layOut()
}

// settingColumns holds a configuration as columns.
type settingColumns struct {
	names, items, texts []int32
	kinds               []uint8
	integers            []int64
	numbers             []float64
}

// Configure lays out a request with a configuration.
func (e *Encoder) Configure(c *policy.Config) int {
	e.reset(OpConfigure, 0)
	e.strings.load(nil)
	s := &e.settings
	*s = settingColumns{}
	for _, v := range c.Values() {
		s.names = append(s.names, e.strings.id(v.Name))
		s.kinds = append(s.kinds, uint8(v.Kind))
		s.items = append(s.items, e.strings.id(v.Item))
		s.integers = append(s.integers, v.Integer)
		s.numbers = append(s.numbers, v.Number)
		s.texts = append(s.texts, e.strings.id(v.Text))
	}
	e.int32s(SettingName, s.names)
	e.bytes(SettingKind, s.kinds)
	e.int32s(SettingItem, s.items)
	e.int64s(SettingInteger, s.integers)
	e.floats(SettingNumber, s.numbers)
	e.int32s(SettingText, s.texts)
	return e.layOut()
}

// Candidates lays out a request of a hook that reads candidates, with the given
// optional columns, and returns the size of the frame.
func (e *Encoder) Candidates(op Op, in *policy.Candidates, columns policy.Columns) int {
	e.reset(op, in.Now)
	e.strings.load(in.Strings)
	e.options, e.rows = in.Len(), in.Rows.Len()
	e.addPreemptor(in.Preemptor, in.Dims, columns)
	e.int32s(FirstRow, in.FirstRow)
	e.table(Need, in.Need, e.options)
	e.table(Freed, in.Freed, e.options)
	if columns.Has(policy.DeviceColumns) {
		e.table(DeviceNeed, in.DeviceNeed, e.options)
	}
	if columns.Has(policy.MustLeaveColumn) {
		e.int32s(MustLeave, in.MustLeave)
	}
	if columns.Has(policy.PlaceColumn) {
		e.int32s(Place, in.Place)
	}
	if columns.Has(policy.CapacityColumns) {
		e.table(Capacity, in.Capacity, e.options)
		e.table(Reserved, in.Reserved, e.options)
		e.table(Free, in.Free, e.options)
		e.table(Own, in.Own, e.options)
	}
	e.rowsOf(&in.Rows, columns)
	e.sharedOf(in.Shared, columns)
	switch op {
	case OpPriorityDelta:
		e.answer(AnswerGap, I32, e.rows)
	case OpScoreVictims:
		e.answer(AnswerTier, I64, e.rows)
		e.answer(AnswerScore, F64, e.rows)
	case OpSelectVictims:
		e.answer(AnswerPicks, I32, e.rows)
		e.answer(AnswerEnds, I32, e.options)
	case OpPreemptBindings:
		e.answer(AnswerPicks, I32, e.rows)
		e.answer(AnswerEnds, I32, e.options)
		e.answer(AnswerTier, I64, len(policy.BindingVictims{}.Tiers)*e.options)
	}
	e.answer(AnswerRecheck, I64, 1)
	return e.layOut()
}

// Options lays out a request of ScoreOptions.
func (e *Encoder) Options(in *policy.Options, columns policy.Columns) int {
	e.reset(OpScoreOptions, in.Now)
	e.strings.load(in.Strings)
	e.options = in.Len()
	e.addPreemptor(in.Preemptor, in.Dims, columns)
	e.int32s(OptionNode, in.Node)
	e.int32s(HighestPriority, in.HighestPriority)
	e.int32s(VictimCount, in.VictimCount)
	e.int64s(PrioritySum, in.PrioritySum)
	if columns.Has(policy.LostWorkColumn) {
		e.int64s(LostWork, in.LostWork)
	}
	if columns.Has(policy.PlaceColumn) {
		e.int32s(Place, in.Place)
	}
	if columns.Has(policy.DeviceColumns) && len(in.DeviceNeed) > 0 {
		e.table(DeviceNeed, in.DeviceNeed, e.options)
		e.idTable(DeviceGroup, in.DeviceGroup, e.options)
	}
	if columns.Has(policy.StartColumn) && in.Start != nil { // hosts of 1.0 do not send it
		e.int64s(OptionStart, in.Start)
	}
	if columns.Has(policy.BudgetColumns) {
		e.int32s(Violations, in.BudgetViolations)
	}
	if columns.Has(policy.RelocationColumns) {
		e.int32s(Stranded, in.Stranded)
		e.int32s(Displacing, in.Displacing)
		e.int32s(DisplacedPriority, in.DisplacedPriority)
		e.int64s(DisplacedLostWork, in.DisplacedLostWork)
	}
	if columns.Has(policy.LookAheadColumns) {
		e.int64s(ExpectedLostWork, in.ExpectedLostWork)
		e.int32s(CascadeDepth, in.CascadeDepth)
		e.int64s(ExpectedDelay, in.ExpectedDelay)
	}
	if columns.Has(policy.FitColumns) {
		e.floats(FitBefore, in.FitBefore)
		e.floats(FitAfter, in.FitAfter)
		e.table(Components, in.Components[:], e.options)
		e.bytes(Present, in.Present)
	}
	if columns.Has(policy.VictimColumns) {
		e.rows = in.Victims.Len()
		e.int32s(FirstRow, in.FirstVictim)
		e.table(Need, in.Need, e.options)
		e.rowsOf(&in.Victims, columns)
	}
	e.sharedOf(in.Shared, columns)
	e.answer(AnswerTier, I64, len(policy.OptionScores{}.Tiers)*e.options)
	e.answer(AnswerScore, F64, e.options)
	e.answer(AnswerRecheck, I64, 1)
	return e.layOut()
}

func (e *Encoder) rowsOf(r *policy.Rows, columns policy.Columns) {
	e.int32s(RowPriority, r.Priority)
	if columns.Has(policy.UseColumns) {
		e.table(RowUse, r.Use, e.rows)
	}
	if columns.Has(policy.StartColumn) {
		e.int64s(RowStart, r.Start)
	}
	if columns.Has(policy.LostWorkColumn) {
		e.int64s(RowLostWork, r.LostWork)
	}
	if columns.Has(policy.JobColumns) {
		e.int32s(RowNamespace, r.Namespace)
		e.int32s(RowJob, r.Job)
		e.int32s(RowGroup, r.Group)
	}
	if columns.Has(policy.EvictionColumns) {
		e.int32s(RowEvictions, r.Evictions)
		e.int32s(RowEvictionLimit, r.EvictionLimit)
	}
	if columns.Has(policy.MustLeaveColumn) {
		e.bytes(RowMustLeave, r.MustLeave)
	}
	if columns.Has(policy.DeviceColumns) {
		e.table(RowDevices, r.Devices, e.rows)
	}
	if l := r.Labels; l != nil && columns.Has(policy.LabelColumns) {
		e.int32s(RowLabelFirst, l.First)
		e.int32s(RowLabelKey, l.Key)
		e.int32s(RowLabelValue, l.Value)
	}
	if b := r.Budgets; b != nil && columns.Has(policy.BudgetColumns) {
		e.int32s(RowBudgetFirst, b.First)
		e.int32s(RowBudget, b.At)
	}
	if columns.Has(policy.RelocationColumns) {
		e.bytes(RowRelocation, r.Relocation)
		e.int32s(RowDisplacedPriority, r.DisplacedPriority)
		e.int64s(RowDisplacedLostWork, r.DisplacedLostWork)
	}
	if n := r.Annotations; n != nil && columns.Has(policy.AnnotationColumns) {
		e.preemptor.names = e.strings.appendIDs(e.preemptor.names[:0], n.Names)
		e.int32s(RowNoteName, e.preemptor.names)
		e.table(RowNoteValue, n.Values, e.rows)
	}
}

func (e *Encoder) sharedOf(s *policy.Shared, columns policy.Columns) {
	if s == nil {
		return
	}
	if columns.Has(policy.BudgetColumns) {
		e.int32s(BudgetName, s.Budgets.Name)
		e.int32s(BudgetSlack, s.Budgets.Slack)
		e.bytes(BudgetStrict, s.Budgets.Strict)
	}
	if columns&(policy.SharedTables|policy.TotalsColumn) == 0 {
		return
	}
	e.floats(TotalCapacity, s.Totals)
	if !columns.Has(policy.SharedTables) {
		return
	}
	e.int32s(NamespaceName, s.Namespaces.Name)
	e.floats(NamespaceWeight, s.Namespaces.Weight)
	e.table(NamespaceUse, s.Namespaces.Use, len(s.Namespaces.Name))
}
