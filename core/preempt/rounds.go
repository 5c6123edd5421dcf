package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/prune"
)

// A policy that declares which option it takes (Info.LeastFirst) need not be called about
// most nodes of a large cluster: a lower bound of their cost follows from
// priorities, amounts and budgets, in a fraction of the time, and other nodes cost less.
// So nodes are evaluated in rounds, those with the least bound first, until an option is
// known that none of the others can beat. The rest waits: once that option is taken, the
// next best may be among them.
//
// Which nodes are evaluated depends on neither workers nor timing.

// rounds are the nodes of such a search that have not been evaluated.
type rounds struct {
	bounds  []prune.Bound    // by distinct node; waiting shares its memory
	waiting prune.BoundQueue // not evaluated yet
	size    int              // nodes in the next round while no option is known
}

// firstRound is the size of the first round. Each round that finds no option is followed
// by one four times as large.
const firstRound = 64

// usesRounds reports whether the policy allows rounds, and whether they pay.
func (f *Finder) usesRounds() bool {
	return f.search.traits.usesBounds() && len(f.plan.distinct) == len(f.plan.leader) && len(f.plan.distinct) >= blockNodes
}

// searchInRounds evaluates the nodes without a bound, then the others in rounds.
func (f *Finder) searchInRounds() {
	r, p := &f.rounds, &f.plan
	r.bounds = scratch.Sized(r.bounds, len(p.distinct))
	f.eachWorker(work{slots: p.distinct, bounds: r.bounds}, (*worker).boundBlocks)
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

// continueRounds evaluates further nodes until no other one can have a better option than
// those that are known, or all of them. Usually the first round finds a good option, and
// the second one evaluates everything that could be better.
func (f *Finder) continueRounds(all bool) {
	r := &f.rounds
	for len(r.waiting) > 0 && f.err == nil {
		next := f.plan.evaluating[:0]
		if best, known := f.search.leastCost(); all || !known {
			next = r.take(next, all, f.search.traits.predictable)
		} else {
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
	return !known.Cost.Less(&b.Cost)
}

// leastCost returns the best of the known options, the first of equals.
func (r *results) leastCost() (best prune.Bound, known bool) {
	for i := range r.options {
		if o := &r.options[i]; o.feasible {
			// Rounds are used for requests for amounts alone: one option a node, so that
			// positions of options are slots.
			if b := (prune.Bound{Slot: int32(i), Exact: true, Cost: o.cost()}); !known || b.Cost.Less(&best.Cost) {
				best, known = b, true
			}
		}
	}
	return best, known
}
