package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Leadership changes, a server is lost and restarts from its log, jobs are registered and
// stopped, and nodes fail and return. Nothing is placed twice, no acknowledged write is
// lost, and every evaluation terminates.
func TestServer_LosesLeadershipUnderLoad(t *testing.T) {
	seeds := uint64(soak.Count(3, 100))
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runServers(t, 3, nil, func(w *harness) { w.injectFailures(rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func (w *harness) injectFailures(r *rand.Rand) {
	w.enablePreemption()
	w.addNodes(8)
	wanted := map[string]int{}
	for i := range 60 {
		switch r.IntN(12) {
		case 0:
			_ = w.leader().node.Transfer(w.ctx)
		case 1:
			m := w.leader()
			m.halt()
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			m.start()
		case 2:
			m := w.machines[fmt.Sprintf("n%03d", r.IntN(8))]
			m.stop()
			time.Sleep(time.Duration(r.IntN(60)) * time.Second)
			m.start()
		case 3:
			id := fmt.Sprintf("j%d", r.IntN(i+1))
			if _, ok := wanted[id]; ok {
				w.mustCall(func(s *Server) error {
					_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: id}, endpoint.StopOptions{})
					return err
				})
				wanted[id] = 0
			}
		default:
			id, n := fmt.Sprintf("j%d", i), 1+r.IntN(3)
			w.registerJob(coretest.Job(id).Priority(int32(10+r.IntN(90))).Count(n).Ask(int64(100+r.IntN(300)), 100, 0))
			wanted[id] = n
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		}
	}
	time.Sleep(time.Minute)
	w.waitIdle()
	for id, n := range wanted {
		job := w.snap().Job(model.JobKey{Namespace: "default", ID: id})
		if job == nil {
			w.t.Errorf("acknowledged job %s is missing", id)
			continue
		}
		live := 0
		for _, c := range w.liveByNode(id) {
			live += c
		}
		if waits := w.hasBlockedEval(job.Key()); live != n && !waits {
			w.t.Errorf("job %s has %d of %d instances, and is not blocked", id, live, n)
		}
	}
}

// hasBlockedEval reports whether an evaluation of the job is blocked.
func (w *harness) hasBlockedEval(key model.JobKey) bool {
	return slices.ContainsFunc(w.snap().EvalsOfJob(key), func(e *model.Evaluation) bool {
		return e.Status == model.EvalBlocked || e.Status == model.EvalPending && e.WaitUntil > 0
	})
}

func TestServer_RestoresStateFromLog(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		w.registerJob(coretest.Job("web").Priority(30).Count(3).Ask(600, 600, 0)) // two of three fit
		w.waitIdle()
		m := w.leader()
		before, index := snapshot.Hash(w.snap()), w.snap().Index()
		blocked := m.server.blocked.Stats().Total
		m.halt()
		m.start()
		w.leader()
		if snap := w.snap(); snap.Index() == index && snapshot.Hash(snap) != before {
			t.Error("the state restored from the log differs")
		}
		w.waitIdle()
		if now := w.leader().server.blocked.Stats().Total; now != blocked || blocked != 1 {
			t.Errorf("%d blocked evaluations, want %d", now, blocked)
		}
		w.newNode("n900").waitRegistered()
		w.waitIdle()
		w.expectLiveCount("web", 3)
	})
}

// brokerStates returns the state of every evaluation in the broker.
func brokerStates(s *Server) map[string]broker.State {
	all := map[string]broker.State{}
	for e := range s.Snapshot().Evals() {
		if !e.Status.Final() {
			all[e.ID] = s.broker.Locate(e.ID).State
		}
	}
	return all
}

