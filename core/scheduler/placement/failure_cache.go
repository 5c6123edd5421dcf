package placement

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A failureCache records which groups could not be placed on any node, and at
// which index. As long as no rule concerns other nodes, whether a node can take a
// group depends on that node alone, so that the next evaluation examines only
// nodes that have changed since. Without it every evaluation of a blocked job
// would scan a full cluster.
//
// Entries are by equivalence class of groups: a failure of one job serves all
// groups that are like it.
type failureCache struct {
	byClass  map[string]failure
	classSet map[string]*classSet // by content, so that equal sets are stored once
}

// A classSet holds by key whether node classes are feasible. It is never changed.
type classSet struct{ feasible map[uint64]bool }

// A failure describes why a group could not be placed and for which inputs that holds.
type failure struct {
	index    uint64 // of the snapshot that was searched
	config   uint64 // modify index of the scheduler configuration
	version  *policy.Version
	preempts bool
	why      *model.Explanation
	classes  *classSet
	escaped  bool
}

// maxFailures bounds the cache. Beyond it all entries are dropped, which costs one
// full scan per blocked group.
const maxFailures = 1 << 16

func newFailureCache() failureCache {
	return failureCache{byClass: map[string]failure{}, classSet: map[string]*classSet{}}
}

// intern returns the classSet with the given content. Few of them are shared by
// the many groups that have the same constraints.
func (c *failureCache) intern(classes map[uint64]bool) *classSet {
	keys := slices.Sorted(maps.Keys(classes))
	content := make([]byte, 0, 9*len(keys))
	for _, key := range keys {
		content = binary.BigEndian.AppendUint64(content, key)
		content = strconv.AppendBool(content, classes[key])
	}
	if known := c.classSet[string(content)]; known != nil {
		return known
	}
	s := &classSet{classes}
	c.classSet[string(content)] = s
	return s
}

// mayCache reports whether failures of the evaluation may be cached: nothing that
// they depend on changes with time alone. In addition, the rules of the group must
// not be global.
func (e *Evaluation) mayCache() bool {
	v := e.Policy.Version
	// Whether a node can take an instance after moves depends on all other nodes.
	return !e.ws.Options.NoFailureCache && !e.Moves.Allowed() && v.Info().Columns&(sdk.TimeColumns|sdk.SharedTables) == 0 &&
		v.Hooks()&policy.HookDelta == 0 && !e.hasClaims()
}

// hasClaims reports whether any claim exists. Claims expire without a state change.
func (e *Evaluation) hasClaims() bool {
	for range e.State.Base.Claims() {
		return true
	}
	return false
}

// lookupFailure returns the cached failure of a group if it is still valid for the
// configuration and the policy of the evaluation.
func (e *Evaluation) lookupFailure(g *model.Group, rules *feasible.Rules) (failure, bool) {
	if !e.cacheable || rules.IsGlobal() {
		return failure{}, false
	}
	base := e.State.Base
	f, ok := e.ws.failures.byClass[g.EquivalenceClass()]
	ok = ok && f.index <= base.Index() && f.version == e.Policy.Version && f.preempts == e.Preemption.Allowed &&
		f.config == base.Config().ModifyIndex
	return f, ok
}

// stillInfeasible returns the cached failure of a group if no node that has
// changed since could take it. It costs one check per changed node and not one per
// node of the cluster, which matters for jobs of a thousand groups.
func (e *Evaluation) stillInfeasible(g *model.Group, rules *feasible.Rules) (failure, bool) {
	f, ok := e.lookupFailure(g, rules)
	if !ok {
		return failure{}, false
	}
	snap := e.State.Snapshot()
	changed := e.ws.changed.since(snap, f.index)
	for k := range changed {
		n := &changed[k]
		if n.index > f.index && e.ws.changed.mightTake(n, snap, &g.Ask, e.Preemption.Ceiling) &&
			g.IsFeasible(snap.NodeAt(n.pos)) && (rules == nil || rules.Allows(n.pos)) {
			return failure{}, false
		}
	}
	if !e.Job.AllAtOnce || !e.State.Changed() { // see cacheFailure
		f.index = e.State.Base.Index()
		e.ws.failures.byClass[g.EquivalenceClass()] = f
	}
	return f, true
}

// IsInfeasible reports whether a cached failure of a group is still valid.
func (e *Evaluation) IsInfeasible(g *model.Group) bool {
	_, infeasible := e.stillInfeasible(g, feasible.NewRules(e.Rules, g))
	return infeasible
}

// cacheFailure stores or removes the failure of the placer's group. It describes
// the state after the plan: nodes that the plan changes will have a higher index
// than the snapshot, and if the plan is not committed in full, ForgetFailures
// removes the entry. A gang that fails has no plan, so its failure is cached only
// if none of its groups had changed the proposed state.
func (p *Placer) cacheFailure(failed bool) {
	e := p.e
	if !e.cacheable || p.Rules.IsGlobal() {
		return
	}
	c := &e.ws.failures
	if !failed || p.isVolatile() || e.Job.AllAtOnce && e.State.Changed() {
		delete(c.byClass, p.group.EquivalenceClass())
		return
	}
	if len(c.byClass) >= maxFailures {
		*c = newFailureCache()
	}
	why := p.Explain() // before the classes: it checks the remaining ones
	classes := p.checker.Classes(e.State.Base)
	if p.cachedClasses != nil {
		maps.Copy(classes, p.cachedClasses.feasible)
	}
	c.byClass[p.group.EquivalenceClass()] = failure{
		index: e.State.Base.Index(), config: e.State.Base.Config().ModifyIndex,
		version: e.Policy.Version, preempts: e.Preemption.Allowed, why: why,
		classes: c.intern(classes), escaped: p.escapes(),
	}
}
