package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
)

// proposeMoves returns a plan of two steps, each of which moves one instance. Workers are
// stopped.
func (w *harness) proposeMoves() *endpoint.Rebalancing {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		_, err := s.SetConfig(w.ctx, &model.SchedulerConfig{Algorithm: model.SpreadRank}, nil)
		return err
	})
	w.addNodes(4)
	w.registerJob(coretest.Job("small").Count(4).Ask(200, 200, 0))
	w.waitIdle()
	for _, id := range []string{"large-a", "large-b"} {
		w.registerJob(coretest.Job(id).Ask(900, 900, 0))
	}
	w.waitIdle()
	s := w.leader().server
	s.pool.Resize(0)
	synctest.Wait()
	r, err := s.PlanRebalance(w.ctx, &model.Rate{Number: 4, Window: time.Hour})
	if err != nil || len(r.Steps) != 2 {
		w.t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// A step that fails is reported together with the steps that are committed. Without any, the
// error says whether something may have been written.
func TestRunRebalance_ReportsWhatWasCommitted(t *testing.T) {
	plans := func(c replication.Command) bool { _, ok := c.(*replication.ApplyPlans); return ok }
	evals := func(c replication.Command) bool { _, ok := c.(*replication.WriteEvals); return ok }
	for name, tc := range map[string]struct {
		fails func(c replication.Command) bool
		nth   int // entry of the kind that fails
		hangs bool
		want  string // placed, moved and the reasons of each step
		code  apierror.Code
	}{
		"the second step fails":           {plans, 2, false, "1 1; 0 0 log is overloaded: nothing was written; ", ""},
		"the second step is not answered": {plans, 2, true, "1 1; 0 0 the outcome of the write is unknown: the entry was submitted and not confirmed: plan may still be applied: context deadline exceeded; ", ""},
		"a job is not evaluated again":    {evals, 1, false, "1 1 the job is not evaluated again: log is overloaded: nothing was written; 0 0 not tried, because a step before it failed; ", ""},
		"the first step fails":            {plans, 1, false, "", apierror.CodeUnavailable},
		"the first step is not answered":  {plans, 1, true, "", apierror.CodeUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				r := w.proposeMoves()
				m := w.leader()
				n := 0
				m.faults.failWith(func(e *replication.Entry) (bool, error) {
					if !tc.fails(e.Command) {
						return false, nil
					}
					switch n++; {
					case n != tc.nth:
						return false, nil
					case tc.hangs:
						time.Sleep(time.Minute)
						return false, nil
					}
					return false, replication.ErrBusy
				})
				ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
				defer cancel()
				list, index, err := m.server.RunRebalance(ctx, r.Token)
				var got strings.Builder
				for _, o := range list {
					text := fmt.Sprintln(o.Placed, o.Moved, strings.Join(o.Rejected, ", "))
					got.WriteString(strings.TrimSpace(text) + "; ")
				}
				code := apierror.Code("")
				if err != nil {
					code = apierror.CodeOf(err)
				}
				if got.String() != tc.want || code != tc.code || (index == 0) != (err != nil) {
					t.Errorf("got %q at %d, %v, want %q and code %q", got.String(), index, err, tc.want, tc.code)
				}
				time.Sleep(2 * time.Minute) // an entry that hangs is written
				m.faults.failWith(nil)
				w.leader().server.pool.Resize(2)
			})
		})
	}
}