// The broker that a server builds from the state when its term starts equals the broker of
// a server that led all the time.
func TestBroker_RestoredEqualsOneThatKeptLeadership(t *testing.T) {
	runServers(t, 1, func(c *Config) { c.Workers = -1 }, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		m := w.leader()
		s := m.server
		if err := s.Reload(Reloadable{Workers: new(1)}); err != nil {
			t.Fatal(err)
		}
		w.registerJob(coretest.Job("fills").Priority(50).Count(2).Ask(900, 900, 0))
		for i := range 6 {
			w.registerJob(coretest.Job(fmt.Sprintf("waits%d", i)).Priority(int32(10+i)).Ask(500, 500, 0))
		}
		w.waitIdle()
		s.pool.Resize(0)
		synctest.Wait()
		for i := range 5 {
			w.registerJob(coretest.Job(fmt.Sprintf("queued%d", i)).Ask(100, 100, 0))
		}
		w.registerJob(coretest.Job("queued0").Ask(100, 100, 0).Count(2)) // a second evaluation of the job
		later := s.evalFactory().ForJob(coretest.Job("queued1").Obj(), model.TriggerRecheck)
		later.WaitUntil = s.writer.Now() + int64(time.Hour)
		if _, err := s.updates.Write(w.ctx, later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		before := brokerStates(s)
		s.pump.Stop()
		s.pump.Start(func([]*model.Evaluation) {})
		after := brokerStates(s)
		counts := map[broker.State]int{}
		for id, state := range before {
			counts[state]++
			turn := func(s broker.State) bool { return s == broker.StatePending || s == broker.StateReady }
			if after[id] != state && (!turn(state) || !turn(after[id])) { // either evaluation of a job may be the one that is ready
				t.Errorf("%s of %s was %v and is %v", id, s.Snapshot().Eval(id).JobID, state, after[id])
			}
		}
		if counts[broker.StateBlocked] != 6 || counts[broker.StateReady] != 5 || counts[broker.StatePending] != 1 || counts[broker.StateDelayed] != 1 {
			t.Errorf("broker counts before the change were %v", counts)
		}
		s.pool.Resize(2)
		time.Sleep(2 * time.Hour)
	})
}

// Changes that the old leader applied, but did not process, must not be lost.
func TestBroker_RestoreUnblocksEvalsThatMissedCapacity(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(1)
		w.registerJob(coretest.Job("first").Ask(900, 900, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("second").Ask(900, 900, 0))
		w.waitIdle()
		s := w.leader().server
		s.pool.Resize(0)
		synctest.Wait()
		s.pump.Stop() // the leader fails before the pump processes the free capacity
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "first"}, endpoint.StopOptions{Purge: false})
			return err
		})
		var ids []string
		for a := range s.Snapshot().Allocs() {
			ids = append(ids, a.ID)
		}
		if _, err := s.writer.Commit(w.ctx, &replication.StopAllocs{IDs: ids, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		s.pump.Start(func([]*model.Evaluation) {})
		s.pool.Resize(1)
		w.waitIdle()
		w.expectLiveCount("second", 1)
	})
}

// If the outcome of an entry with plans is unknown, the term ends. The next term finds the
// outcome, and nothing is placed twice.
func TestPlanCommitter_EndsTermOnUnknownOutcome(t *testing.T) {
	for _, servers := range []int{1, 3} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d servers, written %t", servers, after), func(t *testing.T) {
				runServers(t, servers, nil, func(w *harness) {
					w.addNodes(3)
					first := w.leader()
					began := first.server.term.Load()
					var failed atomic.Bool
					first.faults.failWith(func(e *replication.Entry) (bool, error) {
						if _, plans := e.Command.(*replication.ApplyPlans); !plans || !failed.CompareAndSwap(false, true) {
							return false, nil
						}
						return after, fmt.Errorf("%w: disk hangs", replication.ErrUnknownOutcome)
					})
					for i := range 5 {
						w.registerJob(coretest.Job(fmt.Sprintf("j%d", i)).Count(2).Ask(100, 100, 0))
					}
					w.waitIdle()
					if first.server.term.Load() == began {
						t.Error("the term did not end")
					}
					for i := range 5 {
						w.expectLiveCount(fmt.Sprintf("j%d", i), 2)
					}
				})
			})
		}
	}
}

