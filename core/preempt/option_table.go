package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// optionTable is the call of ScoreOptions: the feasible options in columns. Its columns
// are reused, and a policy must not retain them.
type optionTable struct {
	options sdk.Options
	at      []int32 // position in results.options, by option of the call
	found   int     // feasible options, of which the call may have fewer
	// outlooks are those of the options of the call; empty: they were not played.
	outlooks []playedOption
	rows     []*state.Row // the victims of all of them
	scores   sdk.OptionScores
	least    prune.LeastVictims // of scoreLeast
	ids      columns.Strings
}

// score calls the chooser about all feasible options.
func (t *optionTable) score(s *search, chooser *hook, findings *protect.Findings) error {
	t.at, t.outlooks = t.at[:0], t.outlooks[:0]
	for i := range s.options {
		if s.options[i].feasible {
			t.at = append(t.at, int32(i))
		}
	}
	t.found = len(t.at)
	return t.call(s, chooser, findings)
}

// call fills the table and calls the chooser about it. Recheck times go to findings. It
// returns a *policy.Error if the chooser fails or returns a score that is not finite.
func (t *optionTable) call(s *search, chooser *hook, findings *protect.Findings) error {
	t.fill(s)
	n := len(t.at)
	if n == 0 {
		return nil
	}
	v := chooser.version
	if err := t.callPolicy(chooser, n); err != nil {
		return err
	}
	findings.MergePolicyRecheck(t.scores.Recheck, t.options.Now)
	for i, score := range t.scores.Score {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return v.RecordBadAnswer("ScoreOptions", "invalid score %v of option %d: scores must be finite", score, i)
		}
	}
	return nil
}

// callPolicy calls the chooser about the n options that have been laid out. Tiers and scores
// start at zero. It returns a *policy.Error if the policy fails.
func (t *optionTable) callPolicy(chooser *hook, n int) error {
	for i := range t.scores.Tiers {
		t.scores.Tiers[i] = scratch.Zeroed(t.scores.Tiers[i], n)
	}
	t.scores.Score = scratch.Zeroed(t.scores.Score, n)
	t.scores.Recheck = sdk.Recheck{}
	return chooser.version.RecordCall("ScoreOptions", chooser.instance.ScoreOptions(&t.options, &t.scores))
}

// key returns the tiers of option i as a key.
func (t *optionTable) key(i int) (k prune.Key) {
	for tier, values := range &t.scores.Tiers {
		k[tier] = values[i]
	}
	return k
}

