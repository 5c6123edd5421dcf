package composition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An instance holds a running instance of every part.
type instance struct {
	m     *Module
	parts []runningPart
	// The parts that each hook uses, in order.
	eligible, order, option, bindings []*runningPart

	info    sdk.Info
	hooks   policy.Hooks
	columns map[policy.Hooks]sdk.Columns // result of HookColumns

	called []*runningPart // by the last call of a hook

	// Memory that is reused from call to call.
	gap    []int32
	keys   []keyColumn
	ranks  []int32
	sorted []int32
	narrow narrowing
}

// runningPart is an instance of a part.
type runningPart struct {
	policy.Instance

	name   string
	info   sdk.Info
	limits policy.Limits

	candidates sdk.Candidates // view of the current call
	options    sdk.Options
}

var _ policy.Instance = (*instance)(nil)

// assign resolves the parts that each hook uses.
func (i *instance) assign() {
	resolve := func(of []int) (list []*runningPart) {
		for _, at := range of {
			list = append(list, &i.parts[at])
		}
		return list
	}
	u := &i.m.uses
	i.eligible, i.order, i.option, i.bindings = resolve(u.eligible), resolve(u.order), resolve(u.option), resolve(u.bindings)
}

// selects reports whether the part selects sets of victims, instead of scoring candidates.
func (p *runningPart) selects() bool { return p.Hooks().Has(policy.HookSelectVictims) }

// allowsBaseGap reports whether the part has no gate of its own but that of default: the
// base gap.
func (p *runningPart) allowsBaseGap() bool {
	return p.info.Name == policy.DefaultName && !p.Hooks().Has(policy.HookDelta)
}

// check returns an error that lists every part that lacks the hook for which it is used, and
// all that cannot be combined.
func (i *instance) check() error {
	var errs []error
	lacks := func(hook string, p *runningPart, needed string) {
		errs = append(errs, fmt.Errorf("%s: part %s has no hook %s", hook, p.name, needed))
	}
	for _, p := range i.eligible {
		if !p.Hooks().Has(policy.HookDelta) && !p.allowsBaseGap() {
			lacks("eligible", p, "priorityDelta")
		}
	}
	for n, p := range i.order {
		if p.Hooks()&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 {
			lacks("order", p, "scoreVictims or selectVictims")
			continue
		}
		if n < len(i.order)-1 {
			errs = append(errs, i.checkTiers(p))
		}
	}
	for _, p := range i.option {
		if !p.Hooks().Has(policy.HookScoreOptions) {
			lacks("option", p, "scoreOptions")
		}
	}
	for _, p := range i.bindings {
		if !p.Hooks().Has(policy.HookPreemptBindings) {
			lacks("bindings", p, "preemptBindings")
		}
	}
	for hook, list := range map[string][]*runningPart{"option": i.option, "bindings": i.bindings} {
		if len(list) > 1 {
			errs = append(errs, fmt.Errorf("%s: %d parts, but one alone can decide", hook, len(list)))
		}
	}
	if len(i.eligible)+len(i.order)+len(i.option)+len(i.bindings) == 0 {
		errs = append(errs, errors.New("no part is used: add eligible, order, option or bindings"))
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(hookOf(a), hookOf(b)) })
	return errors.Join(errs...)
}

// hookOf returns the part of an error before the first colon, by which errors are sorted.
func hookOf(err error) string {
	hook, _, _ := strings.Cut(err.Error(), ":")
	return hook
}

// checkTiers returns an error if a part cannot precede another one in order.
func (i *instance) checkTiers(p *runningPart) error {
	last := i.order[len(i.order)-1]
	switch {
	case p.selects() && (!p.info.Ascending || p.info.Columns.Has(sdk.BudgetColumns)):
		return fmt.Errorf("order: part %s selects sets of victims that have no tiers: it can only be the last part", p.name)
	case p.info.Adaptive && last.selects():
		return fmt.Errorf("order: part %s scores candidates after each pick, which part %s does not wait for: it cannot precede it", p.name, last.name)
	}
	return nil
}

