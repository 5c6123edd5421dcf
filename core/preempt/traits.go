package preempt

import (
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// traits are the properties of a search from which it follows which policies are called
// and which shortcuts keep the result. They are computed once a search, and read-only.
type traits struct {
	victims *policy.Version // selects victims
	delta   *policy.Version // limits candidates; nil: the base gap holds for all of them
	chooser *policy.Version // scores options

	columns       sdk.Columns // that victims reads
	optionColumns sdk.Columns // that chooser reads
	relocates     bool        // some of them reads where victims could run instead
	looksAhead    bool        // chooser reads outlooks, and options can be played

	// simpleAsk: the request contains neither ports nor devices.
	simpleAsk bool
	// separation: some rows may exclude the group.
	separation bool
	// remote: evictions on other nodes may make a node feasible.
	remote bool
	// ascending: the policy goes by ascending priority, so that candidates above the
	// first sufficient priority do not matter.
	ascending bool
	// budgetsFirst: it does so only where no budget is overrun.
	budgetsFirst bool
	// fast: nodes where amounts alone decide can use evaluateFast. They do not if some group of
	// the job has co-location terms: the others spare what it needs.
	fast bool
	// predictable: the cost of an option can be predicted where amounts and budgets
	// alone decide.
	predictable bool
}

// newTraits computes the traits of a search.
func newTraits(req *Request, snap *state.Snapshot) (t traits) {
	t.victims, t.chooser = req.Policy, req.Policy
	if req.Policy.Hooks()&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 {
		t.victims = req.Default
	}
	if !req.Policy.Hooks().Has(policy.HookScoreOptions) {
		t.chooser = req.Default
	}
	if req.Policy.Hooks().Has(policy.HookDelta) {
		t.delta = req.Policy
	}
	info := t.victims.Info()
	// Outlooks exist after victims were selected.
	selector := policy.HookScoreVictims
	if t.victims.Hooks().Has(policy.HookSelectVictims) {
		selector = policy.HookSelectVictims
	}
	t.columns = t.victims.Columns(selector) &^ sdk.LookAheadColumns
	t.optionColumns = t.chooser.Columns(policy.HookScoreOptions)
	t.looksAhead = req.LookAhead != nil && t.optionColumns.Has(sdk.LookAheadColumns)
	t.relocates = t.reads(sdk.RelocationColumns) || t.optionColumns.Has(sdk.RelocationColumns)
	t.simpleAsk = len(req.Group.Ask.Ports)+len(req.Group.Ask.Devices) == 0
	t.separation = req.Rules != nil && req.Rules.HasSeparation()
	t.remote = t.separation && req.RemoteEvictions
	t.ascending = info.Ascending
	t.budgetsFirst = t.ascending && t.columns.Has(sdk.BudgetColumns) && len(snap.Budgets()) > 0
	t.fast = t.simpleAsk && t.ascending && t.delta == nil && req.TieOrder.ByID() &&
		(req.Rules == nil || !req.Group.Job.Colocates())
	t.predictable = t.fast && info.YoungestFirst && t.columns.Has(sdk.StartColumn) && !t.victims.KeepsRedundant() &&
		t.victims == t.chooser && t.victims.Hooks().Has(policy.HookSelectVictims) && len(req.Excluded) == 0
	return t
}

// reads reports whether a hook that limits or selects victims reads a column.
func (t *traits) reads(column sdk.Columns) bool {
	return t.columns.Has(column) || t.delta != nil && t.delta.Columns(policy.HookDelta).Has(column)
}

// sharesAcrossNodes reports whether a solution holds for all nodes of a class: nothing
// that policies read of options and candidates distinguishes such nodes.
func (t *traits) sharesAcrossNodes(req *Request) bool {
	return t.fast && len(req.Excluded) == 0 && prune.ReadsClassesOnly(t.columns, t.optionColumns)
}

// bounding is how the policy's choice among nodes can be bounded, so that most of them need no
// call.
type bounding uint8

const (
	unbounded   bounding = iota // the policy is called for every node
	boundByCost                 // Info.LeastFirst: the host computes the keys of options
	boundByTier                 // Info.Monotone: the policy is called about the least victims of each node
)

// boundColumns are the columns that the host can fill for the least victims of a node: those
// that have a least value, those that are the same for every option, and those that are empty
// for a request for amounts alone.
const boundColumns = sdk.UseColumns | sdk.StartColumn | sdk.LostWorkColumn | sdk.MustLeaveColumn | sdk.DeviceColumns |
	sdk.AnnotationColumns | sdk.VictimColumns | sdk.FitColumns | sdk.TimeColumns | sdk.TotalsColumn | sdk.BudgetColumns |
	sdk.RelocationColumns | sdk.LookAheadColumns

// BoundsVictims reports whether the host can make fictitious victims for a policy that reads some
// columns.
func BoundsVictims(read sdk.Columns) bool { return read&^boundColumns == 0 }

// bounding returns how the policy's choice can be bounded. Ports and devices exclude bounds:
// amounts alone would no longer decide. Options that are played exclude them as well: the best
// ones before that need not be the best ones after it. So does a column that has no least value,
// such as names: a policy that declares Monotone does not order by it, but may read it for its
// scores.
//
// A hook that limits candidates does not exclude bounds. They hold for every set of victims below
// the preemptor's priority that suffices, and the hook only removes some of these sets.
func (t *traits) bounding() bounding {
	info := t.chooser.Info()
	switch {
	case t.looksAhead || !t.simpleAsk:
		return unbounded
	case info.LeastFirst && t.optionColumns.Has(sdk.StartColumn):
		return boundByCost
	case info.Monotone && t.optionColumns&^boundColumns == 0:
		return boundByTier
	}
	return unbounded
}

// estimatorMode returns the declarations that bounds depend on.
func (t *traits) estimatorMode() prune.EstimatorMode {
	return prune.EstimatorMode{
		Predictable: t.predictable, BudgetsFirst: t.budgetsFirst, CountsViolations: t.optionColumns.Has(sdk.BudgetColumns),
	}
}