func TestLeaderLoop_MergedSignalsAndFailedTerms(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(1)
		m := w.leader()
		first := m.server.term.Load()
		var failed atomic.Bool
		m.faults.failWith(func(*replication.Entry) (bool, error) {
			if failed.CompareAndSwap(false, true) {
				return false, replication.ErrNotLeader
			}
			return false, nil
		})
		w.registerJob(coretest.Job("a").Ask(100, 100, 0)) // the plan or the registration fails once
		first.fail(context.DeadlineExceeded)
		w.waitIdle()
		if now := m.server.term.Load(); now == first || now == nil {
			t.Error("no new term after a failed one")
		}
		w.expectLiveCount("a", 1)
	})
}

func TestReaper_CreatesFollowUpOfFailedEval(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(1)
		s := w.leader().server
		var broken atomic.Bool
		broken.Store(true)
		w.leader().faults.failWith(func(e *replication.Entry) (bool, error) {
			if _, plans := e.Command.(*replication.ApplyPlans); plans && broken.Load() {
				return false, replication.ErrBusy
			}
			return false, nil
		})
		r := w.registerJob(coretest.Job("web").Ask(100, 100, 0))
		time.Sleep(50 * time.Second) // three deliveries, with delays of 1 s and 20 s
		e := s.Snapshot().Eval(r.EvalID)
		if e.Status != model.EvalFailed {
			t.Fatalf("after three deliveries the evaluation is %s", e.Status)
		}
		broken.Store(false)
		var follow *model.Evaluation
		for _, o := range s.Snapshot().EvalsOfJob(e.JobKey()) {
			if o.Previous == e.ID && o.TriggeredBy == model.TriggerFailed {
				follow = o
			}
		}
		if follow == nil {
			t.Fatal("no follow-up evaluation")
		}
		if wait := time.Duration(follow.WaitUntil - follow.CreateTime); wait < time.Minute || wait > 6*time.Minute {
			t.Errorf("follow-up is delayed by %v, want 1 to 6 minutes", wait)
		}
		time.Sleep(7 * time.Minute)
		w.waitIdle()
		w.expectLiveCount("web", 1)
	})
}

func TestPump_CancelsNeedlessEvaluations(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerJob(coretest.Job("web").Ask(100, 100, 0))
		w.waitIdle()
		key := model.JobKey{Namespace: "default", ID: "web"}
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, key, endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		time.Sleep(time.Second)
		for _, e := range w.snap().EvalsOfJob(key) {
			if !e.Status.Final() {
				t.Errorf("%s (%s) is %s though the job is stopped", e.ID, e.TriggeredBy, e.Status)
			}
		}
	})
}

// A stop whose response was lost is retried after the binding was started again and is
// blocked: the retry must not cancel the new evaluation.
func TestPump_RetriedStopCancelsNoBlockedEval(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.putCluster("m", 4)
		w.registerBinding("first", 50, 4, nil)
		w.waitIdle()
		w.registerBinding("second", 10, 4, nil)
		w.waitIdle()
		stop := func(binding, key string) {
			w.mustCall(func(s *Server) error {
				_, err := s.StopBinding(w.ctx, bindingKey(binding), endpoint.StopOptions{Key: key})
				return err
			})
			w.waitIdle()
			time.Sleep(time.Second) // needless evaluations are written
		}
		stop("second", "a key")
		w.registerBinding("second", 10, 4, nil)
		w.waitIdle()
		stop("second", "a key")
		if n := w.leader().server.blocked.Stats().Total; n != 1 || !w.hasBlockedEval(bindingKey("second")) {
			t.Errorf("%d blocked evaluations, want 1", n)
		}
		stop("first", "another key")
		w.expectAssigned("second", "m:1")
	})
}
