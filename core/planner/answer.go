package planner

import (
	"context"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// commit writes a batch and answers everybody in its round.
func (a *Applier) commit(ctx context.Context, r *round, batch *apply.Batch) (CommitResult, error) {
	outcome, err := a.cfg.Committer.Commit(ctx, batch)
	if err == nil {
		_, err = a.cfg.Store.WaitIndex(ctx, outcome.Index)
	}
	a.stats.add(func(s *Stats) {
		if err != nil {
			s.Failures++
			return
		}
		s.Batches++
		s.BatchPlans += uint64(len(batch.Plans))
		s.LargestBatch = max(s.LargestBatch, len(batch.Plans))
		s.Marked += uint64(len(batch.Ineligible))
	})
	a.settle(r, outcome, err)
	return outcome, err
}

// settle answers everybody in a round.
func (a *Applier) settle(r *round, outcome CommitResult, err error) {
	at := max(outcome.Index, a.cfg.Store.Snapshot().Index())
	written := 0
	for i := range r.works {
		w := &r.works[i]
		if err != nil { // what was rejected may have met a plan that is not written now
			a.queue.answer(w.pending, nil, &CommitError{err})
			continue
		}
		index := at // nothing to write: it is visible already
		var dropped []int
		if !w.verdict.Empty() {
			index = outcome.Index
			for _, d := range outcome.Dropped {
				if d.Plan == written {
					dropped = append(dropped, d.Group)
				}
			}
			written++
		}
		a.queue.answer(w.pending, a.result(&w.verdict, index, at, dropped), nil)
	}
}

// result turns a verdict into what the submitter gets.
func (a *Applier) result(v *Verification, index, refresh uint64, dropped []int) *model.PlanResult {
	result := &model.PlanResult{Committed: v.Committed, Rejected: v.Rejected}
	if len(dropped) > 0 {
		result.Committed = slices.DeleteFunc(slices.Clone(v.Committed), func(i int) bool { return slices.Contains(dropped, i) })
		// Of a group of which a part was to be committed, nothing is.
		result.Rejected = slices.DeleteFunc(slices.Clone(v.Rejected), func(r model.Rejection) bool { return slices.Contains(dropped, r.Group) })
		for _, i := range dropped {
			result.Rejected = append(result.Rejected, model.Rejection{
				Group: i, Reason: "a node went away before the commit, or somebody ran the job by a plan meanwhile",
			})
		}
		slices.SortFunc(result.Rejected, func(x, y model.Rejection) int { return x.Group - y.Group })
	}
	if len(result.Committed) > 0 {
		result.Index = index
	}
	if len(result.Rejected) > 0 {
		result.RefreshIndex = refresh
	}
	a.stats.add(func(s *Stats) {
		s.Plans++
		s.Groups += uint64(len(result.Committed))
		s.Rejected[CauseDropped] += uint64(len(dropped))
		for _, c := range v.Causes {
			s.Rejected[c]++
		}
	})
	return result
}
