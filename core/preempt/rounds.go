package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A policy that declares which option it takes (Info.LeastFirst), or that more expensive
// victims do not lower its tiers (Info.Monotone), need not be called about the candidates of
// most nodes of a large cluster: a lower bound of their options follows from priorities,
// amounts, lost work and budgets, in a fraction of the time, and options on other nodes are
// better. So nodes are evaluated in rounds, those with the least bound first, until an option is
// known that none of the others can beat. The rest waits: once that option is taken, the
// next best may be among them.
//
// Which nodes are evaluated depends on neither workers nor timing.

// rounds are the nodes of such a search that have not been evaluated.
type rounds struct {
	bounds  []prune.Bound // by distinct node; waiting shares its memory
	least   []prune.LeastVictims
	waiting prune.BoundQueue // not evaluated yet
	size    int              // nodes in the next round while no option is known
}

// firstRound is the size of the first round. Each round that finds no option is followed
// by one four times as large.
const firstRound = 64

// usesRounds reports whether the policy allows rounds, and whether they pay.
func (f *Finder) usesRounds() bool {
	return f.search.traits.bounding() != unbounded && len(f.plan.distinct) == len(f.plan.leader) && len(f.plan.distinct) >= blockNodes
}

// searchInRounds evaluates the nodes without a bound, then the others in rounds.
func (f *Finder) searchInRounds() {
	r, p := &f.rounds, &f.plan
	r.boundAll(f)
	unknown := p.evaluating[:0]
	r.waiting, r.size = r.bounds[:0], firstRound
	for i, b := range r.bounds {
		if b.Slot >= 0 {
			r.waiting = append(r.waiting, b)
		} else {
			unknown = append(unknown, p.distinct[i])
		}
	}
	r.waiting.Init()
	f.evaluate(unknown)
	f.continueRounds(false)
}

// boundAll computes a bound of each distinct node, into r.bounds at the position of its slot in
// the plan. Workers share the nodes, and call the chooser about the least victims of each of
// their blocks, so that its input does not depend on the number of workers. If it reads tables
// that one goroutine must compute, one call about all nodes follows.
func (r *rounds) boundAll(f *Finder) {
	s := &f.search
	all := work{slots: f.plan.distinct}
	r.bounds = scratch.Sized(r.bounds, len(all.slots))
	all.bounds = r.bounds
	byTier := s.traits.bounding() == boundByTier
	if byTier {
		r.least = scratch.Sized(r.least, len(all.slots))
		all.least = r.least
		all.score = !readsSharedTables(s.traits.optionColumns)
	}
	if all.score {
		s.inputs.SharedFor(s.traits.optionColumns, nil) // computes the totals before workers read them
		if f.err = startScorers(s, f.active()); f.err != nil {
			return
		}
	}
	f.eachWorker(all, (*worker).boundBlocks)
	switch {
	case all.score:
		f.collect()
	case byTier:
		f.err = f.table.scoreLeast(s, &f.chooser, r.bounds, r.least)
	}
}

// A bounder computes bounds of nodes for a worker, which alone uses it.
//
// Calling the chooser once about all nodes would leave the other workers idle meanwhile: under
// a policy that reads each victim, the call takes as long as listing the victims. So each
// worker calls it about one block at a time. The bounds are the same, because a policy with
// Info.Monotone derives the tiers of an option from that option alone.
type bounder struct {
	estimator prune.Estimator
	table     optionTable
	// chooser is set if it scores bounds and is another policy than the worker's victims.
	chooser hook
}

// startScorers makes workers able to call the chooser. It returns an error if an instance
// cannot be acquired; the workers release those that were. Instances from before a restart of
// the search are returned first.
func startScorers(s *search, workers []*worker) (err error) {
	if s.traits.chooser == s.traits.victims {
		return nil
	}
	for _, w := range workers {
		w.bounder.chooser.release()
		if w.bounder.chooser, err = acquireHook(s.traits.chooser, s.req.OnCall); err != nil {
			return err
		}
	}
	return nil
}

// scorer returns the instance of the chooser that scores bounds. The worker's instance for
// victims serves if it is of the same policy, as it is not in use while bounds are computed.
func (b *bounder) scorer(w *worker) *hook {
	if w.s.traits.chooser == w.s.traits.victims {
		return &w.victims
	}
	return &b.chooser
}

// boundBlocks computes the bounds of every step-th block of nodes, beginning with first.
func (w *worker) boundBlocks(all work, first, step int) {
	slots, b := all.slots, &w.bounder
	b.estimator.Start(&w.s.scope, w.s.traits.estimatorMode())
	for block := first; block*blockNodes < len(slots) && w.failure.err == nil; block += step {
		w.failure.block = block
		from, to := block*blockNodes, min((block+1)*blockNodes, len(slots))
		for i := from; i < to; i++ {
			if all.least == nil {
				all.bounds[i] = b.bound(w.s, slots[i])
			} else {
				all.bounds[i] = b.list(w.s, slots[i], &all.least[i])
			}
		}
		if all.score {
			w.fail(b.table.scoreLeast(w.s, b.scorer(w), all.bounds[from:to], all.least[from:to]))
		}
	}
}

