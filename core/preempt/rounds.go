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
	slots   []int32          // of the nodes outside the sample
	probe   []int32          // some of them; see areAlike
	bounds  []prune.Bound    // of these nodes; waiting shares its memory
	limit   prune.Limit      // result of findLimit
	waiting prune.BoundQueue // not evaluated yet
	size    int              // nodes in the next round
}

// Nodes in the first round; each further one has four times as many. Bounds by tiers are closer,
// and the options take longer to evaluate.
const (
	firstByCost = 64
	firstByTier = 8
)

// sampleNodes are evaluated before bounds by tiers are computed, and probedNodes are bounded before
// all others are.
const (
	sampleNodes = 8
	probedNodes = 64
)

// usesRounds reports whether the policy allows rounds, and whether they pay.
func (f *Finder) usesRounds() bool {
	return f.search.traits.bounding() != unbounded && len(f.plan.distinct) == len(f.plan.leader) && len(f.plan.distinct) >= blockNodes
}

// searchInRounds evaluates a sample and the nodes without a bound, then the others in rounds.
func (f *Finder) searchInRounds() {
	r, p := &f.rounds, &f.plan
	r.size = firstByCost
	r.slots = append(r.slots[:0], p.distinct...)
	var limit *prune.Limit
	if f.search.traits.bounding() == boundByTier {
		r.size = firstByTier
		var sample []int32
		sample, r.slots = split(p.evaluating[:0], r.slots)
		if f.evaluate(sample); f.err != nil {
			return
		}
		best, known := r.bestFound(f)
		if f.err != nil {
			return
		}
		if known {
			if limit = f.findLimit(&best); f.err != nil {
				return
			}
		}
		alike := r.areAlike(f, limit, &best, known)
		if f.err != nil {
			return
		}
		if alike {
			f.evaluate(append(p.evaluating[:0], r.slots...))
			return
		}
	}
	if r.boundAll(f, limit); f.err != nil {
		return
	}
	unknown := p.evaluating[:0]
	r.waiting = r.bounds[:0]
	for i, b := range r.bounds {
		if b.Slot >= 0 {
			r.waiting = append(r.waiting, b)
		} else {
			unknown = append(unknown, r.slots[i])
		}
	}
	r.waiting.Init()
	f.evaluate(unknown)
	f.continueRounds(false)
}

// split moves a few slots, evenly spaced, to the sample.
func split(sample, slots []int32) (_, others []int32) {
	step := max(1, len(slots)/sampleNodes)
	others = slots[:0]
	for i, slot := range slots {
		if i%step == 0 {
			sample = append(sample, slot)
		} else {
			others = append(others, slot)
		}
	}
	return sample, others
}

// areAlike reports whether bounds do not distinguish nodes that are evenly spaced, and exclude none
// of them, as under a policy without lost work on equal nodes. Then all nodes are evaluated: bounds
// would not omit enough of them to pay for those of all nodes.
func (r *rounds) areAlike(f *Finder, limit *prune.Limit, best *prune.Bound, known bool) bool {
	slots := r.slots
	r.slots = r.probe[:0]
	for i := 0; i < len(slots); i += max(1, len(slots)/probedNodes) {
		r.slots = append(r.slots, slots[i])
	}
	r.boundAll(f, limit)
	r.probe, r.slots = r.slots, slots
	first := &r.bounds[0]
	differs := func(b prune.Bound) bool { return b.Slot < 0 || b.Key != first.Key }
	return f.err == nil && !slices.ContainsFunc(r.bounds, differs) && (!known || mayBeat(first, best, false))
}

// findLimit returns the highest priority with which an option may rank before the best one of the
// sample, or nil if every priority may. It calls the chooser about single victims without lost
// work, of a few priorities at a time: an option with a victim of such a priority has at least
// the same tiers.
func (f *Finder) findLimit(best *prune.Bound) *prune.Limit {
	s, t, ceiling := &f.search, &f.table, min(f.search.scope.Ceiling, math.MaxInt32)
	// The limit is at least low and below high, whose tiers are key.
	low, high, key := int64(s.options[best.Slot].highest), ceiling+1, prune.HighestKey
	for high-low > 1 {
		t.least.Reset()
		step := (high - low + maxProbes - 1) / maxProbes
		for p := low + step; p < high; p += step {
			t.least.Levels = append(t.least.Levels, prune.OneVictim(s.req.Nodes[best.Slot], int32(p)))
		}
		if f.err = t.scoreLeast(s, &f.chooser); f.err != nil {
			return nil
		}
		for i := range t.least.Levels {
			p := int64(t.least.Levels[i].Priority[0])
			if k := t.key(i); best.Key.Less(&k) {
				high, key = p, k
				break
			}
			low = p
		}
	}
	if high > ceiling {
		return nil
	}
	f.rounds.limit = prune.Limit{Ceiling: low, Key: key}
	return &f.rounds.limit
}

