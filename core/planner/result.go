package planner

import (
	"context"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// commit writes a batch and answers all plans of it. It returns after the batch is
// visible in the store, so that a submitter that plans again reads its own plan.
func (a *Applier) commit(ctx context.Context, r *batchBuilder, batch *apply.Batch) (CommitResult, error) {
	outcome, err := a.cfg.Committer.Commit(ctx, batch)
	if err == nil {
		// A Committer returns after the entry is visible. The wait ends at once, unless
		// a committer breaks that contract.
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
	a.respond(r, outcome, err)
	return outcome, err
}

// respond answers all plans of a batch. DroppedGroup.Plan is a position among the plans
// that were written. seal leaves out plans without effect, so they are counted here in
// the same way.
func (a *Applier) respond(r *batchBuilder, outcome CommitResult, err error) {
	at := max(outcome.Index, a.cfg.Store.Snapshot().Index())
	written := 0
	for i := range r.items {
		w := &r.items[i]
		if err != nil { // a rejection may depend on a plan that was not written
			a.queue.respond(w.pending, nil, &CommitError{err})
			continue
		}
		index := at // nothing was written: the state is visible already
		var dropped []int
		if !w.verification.Empty() {
			index = outcome.Index
			for _, d := range outcome.Dropped {
				if d.Plan == written {
					dropped = append(dropped, d.Group)
				}
			}
			written++
		}
		a.queue.respond(w.pending, a.result(&w.verification, index, at, dropped), nil)
	}
}

// result returns the result for the submitter of a plan. refresh is the index to plan
// against next: it includes the changes that made groups fail. A result without
// rejections has no RefreshIndex, and one without commits no Index.
func (a *Applier) result(v *Verification, index, refresh uint64, dropped []int) *model.PlanResult {
	result := &model.PlanResult{Committed: v.Committed, Rejected: v.Rejected}
	if len(dropped) > 0 {
		result.Committed = slices.DeleteFunc(slices.Clone(v.Committed), func(i int) bool { return slices.Contains(dropped, i) })
		// A partial group is dropped as a whole.
		result.Rejected = slices.DeleteFunc(slices.Clone(v.Rejected), func(r model.Rejection) bool { return slices.Contains(dropped, r.Group) })
		for _, i := range dropped {
			result.Rejected = append(result.Rejected, model.Rejection{
				Group: i, Reason: "a node became ineligible before the commit, or the job was run by a confirmed plan meanwhile",
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