// A plan is up to 15 minutes old when it is run. What has changed since it was made is found,
// and a step that no longer holds moves nothing.
func TestRunRebalance_FindsWhatChangedMeanwhile(t *testing.T) {
	large, small := model.JobKey{Namespace: "default", ID: "large-a"}, model.JobKey{Namespace: "default", ID: "small"}
	job := func(key model.JobKey) *coretest.JobBuilder {
		if key == small {
			return coretest.Job("small").Count(4).Ask(200, 200, 0)
		}
		return coretest.Job(key.ID).Ask(900, 900, 0)
	}
	purge := func(w *harness, key model.JobKey) {
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, key, endpoint.StopOptions{Purge: true})
			return err
		})
	}
	type change = func(w *harness, r *endpoint.Rebalancing)
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"a node does not accept work": {func(w *harness, r *endpoint.Rebalancing) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetEligible(w.ctx, r.Steps[0].Move[0].NodeID, false)
				return err
			})
		}, "the node is"},
		"the node of the moved instance is tainted": {func(w *harness, r *endpoint.Rebalancing) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetTaints(w.ctx, r.Steps[0].Move[0].NodeID, nil, []model.Taint{{Key: "repair", Effect: model.NoSchedule}})
				return err
			})
		}, "has become infeasible: taint repair:NoSchedule"},
		"the node of the placed instance is tainted": {func(w *harness, r *endpoint.Rebalancing) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetTaints(w.ctx, r.Steps[0].Place[0].NodeID, nil, []model.Taint{{Key: "repair", Effect: model.NoSchedule}})
				return err
			})
		}, "has become infeasible: taint repair:NoSchedule"},
		"a budget": {func(w *harness, _ *endpoint.Rebalancing) {
			w.mustCall(func(s *Server) error {
				_, err := s.PutBudget(w.ctx, &model.Budget{Namespace: "default", Name: "none", MaxEvictions: &model.Rate{Number: 0, Window: time.Hour}})
				return err
			})
		}, "budget"},
		"the moved job is purged":                {func(w *harness, _ *endpoint.Rebalancing) { purge(w, small) }, "its job has changed"},
		"the moved job is another one":           {func(w *harness, _ *endpoint.Rebalancing) { purge(w, small); w.registerJob(job(small)) }, "has changed"},
		"the moved job is another one and other": {func(w *harness, _ *endpoint.Rebalancing) { purge(w, small); w.registerJob(job(small).Ask(100, 100, 0)) }, "has changed"},
		"the moved job has changed":              {func(w *harness, _ *endpoint.Rebalancing) { w.registerJob(job(small).Ask(100, 100, 0)) }, "has changed"},
		"the moved job is larger":                {func(w *harness, _ *endpoint.Rebalancing) { w.registerJob(job(small).Count(5)) }, "has changed"},
		"the waiting job is purged":              {func(w *harness, _ *endpoint.Rebalancing) { purge(w, large) }, "the job is gone"},
		"the waiting job is another one":         {func(w *harness, _ *endpoint.Rebalancing) { purge(w, large); w.registerJob(job(large)) }, "has changed"},
		"the waiting job is another one and other": {func(w *harness, _ *endpoint.Rebalancing) {
			purge(w, large)
			w.registerJob(job(large).Ask(100, 100, 0))
		}, "has changed"},
		"the waiting job has another group": {func(w *harness, _ *endpoint.Rebalancing) {
			purge(w, large)
			w.registerJob(coretest.Job(large.ID).Change(func(j *model.Job) { j.Groups[0].Name = "other" }).Ask(900, 900, 0))
		}, "has changed"},
		"the waiting job has changed":    {func(w *harness, _ *endpoint.Rebalancing) { w.registerJob(job(large).Ask(950, 950, 0)) }, "has changed"},
		"the waiting job wants none":     {func(w *harness, _ *endpoint.Rebalancing) { w.registerJob(job(large).Count(0)) }, "has changed"},
		"the waiting job has priority 1": {func(w *harness, _ *endpoint.Rebalancing) { w.registerJob(job(large).Priority(1)) }, "has changed"},
		"the waiting job never preempts": {func(w *harness, _ *endpoint.Rebalancing) {
			w.registerJob(job(large).Change(func(j *model.Job) { j.NeverPreempts = true }))
		}, "has changed"},
		"the token is old": {func(*harness, *endpoint.Rebalancing) { time.Sleep(16 * time.Minute) }, "valid for"},
	} {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				r := w.proposeMoves()
				tc.change(w, r)
				s := w.leader().server
				list, _, err := s.RunRebalance(w.ctx, r.Token)
				got := fmt.Sprint(err)
				for _, o := range list {
					got += fmt.Sprintln(strings.Join(o.Rejected, ", "))
					if (len(o.Rejected) > 0) != (o.Placed+o.Moved == 0) {
						t.Errorf("half of a step is done: %+v", o)
					}
				}
				if code := apierror.CodeOf(err); err != nil && code != apierror.CodeConflict || !strings.Contains(got, tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				s.pool.Resize(2)
				w.waitIdle()
			})
		})
	}
}

// An instance on a draining node stays where it is once the drain has ended, so that a plan
// that makes room for it interrupts nothing.
func TestRunRebalance_MakesNoRoomOnceADrainHasEnded(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.mustCall(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, &model.SchedulerConfig{Algorithm: model.SpreadRank}, nil)
			return err
		})
		w.addNodes(3)
		w.registerJob(coretest.Job("large").Ask(900, 900, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("small").Count(2).Ask(200, 200, 0))
		w.waitIdle()
		var from string
		for id := range w.liveByNode("large") {
			from = id
		}
		w.mustCall(func(s *Server) error {
			_, err := s.Drain(w.ctx, from, endpoint.DrainOptions{})
			return err
		})
		w.waitIdle()
		s := w.leader().server
		s.pool.Resize(0)
		synctest.Wait()
		r, err := s.PlanRebalance(w.ctx, &model.Rate{Number: 1, Window: time.Hour})
		if err != nil || len(r.Steps) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		w.mustCall(func(s *Server) error {
			_, err := s.CancelDrain(w.ctx, from)
			return err
		})
		list, _, err := s.RunRebalance(w.ctx, r.Token)
		if apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(fmt.Sprint(err), "has changed, from which") {
			t.Errorf("%+v, %v", list, err)
		}
		s.pool.Resize(2)
		w.waitIdle()
		if nodes := w.liveByNode("large"); len(nodes) != 1 || nodes[from] != 1 {
			t.Errorf("the instance is on %v, want %s", nodes, from)
		}
		if nodes := w.liveByNode("small"); len(nodes) != 2 {
			t.Errorf("the others are on %v, want two nodes", nodes)
		}
	})
}

// Of concurrent runs of one token, each step is done once.
func TestRunRebalance_ConcurrentRunsDoEachStepOnce(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		r := w.proposeMoves()
		s := w.leader().server
		var done sync.WaitGroup
		var placed, moved atomic.Int64
		for range 4 {
			done.Go(func() {
				list, _, err := s.RunRebalance(w.ctx, r.Token)
				if err != nil && apierror.CodeOf(err) != apierror.CodeConflict {
					t.Error(err)
				}
				for _, o := range list {
					placed.Add(int64(o.Placed))
					moved.Add(int64(o.Moved))
				}
			})
		}
		done.Wait()
		if placed.Load() != 2 || moved.Load() != 2 {
			t.Errorf("%d placed and %d moved, want 2 and 2", placed.Load(), moved.Load())
		}
		s.pool.Resize(2)
		w.waitIdle()
		w.expectLiveCount("small", 4)
		w.expectLiveCount("large-a", 1)
		w.expectLiveCount("large-b", 1)
	})
}