// maxProbes is at most the number of priorities of a call about them.
const maxProbes = 64

// boundAll computes the bounds of r.slots. Workers share the nodes. If bounds are tiers, they call
// the chooser about the least victims of each of their blocks, so that its input does not depend
// on the number of workers. One worker bounds all nodes if the chooser reads tables that one
// goroutine must compute.
//
// Calling the chooser once about all nodes would leave the other workers idle meanwhile: under
// a policy that reads each victim, the call takes as long as listing the victims. The bounds are
// the same, because a policy with Info.Monotone derives the tiers of an option from that option
// alone.
func (r *rounds) boundAll(f *Finder, limit *prune.Limit) {
	s := &f.search
	all, workers := work{slots: r.slots, limit: limit}, f.active()
	r.bounds = scratch.Sized(r.bounds, len(all.slots))
	all.bounds = r.bounds
	if s.traits.bounding() == boundByCost {
		eachWorker(workers, all, (*worker).boundBlocks)
		return
	}
	if readsSharedTables(s.traits.optionColumns) {
		workers = workers[:1]
	} else {
		s.inputs.SharedFor(s.traits.optionColumns, nil) // computes the totals before workers read them
	}
	if f.err = startScorers(s, workers); f.err != nil {
		return
	}
	eachWorker(workers, all, (*worker).boundBlocksByTier)
	f.collect()
}