// better reports whether option i ranks before option j: by lower tiers, then by the
// higher score, then by position.
func (t *optionTable) better(i, j int) bool {
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

// fill lays out the options of the call. Columns that the chooser does not read are left
// as they are. It costs the options times the columns that are read.
func (t *optionTable) fill(s *search) {
	o := &t.options
	t.start(s)
	t.fillTotals(s)
	read := s.traits.optionColumns
	if read.Has(sdk.FitColumns) {
		t.fillFit(s)
	}
	if read.Has(sdk.PlaceColumn) {
		o.Place = scratch.Sized(o.Place, len(t.at))
		for i, at := range t.at {
			o.Place[i] = t.ids.ID(s.scope.Snap.NodeAt(s.options[at].pos).ID)
		}
	}
	if read.Has(sdk.DeviceColumns) { // also without requests: the table has those of its last call
		t.fillDevices(s)
	}
	if read.Has(sdk.VictimColumns) {
		t.fillVictims(s)
	}
	o.Shared = s.inputs.SharedFor(read, &t.ids)
	o.Strings = t.ids.List
}

// start fills what all options share.
func (t *optionTable) start(s *search) {
	o := &t.options
	o.Now, o.Preemptor, o.Dims = s.req.Now, &s.inputs.Preemptor, s.inputs.DimNames
	t.ids.Reset()
}

// fillTotals fills the columns that sum up the victims of every option. The evaluation
// of each option has computed them, so no row is read.
func (t *optionTable) fillTotals(s *search) {
	o, n := &t.options, len(t.at)
	o.Node, o.HighestPriority, o.VictimCount = scratch.Sized(o.Node, n), scratch.Sized(o.HighestPriority, n), scratch.Sized(o.VictimCount, n)
	o.PrioritySum, o.LostWork, o.BudgetViolations = scratch.Sized(o.PrioritySum, n), scratch.Sized(o.LostWork, n), scratch.Sized(o.BudgetViolations, n)
	for i, at := range t.at {
		opt := &s.options[at]
		o.Node[i], o.HighestPriority[i], o.VictimCount[i] = opt.pos, opt.highest, int32(len(opt.victims))
		o.PrioritySum[i], o.LostWork[i], o.BudgetViolations[i] = opt.prioritySum, opt.lostWork, opt.violations
	}
	if s.traits.optionColumns.Has(sdk.StartColumn) {
		o.Start = scratch.Sized(o.Start, n)
		for i, at := range t.at {
			o.Start[i] = s.options[at].start
		}
	}
	if s.traits.optionColumns.Has(sdk.RelocationColumns) {
		t.fillRelocation(s)
	}
	if s.traits.optionColumns.Has(sdk.LookAheadColumns) {
		t.fillOutlooks()
	}
	t.fillBounds(s.boundOf)
}

// fillFit fills the rank of every option's node. Components that no rule defines are
// absent: Present distinguishes them from zeros.
func (t *optionTable) fillFit(s *search) {
	o, n := &t.options, len(t.at)
	o.FitBefore, o.FitAfter = scratch.Sized(o.FitBefore, n), scratch.Sized(o.FitAfter, n)
	for k := range o.Components {
		o.Components[k] = scratch.Zeroed(o.Components[k], n)
	}
	o.Present = scratch.Zeroed(o.Present, n)
	for i, at := range t.at {
		o.FitBefore[i], o.FitAfter[i] = s.options[at].fitBefore, s.options[at].fitAfter
	}
	if s.req.Rules == nil {
		return
	}
	for i, at := range t.at {
		values, present := s.req.Rules.Components(s.options[at].pos)
		o.Present[i] = present
		for k := range values {
			o.Components[k][i] = values[k]
		}
	}
}

// fillDevices fills which device groups serve the requests, and their needs.
func (t *optionTable) fillDevices(s *search) {
	ask, o := &s.req.Group.Ask, &t.options
	scratch.Columns(&o.DeviceNeed, len(ask.Devices))
	for len(o.DeviceGroup) < len(ask.Devices) {
		o.DeviceGroup = append(o.DeviceGroup, nil)
	}
	o.DeviceGroup = o.DeviceGroup[:len(ask.Devices)]
	for r := range ask.Devices {
		o.DeviceNeed[r], o.DeviceGroup[r] = o.DeviceNeed[r][:0], o.DeviceGroup[r][:0]
	}
	for _, at := range t.at {
		opt := &s.options[at]
		node := fit.At(s.scope.Snap, opt.pos)
		choice := s.deviceChoice(opt)
		for r := range ask.Devices {
			need, group := 0.0, int32(0)
			if choice != nil {
				need, group = columns.DeviceNeed(ask, node.Capacity(), choice, r), int32(choice[r])
			}
			o.DeviceNeed[r], o.DeviceGroup[r] = append(o.DeviceNeed[r], need), append(o.DeviceGroup[r], group)
		}
	}
}

// deviceChoice returns the device groups with which an option serves the requests. It is nil if
// the node has none: a bound may be that of a domain for other groups of the gang.
func (s *search) deviceChoice(o *option) []int16 {
	choices := s.scope.Snap.NodeAt(o.pos).DeviceChoices(&s.req.Group.Ask)
	if int(o.device) >= len(choices) {
		return nil
	}
	return choices[o.device]
}

// fillVictims fills the victims of every option in picking order. A victim may be on
// another node than its option, if its cohort is evicted with it.
func (t *optionTable) fillVictims(s *search) {
	o, read, dims := &t.options, s.traits.optionColumns, s.inputs.Dimensions.Len()
	v := &o.Victims
	scratch.Columns(&v.Use, dims)
	scratch.Columns(&v.Devices, len(s.req.Group.Ask.Devices))
	columns.ResetRows(v)
	t.rows, o.FirstVictim = t.rows[:0], append(o.FirstVictim[:0], 0)
	for _, at := range t.at {
		t.rows = append(t.rows, s.options[at].victims...)
		o.FirstVictim = append(o.FirstVictim, int32(len(t.rows)))
	}
	scratch.Columns(&o.Need, dims)
	for d := range o.Need {
		o.Need[d] = scratch.Sized(o.Need[d], len(t.at))
		for i, at := range t.at {
			o.Need[d][i] = s.options[at].need[d]
		}
	}
	columns.FillRows(v, t.rows, read, s.req.Evictions)
	if read.Has(sdk.RelocationColumns) {
		t.fillVictimRelocation(s)
	}
	if v.Budgets = nil; read.Has(sdk.BudgetColumns) {
		columns.FillBudgets(v, s.scope.Snap, t.rows)
	}
	t.fillRare(s, v)
	if read.Has(sdk.AnnotationColumns) {
		v.Annotations = columns.Annotations(t.rows)
	}
}

// fillRare fills the columns of victims that few policies read, or that few requests
// need: MustLeave is zero unless ports or separation matter.
func (t *optionTable) fillRare(s *search, v *sdk.Rows) {
	if s.traits.optionColumns.Has(sdk.MustLeaveColumn) {
		v.MustLeave = scratch.Zeroed(v.MustLeave, len(t.rows))
	}
	always := !s.traits.simpleAsk || s.traits.optionColumns&columns.Rare != 0
	if !always && !s.traits.separation {
		return
	}
	for i, at := range t.at {
		opt := &s.options[at]
		if !always && !s.req.Rules.HasSeparatedRows(opt.pos) {
			continue
		}
		for x := t.options.FirstVictim[i]; x < t.options.FirstVictim[i+1]; x++ {
			t.fillVictim(s, v, opt, x)
		}
	}
}

// fillVictim fills the rare columns of one victim of an option.
func (t *optionTable) fillVictim(s *search, v *sdk.Rows, opt *option, x int32) {
	row, read := t.rows[x], s.traits.optionColumns
	isHere := row.Alloc.NodePos == opt.pos // otherwise it leaves with another victim
	if isHere && read.Has(sdk.MustLeaveColumn) {
		v.MustLeave[x] = s.mustLeave(opt.pos, row)
	}
	if read&columns.Rare != 0 {
		columns.AppendRare(v, read, &t.ids, s.req.Now, row)
	}
	if len(v.Devices) > 0 {
		node := s.scope.Snap.NodeAt(opt.pos)
		choice := s.deviceChoice(opt)
		for r := range v.Devices {
			n := 0.0
			if isHere && choice != nil {
				n = columns.DeviceUse(node, row.Alloc, choice[r])
			}
			v.Devices[r] = append(v.Devices[r], n)
		}
	}
}

// playedOption is an option of the table with its outlook.
type playedOption struct {
	at int32 // in results.options
	model.Outlook
}

// best returns the best n options of the last call, the best first.
func (t *optionTable) best(n int) []int {
	list := make([]int, 0, n+1)
	for i := range t.at {
		if len(list) == n && !t.better(i, list[n-1]) {
			continue
		}
		at := len(list)
		for at > 0 && t.better(i, list[at-1]) {
			at--
		}
		list = slices.Insert(list, at, i)
		list = list[:min(len(list), n)]
	}
	return list
}

// fillOutlooks fills the outlook of every option: zeros unless the options were played.
func (t *optionTable) fillOutlooks() {
	o, n := &t.options, len(t.at)
	o.ExpectedLostWork, o.CascadeDepth = scratch.Zeroed(o.ExpectedLostWork, n), scratch.Zeroed(o.CascadeDepth, n)
	o.ExpectedDelay = scratch.Zeroed(o.ExpectedDelay, n)
	for i := range t.outlooks {
		x := &t.outlooks[i]
		o.ExpectedLostWork[i], o.CascadeDepth[i], o.ExpectedDelay[i] = x.LostWork, x.Depth, x.Delay
	}
}