// bound returns a lower bound of the options on the node at slot, if amounts and budgets
// alone decide there. Otherwise its slot is -1.
func (b *bounder) bound(s *search, slot int32) prune.Bound {
	n, ok := s.boundable(slot)
	if !ok {
		return prune.Bound{Slot: -1}
	}
	cost, exact, ok := b.estimator.Estimate(&n)
	if !ok {
		return prune.Bound{Slot: -1}
	}
	return prune.Bound{Slot: slot, Exact: exact, Key: cost.Key()}
}

// list fills in the least victims on the node at slot instead, and returns a bound without
// its key.
func (b *bounder) list(s *search, slot int32, least *prune.LeastVictims) prune.Bound {
	n, ok := s.boundable(slot)
	if !ok || !b.estimator.ListLeast(&n, s.traits.optionColumns, least) {
		return prune.Bound{Slot: -1}
	}
	return prune.Bound{Slot: slot}
}

// readsSharedTables reports whether a policy reads tables that only one goroutine may compute:
// they name budgets and namespaces. Totals are cached before workers run.
func readsSharedTables(read sdk.Columns) bool {
	return read&(sdk.SharedTables|sdk.BudgetColumns)&^sdk.TotalsColumn != 0
}

// continueRounds evaluates further nodes until no other one can have a better option than
// those that are known, or all of them. Usually the first round finds a good option, and
// the second one evaluates everything that could be better.
func (f *Finder) continueRounds(all bool) {
	r := &f.rounds
	for len(r.waiting) > 0 && f.err == nil {
		next := f.plan.evaluating[:0]
		best, known := r.bestFound(f)
		switch {
		case f.err != nil:
			return
		case all || !known:
			next = r.take(next, all, f.search.traits.predictable)
		default:
			for len(r.waiting) > 0 && mayBeat(&r.waiting[0], &best, f.search.traits.predictable) {
				next = append(next, r.waiting.Pop().Slot)
			}
		}
		if len(next) == 0 {
			return
		}
		slices.Sort(next)
		f.evaluate(next)
	}
}

// take appends the slots of the next round: all, or those with the least bounds. An exact
// bound is as good as a known option: nothing with a higher bound is taken with it.
func (r *rounds) take(slots []int32, all, predictable bool) []int32 {
	for left := r.size; len(r.waiting) > 0 && (all || left > 0); left-- {
		b := r.waiting.Pop()
		slots = append(slots, b.Slot)
		if b.Exact && !all && len(r.waiting) > 0 && !mayBeat(&r.waiting[0], &b, predictable) {
			return slots
		}
	}
	r.size *= 4
	return slots
}

// mayBeat reports whether the policy may take an option on a node rather than a known
// one.
func mayBeat(b, known *prune.Bound, predictable bool) bool {
	if predictable {
		return !known.Less(b) // of equals it takes the first
	}
	return !known.Key.Less(&b.Key)
}

// bestFound returns the best of the options so far, the first of equals. Rounds are used for
// requests for amounts alone: one option a node, so that positions of options are slots.
//
// Keys that consist of tiers take one call of the chooser about all options so far. There are
// few of them, and few rounds.
func (r *rounds) bestFound(f *Finder) (best prune.Bound, known bool) {
	byTier := f.search.traits.bounding() == boundByTier
	if byTier {
		if f.err = f.scoreOptions(); f.err != nil {
			return best, false
		}
		for i, slot := range f.table.at {
			if key := f.table.key(i); !known || key.Less(&best.Key) {
				best, known = prune.Bound{Slot: slot, Exact: true, Key: key}, true
			}
		}
		return best, known
	}
	for i := range f.search.options {
		if o := &f.search.options[i]; o.feasible {
			if key := o.costKey(); !known || key.Less(&best.Key) {
				best, known = prune.Bound{Slot: int32(i), Exact: true, Key: key}, true
			}
		}
	}
	return best, known
}

// scoreLeast calls the chooser about the least victims of nodes, each list as if it were an
// option, and sets the keys of their bounds. It ignores scores and recheck times, as no such
// option exists.
func (t *optionTable) scoreLeast(s *search, chooser *hook, bounds []prune.Bound, least []prune.LeastVictims) error {
	t.at, t.levels = t.at[:0], t.levels[:0]
	for i := range bounds {
		if bounds[i].Slot < 0 {
			continue
		}
		for k := range least[i].Levels {
			t.at, t.levels = append(t.at, int32(i)), append(t.levels, &least[i].Levels[k])
		}
	}
	if len(t.at) == 0 {
		return nil
	}
	t.fillLeast(s, bounds, least)
	if err := t.callPolicy(chooser, len(t.at)); err != nil {
		return err
	}
	for i, at := range t.at {
		if key := t.key(i); i == 0 || at != t.at[i-1] || key.Less(&bounds[at].Key) {
			bounds[at].Key = key
		}
	}
	return nil
}