// A bounder computes bounds of nodes for a worker, which alone uses it.
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
	b := &w.bounder
	b.estimator.Start(&w.s.scope, w.s.traits.estimatorMode())
	for block := first; block*blockNodes < len(all.slots); block += step {
		for i := block * blockNodes; i < min((block+1)*blockNodes, len(all.slots)); i++ {
			all.bounds[i] = b.bound(w.s, all.slots[i])
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

// boundBlocksByTier does the same with tiers: those that the chooser gives to the least victims
// of each node.
func (w *worker) boundBlocksByTier(all work, first, step int) {
	b := &w.bounder
	b.estimator.Start(&w.s.scope, w.s.traits.estimatorMode())
	for block := first; block*blockNodes < len(all.slots) && w.failure.err == nil; block += step {
		w.failure.block = block
		from, to := block*blockNodes, min((block+1)*blockNodes, len(all.slots))
		bounds := all.bounds[from:to]
		b.table.at = b.table.at[:0]
		b.table.least.Reset()
		for i, slot := range all.slots[from:to] {
			bounds[i] = b.list(w.s, slot, all.limit)
			for len(b.table.at) < len(b.table.least.Levels) {
				b.table.at = append(b.table.at, int32(i))
			}
		}
		w.fail(b.scoreLists(w.s, b.scorer(w), bounds))
	}
}

// list appends the least victims on the node at slot, and returns the bound of its options
// above the limit. Its slot is -1 if the policy must be called.
func (b *bounder) list(s *search, slot int32, limit *prune.Limit) prune.Bound {
	least := &b.table.least
	n, ok := s.boundable(slot)
	of := len(least.Levels)
	if !ok || !b.estimator.ListLeast(&n, s.traits.optionColumns, limit, least) {
		return prune.Bound{Slot: -1}
	}
	for i := range least.Levels[of:] {
		least.Levels[of+i].Node = s.req.Nodes[slot]
	}
	if limit == nil {
		return prune.Bound{Slot: slot, Key: prune.HighestKey}
	}
	return prune.Bound{Slot: slot, Key: limit.Key}
}

// scoreLists calls the chooser about the lists of a block, each as if it were an option, and lowers
// the keys of bounds to theirs.
func (b *bounder) scoreLists(s *search, chooser *hook, bounds []prune.Bound) error {
	t := &b.table
	if err := t.scoreLeast(s, chooser); err != nil {
		return err
	}
	for i, at := range t.at {
		if key := t.key(i); key.Less(&bounds[at].Key) {
			bounds[at].Key = key
		}
	}
	return nil
}

// readsSharedTables reports whether a policy reads tables that only one goroutine may compute:
// they name budgets and namespaces. Totals are cached before workers run.
func readsSharedTables(read sdk.Columns) bool {
	return read&(sdk.SharedTables|sdk.BudgetColumns)&^sdk.TotalsColumn != 0
}

// continueRounds evaluates further nodes until no other one can have a better option than
// those that are known, or all of them. Usually the first round finds the best option.
func (f *Finder) continueRounds(all bool) {
	r := &f.rounds
	for len(r.waiting) > 0 && f.err == nil {
		best, known := r.bestFound(f)
		if f.err != nil {
			return
		}
		next := f.plan.evaluating[:0]
		switch {
		case all:
			next = r.takeAll(next)
		case known:
			next = r.take(next, &best, f.search.traits.predictable)
		default:
			next = r.take(next, nil, f.search.traits.predictable)
		}
		if len(next) == 0 {
			return
		}
		slices.Sort(next)
		f.evaluate(next)
	}
}

// takeAll appends the slots of all waiting nodes.
func (r *rounds) takeAll(slots []int32) []int32 {
	for _, b := range r.waiting {
		slots = append(slots, b.Slot)
	}
	r.waiting = r.waiting[:0]
	return slots
}

// take appends the slots of the next round: those with the least bounds. An option that is known,
// or that has an exact bound, excludes those that cannot beat it.
func (r *rounds) take(slots []int32, known *prune.Bound, predictable bool) []int32 {
	for left := r.size; left > 0 && len(r.waiting) > 0; left-- {
		if known != nil && !mayBeat(&r.waiting[0], known, predictable) {
			return slots
		}
		b := r.waiting.Pop()
		if slots = append(slots, b.Slot); b.Exact {
			exact := b // a pointer to b would allocate every b
			known = &exact
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

// scoreLeast calls the chooser about t.least: each list is a fictitious option. Scores and recheck
// times have no meaning then, as no such option exists.
func (t *optionTable) scoreLeast(s *search, chooser *hook) error {
	n := len(t.least.Levels)
	if n == 0 {
		return nil
	}
	t.fillLeast(s)
	return t.callPolicy(chooser, n)
}

// fillLeast lays out one option for each of t.least. Only columns of boundColumns are read.
//
// A column without a lower bound by node has the value that costs least: victims have just
// started, overrun no budget and could run elsewhere. Needs, ranks and names of nodes are
// zero, because tiers do not depend on them.
func (t *optionTable) fillLeast(s *search) {
	o, n := &t.options, len(t.least.Levels)
	t.start(s)
	o.Node, o.HighestPriority, o.VictimCount = scratch.Sized(o.Node, n), scratch.Sized(o.HighestPriority, n), scratch.Sized(o.VictimCount, n)
	o.PrioritySum, o.LostWork, o.BudgetViolations = scratch.Zeroed(o.PrioritySum, n), scratch.Zeroed(o.LostWork, n), scratch.Zeroed(o.BudgetViolations, n)
	o.Start = scratch.Filled(o.Start, n, o.Now)
	for i := range t.least.Levels {
		l := &t.least.Levels[i]
		o.Node[i], o.HighestPriority[i], o.VictimCount[i] = l.Node, l.Priority[0], l.Count
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
		t.fillLeastVictims(s)
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
func (t *optionTable) fillLeastVictims(s *search) {
	o, v, read, dims := &t.options, &t.options.Victims, s.traits.optionColumns, s.inputs.Dimensions.Len()
	o.FirstVictim = append(o.FirstVictim[:0], 0)
	v.Priority, v.LostWork = v.Priority[:0], v.LostWork[:0]
	for i := range t.least.Levels {
		l := &t.least.Levels[i]
		v.Priority, v.LostWork = append(v.Priority, l.Priority[:l.Count]...), append(v.LostWork, l.LostWork[:l.Count]...)
		o.FirstVictim = append(o.FirstVictim, int32(len(v.Priority)))
	}
	rows := len(v.Priority)
	scratch.Columns(&o.Need, dims)
	for d := range o.Need {
		o.Need[d] = scratch.Zeroed(o.Need[d], len(t.least.Levels))
	}
	scratch.Columns(&v.Use, dims)
	scratch.Columns(&v.Devices, 0)
	if read.Has(sdk.UseColumns) {
		for d := range v.Use {
			v.Use[d] = t.least.AppendUse(scratch.Sized(v.Use[d], rows)[:0], d, dims)
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
