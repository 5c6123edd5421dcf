package composition

import sdk "github.com/cede-scheduler/cede/sdk/policy"

// A part receives the columns that it requests, and no others that another part requests:
// its answers are those that it gives alone.

// view returns a call with the columns of the part. It is valid until the next view.
func (p *runningPart) view(in *sdk.Candidates) *sdk.Candidates {
	c := p.info.Columns
	out := &p.candidates
	*out = *in
	out.Capacity, out.Reserved = only(c, sdk.CapacityColumns, in.Capacity), only(c, sdk.CapacityColumns, in.Reserved)
	out.Free, out.Own = only(c, sdk.CapacityColumns, in.Free), only(c, sdk.CapacityColumns, in.Own)
	out.Place = only(c, sdk.PlaceColumn, in.Place)
	out.DeviceNeed = only(c, sdk.DeviceColumns, in.DeviceNeed)
	out.MustLeave = only(c, sdk.MustLeaveColumn, in.MustLeave)
	out.Rows = rowsOf(&in.Rows, c)
	out.Shared = sharedOf(in.Shared, c)
	return out
}

// viewOptions returns a call of ScoreOptions with the columns of the part. It is valid until
// the next view.
func (p *runningPart) viewOptions(in *sdk.Options) *sdk.Options {
	c := p.info.Columns
	out := &p.options
	*out = *in
	out.Place = only(c, sdk.PlaceColumn, in.Place)
	out.DeviceGroup, out.DeviceNeed = only(c, sdk.DeviceColumns, in.DeviceGroup), only(c, sdk.DeviceColumns, in.DeviceNeed)
	out.LostWork = only(c, sdk.LostWorkColumn, in.LostWork)
	out.Start = only(c, sdk.StartColumn, in.Start)
	out.BudgetViolations = only(c, sdk.BudgetColumns, in.BudgetViolations)
	out.Stranded, out.Displacing = only(c, sdk.RelocationColumns, in.Stranded), only(c, sdk.RelocationColumns, in.Displacing)
	out.DisplacedPriority = only(c, sdk.RelocationColumns, in.DisplacedPriority)
	out.DisplacedLostWork = only(c, sdk.RelocationColumns, in.DisplacedLostWork)
	out.FitBefore, out.FitAfter = only(c, sdk.FitColumns, in.FitBefore), only(c, sdk.FitColumns, in.FitAfter)
	out.Present = only(c, sdk.FitColumns, in.Present)
	if !c.Has(sdk.FitColumns) {
		out.Components = [sdk.NumComponents][]float64{}
	}
	out.Need, out.FirstVictim = only(c, sdk.VictimColumns, in.Need), only(c, sdk.VictimColumns, in.FirstVictim)
	if out.Victims = (sdk.Rows{}); c.Has(sdk.VictimColumns) {
		out.Victims = rowsOf(&in.Victims, c)
	}
	out.Shared = sharedOf(in.Shared, c)
	return out
}

// only returns a column if it is one of the requested ones, otherwise nil.
func only[T any](requested, column sdk.Columns, values []T) []T {
	if requested.Has(column) {
		return values
	}
	return nil
}

// rowsOf returns the rows with the columns that c requests.
func rowsOf(r *sdk.Rows, c sdk.Columns) sdk.Rows {
	out := sdk.Rows{
		Priority: r.Priority, Use: only(c, sdk.UseColumns, r.Use), Start: only(c, sdk.StartColumn, r.Start),
		LostWork:  only(c, sdk.LostWorkColumn, r.LostWork),
		Namespace: only(c, sdk.JobColumns, r.Namespace), Job: only(c, sdk.JobColumns, r.Job), Group: only(c, sdk.JobColumns, r.Group),
		Evictions: only(c, sdk.EvictionColumns, r.Evictions), EvictionLimit: only(c, sdk.EvictionColumns, r.EvictionLimit),
		MustLeave: only(c, sdk.MustLeaveColumn, r.MustLeave), Devices: only(c, sdk.DeviceColumns, r.Devices),
		Relocation:        only(c, sdk.RelocationColumns, r.Relocation),
		DisplacedPriority: only(c, sdk.RelocationColumns, r.DisplacedPriority),
		DisplacedLostWork: only(c, sdk.RelocationColumns, r.DisplacedLostWork),
	}
	if c.Has(sdk.LabelColumns) {
		out.Labels = r.Labels
	}
	if c.Has(sdk.AnnotationColumns) {
		out.Annotations = r.Annotations
	}
	if c.Has(sdk.BudgetColumns) {
		out.Budgets = r.Budgets
	}
	return out
}

// sharedOf returns the shared tables that c requests; nil if there are none.
func sharedOf(s *sdk.Shared, c sdk.Columns) *sdk.Shared {
	if s == nil || c&(sdk.SharedTables|sdk.TotalsColumn|sdk.BudgetColumns) == 0 {
		return nil
	}
	out := &sdk.Shared{}
	switch {
	case c.Has(sdk.SharedTables):
		out.Totals, out.Namespaces = s.Totals, s.Namespaces
	case c.Has(sdk.TotalsColumn):
		out.Totals = s.Totals
	}
	if c.Has(sdk.BudgetColumns) {
		out.Budgets = s.Budgets
	}
	return out
}