// fillLeast lays out one option for each of t.levels. Only columns of boundColumns are read.
//
// A column without a lower bound by node has the value that costs least: victims have just
// started, overrun no budget and could run elsewhere. Needs, ranks and names of nodes are
// zero, because tiers do not depend on them.
func (t *optionTable) fillLeast(s *search, bounds []prune.Bound, least []prune.LeastVictims) {
	o, n := &t.options, len(t.at)
	t.start(s)
	o.Node, o.HighestPriority, o.VictimCount = scratch.Sized(o.Node, n), scratch.Sized(o.HighestPriority, n), scratch.Sized(o.VictimCount, n)
	o.PrioritySum, o.LostWork, o.BudgetViolations = scratch.Zeroed(o.PrioritySum, n), scratch.Zeroed(o.LostWork, n), scratch.Zeroed(o.BudgetViolations, n)
	o.Start = scratch.Filled(o.Start, n, o.Now)
	for i, l := range t.levels {
		o.Node[i], o.HighestPriority[i], o.VictimCount[i] = s.req.Nodes[bounds[t.at[i]].Slot], l.Priority[0], int32(l.Count)
		for k := range l.Count {
			o.PrioritySum[i] += int64(l.Priority[k])
			o.LostWork[i] += l.LostWork[k]
		}
	}
	read := s.traits.optionColumns
	if read.Has(sdk.RelocationColumns) {
		o.Stranded, o.Displacing = scratch.Zeroed(o.Stranded, n), scratch.Zeroed(o.Displacing, n)
		o.DisplacedPriority = scratch.Filled(o.DisplacedPriority, n, math.MinInt32)
		o.DisplacedLostWork = scratch.Zeroed(o.DisplacedLostWork, n)
	}
	if read.Has(sdk.LookAheadColumns) {
		t.outlooks = t.outlooks[:0]
		t.fillOutlooks()
	}
	if read.Has(sdk.FitColumns) {
		t.zeroFit(n)
	}
	if read.Has(sdk.VictimColumns) {
		t.fillLeastVictims(s, least)
	}
	o.Shared = s.inputs.SharedFor(read, &t.ids)
	o.Strings = t.ids.List
}

// zeroFit fills the ranks of n nodes with zeros, and marks every component as absent. Scores
// may depend on them; tiers of a policy with Info.Monotone do not.
func (t *optionTable) zeroFit(n int) {
	o := &t.options
	o.FitBefore, o.FitAfter = scratch.Zeroed(o.FitBefore, n), scratch.Zeroed(o.FitAfter, n)
	for k := range o.Components {
		o.Components[k] = scratch.Zeroed(o.Components[k], n)
	}
	o.Present = scratch.Zeroed(o.Present, n)
}

// fillLeastVictims fills the victims of every option. Their uses of a resource are equal: only
// one column can be sorted if each victim is to be at most as high as some real one in all
// columns, and lost work distinguishes nodes better than sizes do.
func (t *optionTable) fillLeastVictims(s *search, least []prune.LeastVictims) {
	o, v, read := &t.options, &t.options.Victims, s.traits.optionColumns
	o.FirstVictim = append(o.FirstVictim[:0], 0)
	v.Priority, v.LostWork = v.Priority[:0], v.LostWork[:0]
	for _, l := range t.levels {
		v.Priority, v.LostWork = append(v.Priority, l.Priority[:l.Count]...), append(v.LostWork, l.LostWork[:l.Count]...)
		o.FirstVictim = append(o.FirstVictim, int32(len(v.Priority)))
	}
	rows := len(v.Priority)
	scratch.Columns(&o.Need, s.inputs.Dimensions.Len())
	for d := range o.Need {
		o.Need[d] = scratch.Zeroed(o.Need[d], len(t.at))
	}
	scratch.Columns(&v.Use, s.inputs.Dimensions.Len())
	scratch.Columns(&v.Devices, 0)
	if read.Has(sdk.UseColumns) {
		for d := range v.Use {
			use := scratch.Sized(v.Use[d], rows)[:0]
			for i, l := range t.levels {
				least := float64(least[t.at[i]].Use[d])
				for range l.Count {
					use = append(use, least)
				}
			}
			v.Use[d] = use
		}
	}
	v.MustLeave = scratch.Zeroed(v.MustLeave, rows)
	if read.Has(sdk.StartColumn) {
		v.Start = scratch.Filled(v.Start, rows, o.Now)
	}
	if read.Has(sdk.RelocationColumns) {
		v.Relocation = scratch.Filled(v.Relocation, rows, sdk.RelocationFree)
		v.DisplacedPriority = scratch.Filled(v.DisplacedPriority, rows, math.MinInt32)
		v.DisplacedLostWork = scratch.Zeroed(v.DisplacedLostWork, rows)
	}
	if v.Budgets = nil; read.Has(sdk.BudgetColumns) {
		v.Budgets = &sdk.BudgetRefs{First: make([]int32, rows+1)}
	}
	if v.Annotations = nil; read.Has(sdk.AnnotationColumns) {
		v.Annotations = columns.Annotations(nil)
	}
}