// describe derives hooks and properties from those of the parts. A property is declared only
// if it holds for the combination, whatever the other parts do.
func (i *instance) describe() {
	i.info = sdk.Info{Name: i.m.name, Delta: baseDelta(i.eligible)}
	if len(i.eligible) > 0 {
		i.hooks |= policy.HookDelta
	}
	i.columns = map[policy.Hooks]sdk.Columns{
		policy.HookDelta: columnsOf(i.eligible), policy.HookScoreOptions: columnsOf(i.option),
		policy.HookScoreVictims: columnsOf(i.order), policy.HookSelectVictims: columnsOf(i.order),
	}
	if n := len(i.order); n > 0 {
		i.hooks |= policy.HookScoreVictims
		if i.order[n-1].selects() {
			i.hooks ^= policy.HookScoreVictims | policy.HookSelectVictims
			i.info.KeepRedundant = i.order[n-1].info.KeepRedundant
			if n > 1 { // see narrowing
				i.columns[policy.HookSelectVictims] |= sdk.UseColumns | sdk.MustLeaveColumn | sdk.DeviceColumns
			}
		}
		for _, p := range i.order {
			i.info.Adaptive = i.info.Adaptive || p.info.Adaptive && !p.selects()
		}
	}
	for _, columns := range i.columns {
		i.info.Columns |= columns
	}
	i.info.Ascending = i.isAscending()
	if len(i.option) > 0 {
		i.hooks |= policy.HookScoreOptions
		chooser := i.option[0]
		i.info.Monotone = chooser.info.Monotone
		// With budgets, the property has another meaning.
		i.info.LeastFirst = chooser.info.LeastFirst && i.sameBudgets(chooser)
		i.info.YoungestFirst = chooser.info.YoungestFirst && len(i.order) == 1 && i.order[0] == chooser && i.sameBudgets(chooser)
	}
	if len(i.bindings) > 0 {
		i.hooks |= policy.HookPreemptBindings
		i.info.Elastic, i.info.MultiCluster = i.bindings[0].info.Elastic, i.bindings[0].info.MultiCluster
	}
}

func columnsOf(parts []*runningPart) (columns sdk.Columns) {
	for _, p := range parts {
		columns |= p.info.Columns
	}
	return columns
}

// HookColumns returns the columns that the parts of each hook receive, so that the host fills no
// others. The caller must not modify it.
func (i *instance) HookColumns() map[policy.Hooks]sdk.Columns { return i.columns }

// defaultDelta is the base gap of the policy default.
const defaultDelta = 10

// baseDelta returns the widest base gap of the gates, or that of default if there are none.
func baseDelta(gates []*runningPart) int32 {
	if len(gates) == 0 {
		return defaultDelta
	}
	delta := gates[0].info.Delta
	for _, p := range gates {
		delta = max(delta, p.info.Delta)
	}
	return delta
}

// sameBudgets reports whether the composition reads budgets if and only if the part does.
func (i *instance) sameBudgets(p *runningPart) bool {
	return i.info.Columns.Has(sdk.BudgetColumns) == p.info.Columns.Has(sdk.BudgetColumns)
}

// isAscending reports whether victims are evicted by ascending priority: the first part of
// order determines it, and no later one excludes candidates. The property concerns bindings
// too.
func (i *instance) isAscending() bool {
	deciding := slices.Concat(i.order, i.bindings)
	if len(deciding) == 0 {
		return false
	}
	for n, p := range deciding {
		if n > 0 && n < len(i.order) && p.selects() {
			continue // it chooses among the candidates of the lowest priorities that suffice
		}
		if !p.info.Ascending {
			return false
		}
	}
	return len(i.order) == 0 || i.sameBudgets(i.order[0])
}

// Info implements policy.Instance.
func (i *instance) Info() sdk.Info { return i.info }

// Hooks implements policy.Instance.
func (i *instance) Hooks() policy.Hooks { return i.hooks }

// Fuel returns the fuel that all parts used in the last call of a hook.
func (i *instance) Fuel() (used uint64) {
	for _, p := range i.called {
		used += p.Fuel()
	}
	return used
}

// CallFuel returns the fuel that the parts of the last call may use together, for a number
// of rows and options. Parts that are not metered do not count.
func (i *instance) CallFuel(rows int) (allowed uint64) {
	for _, p := range i.called {
		if p.Fuel() > 0 {
			allowed += p.limits.CallFuel(rows)
		}
	}
	return allowed
}

// Memory returns the memory of all parts, in bytes, as far as their hosts count it.
func (i *instance) Memory() (bytes int64) {
	for n := range i.parts {
		if m, ok := i.parts[n].Instance.(interface{ Memory() int64 }); ok {
			bytes += m.Memory()
		}
	}
	return bytes
}

// Alive reports whether every part can still be used.
func (i *instance) Alive() bool {
	for n := range i.parts {
		if !i.parts[n].Alive() {
			return false
		}
	}
	return true
}

// Close closes the instances of all parts.
func (i *instance) Close() {
	for n := range i.parts {
		i.parts[n].Close()
	}
}
