package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// propose plans a job on a server.
func (w *harness) propose(s *Server, b *coretest.JobBuilder) *endpoint.Proposal {
	w.t.Helper()
	p, err := s.PlanJob(w.ctx, b.Obj(), endpoint.PlanOptions{ExplicitPriority: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// runToken registers a job with the token of a plan.
func (w *harness) runToken(s *Server, b *coretest.JobBuilder, token, key string) (*endpoint.Registered, error) {
	return s.RegisterJob(w.ctx, b.Obj(), endpoint.RegisterOptions{Token: token, Key: key, ExplicitPriority: true})
}

func highJob() *coretest.JobBuilder {
	return coretest.Job("high").Priority(80).Count(1).Ask(800, 800, 0)
}

// fillNodes adds two nodes that two instances of low fill.
func (w *harness) fillNodes() {
	w.enablePreemption()
	w.addNodes(2)
	w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0))
	w.waitIdle()
}

func TestPlanJob_RunsAsShownOnAnyServer(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		w.fillNodes()
		before := w.snap().Index()
		first := w.leader()
		p := w.propose(first.server, highJob())
		if len(p.Place) != 1 || len(p.Evict) != 1 || p.Evict[0].NodeID != p.Place[0].NodeID || !p.Changes.NewJob || p.Changes.Groups["g"].Place != 1 {
			t.Fatalf("proposed %+v", p)
		}
		if p.Evict[0].Policy == "" || p.Evict[0].By != p.Place[0].ID {
			t.Errorf("unexpected eviction %+v", p.Evict[0])
		}
		if now := w.snap(); now.Index() != before || now.Job(p.Job.Key()) != nil {
			t.Error("planning changed the state")
		}
		if err := first.node.Transfer(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		second := w.leader()
		if second == first {
			t.Fatal("leadership was not transferred")
		}
		r, err := w.runToken(second.server, highJob(), p.Token, "key")
		if err != nil {
			t.Fatal(err)
		}
		placed := w.snap().Alloc(p.Place[0].ID)
		victim := w.snap().Alloc(p.Evict[0].Alloc.ID)
		if placed == nil || placed.NodeID != p.Place[0].NodeID || victim.Desired != model.DesiredEvict || victim.PreemptedBy != placed.ID {
			t.Errorf("placed %+v, evicted %+v", placed, victim)
		}
		if e := w.snap().Eval(r.EvalID); e == nil || e.Status != model.EvalComplete {
			t.Errorf("unexpected evaluation %+v", e)
		}
		again, err := w.runToken(second.server, highJob(), p.Token, "key")
		if err != nil || !again.Replayed || again.EvalID != r.EvalID || again.Index != r.Index {
			t.Errorf("same idempotency key: got %+v, %v, first %+v", again, err, r)
		}
		w.waitIdle()
		w.expectLiveCount("high", 1)
		w.expectLiveCount("low", 1)
	})
}

func TestPlanJob_ReportsConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *harness, p *endpoint.Proposal)
		want   string
	}{
		"job registered meanwhile": {func(w *harness, _ *endpoint.Proposal) { w.registerJob(highJob()) }, "the job changed"},
		"victim ended": {func(w *harness, p *endpoint.Proposal) {
			w.mustCall(func(s *Server) error {
				_, err := s.StopAlloc(w.ctx, p.Evict[0].Alloc.ID)
				return err
			})
		}, "no longer running"},
		"node ineligible": {func(w *harness, p *endpoint.Proposal) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetEligible(w.ctx, p.Place[0].NodeID, false)
				return err
			})
		}, "node " + "n00"},
		"node tainted": {func(w *harness, p *endpoint.Proposal) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetTaints(w.ctx, p.Place[0].NodeID, nil, []model.Taint{{Key: "repair", Effect: model.NoSchedule}})
				return err
			})
		}, "has become infeasible: taint repair:NoSchedule"},
		"token expired": {func(*harness, *endpoint.Proposal) { time.Sleep(16 * time.Minute) }, "valid for 15m"},
	} {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				w.fillNodes()
				p := w.propose(w.leader().server, highJob())
				c.change(w, p)
				index := w.snap().Job(model.JobKey{Namespace: "default", ID: "high"})
				_, err := w.runToken(w.leader().server, highJob(), p.Token, "")
				e, ok := errors.AsType[*apierror.Error](err)
				if !ok || e.Code != apierror.CodeConflict || !strings.Contains(e.Message, c.want) {
					t.Fatalf("error is %v, want conflict %q", err, c.want)
				}
				if differences, ok := e.Details["Difference"].([]string); !ok || len(differences) == 0 {
					t.Errorf("unexpected details %v", e.Details)
				}
				if w.snap().Job(model.JobKey{Namespace: "default", ID: "high"}) != index {
					t.Error("a refused plan changed the job")
				}
			})
		})
	}
}

func TestRegisterJob_RejectsInvalidTokens(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.fillNodes()
		p := w.propose(w.leader().server, highJob())
		flipped := []byte(p.Token)
		flipped[len(flipped)/2] ^= 1
		for name, token := range map[string]string{
			"invalid": "abc", "truncated": p.Token[:40], "modified": string(flipped), "empty": "cede_plan2.",
		} {
			if _, err := w.runToken(w.leader().server, highJob(), token, ""); apierror.CodeOf(err) != apierror.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		other := highJob().Ask(700, 700, 0)
		if _, err := w.runToken(w.leader().server, other, p.Token, ""); apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "another specification") {
			t.Errorf("token of another job: %v", err)
		}
	})
}

func TestPlanJob_BlocksUnplacedInstances(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(1)
		job := func() *coretest.JobBuilder { return coretest.Job("two").Count(2).Ask(800, 800, 0) }
		p := w.propose(w.leader().server, job())
		if len(p.Place) != 1 || p.Queued["g"] != 1 || p.Failed["g"] == nil || p.Changes.Groups["g"].Unplaced != 1 {
			t.Fatalf("proposed %+v", p)
		}
		if _, err := w.runToken(w.leader().server, job(), p.Token, ""); err != nil {
			t.Fatal(err)
		}
		w.waitIdle()
		w.expectLiveCount("two", 1)
		w.newNode("n900").waitRegistered()
		time.Sleep(time.Second)
		w.waitIdle()
		w.expectLiveCount("two", 2)
	})
}

func TestRegisterJob_ChecksAndKeys(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		none := uint64(0)
		first, err := s.RegisterJob(w.ctx, coretest.Job("web").Obj(), endpoint.RegisterOptions{Check: &none, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.RegisterJob(w.ctx, coretest.Job("web").Obj(), endpoint.RegisterOptions{Check: &none, Key: "k"})
		if err != nil || !again.Replayed || again.EvalID != first.EvalID || again.Index != first.Index {
			t.Errorf("same request: got %+v, %v, first %+v", again, err, first)
		}
		if _, err := s.RegisterJob(w.ctx, coretest.Job("web").Count(2).Obj(), endpoint.RegisterOptions{Key: "k"}); apierror.CodeOf(err) != apierror.CodeConflict {
			t.Errorf("another request with the key: %v", err)
		}
		if _, err := s.RegisterJob(w.ctx, coretest.Job("web").Count(2).Obj(), endpoint.RegisterOptions{Check: &none}); apierror.CodeOf(err) != apierror.CodeConflict {
			t.Errorf("check index 0 for an existing job: %v", err)
		}
		index := first.JobModifyIndex
		second, err := s.RegisterJob(w.ctx, coretest.Job("web").Count(2).Obj(), endpoint.RegisterOptions{Check: &index})
		if err != nil || second.JobModifyIndex <= index {
			t.Errorf("matching check index: %+v, %v", second, err)
		}
		if _, err := s.RegisterJob(w.ctx, coretest.Job("x").Change(func(j *model.Job) { j.Policy, j.PriorityClass = "nobody", "gold" }).Obj(), endpoint.RegisterOptions{}); apierror.CodeOf(err) != apierror.CodeInvalid ||
			!strings.Contains(err.Error(), "nobody") || !strings.Contains(err.Error(), "gold") {
			t.Errorf("request with two problems: %v", err)
		}
	})
}

// A repeated request returns the first result, even if the state would now lead to another
// job, or to none: the hash of a request does not depend on the state.
func TestRegisterJob_RepeatedRequestIgnoresChangesOfState(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		must := func(_ uint64, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		classes := func(gold, usual int32) {
			for _, c := range []*model.PriorityClass{{Name: "gold", Value: gold}, {Name: "usual", Value: usual, GlobalDefault: true}} {
				if s.Snapshot().PriorityClass(c.Name) != nil {
					must(s.DeletePriorityClass(w.ctx, c.Name))
				}
				must(s.PutPriorityClass(w.ctx, c))
			}
		}
		classes(900, 30)
		named := func() *model.Job {
			return coretest.Job("named").Priority(0).Change(func(j *model.Job) { j.PriorityClass = "gold" }).Obj()
		}
		unnamed := func() *model.Job { return coretest.Job("unnamed").Priority(0).Obj() }
		binding := &model.Binding{ID: "bound", PriorityClass: "gold", Replicas: 1, Resources: model.Resources{"units": 1}}
		planned, err := s.PlanJob(w.ctx, coretest.Job("planned").Priority(0).Obj(), endpoint.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		requests := map[string]func() (*endpoint.Registered, error){
			"with a class": func() (*endpoint.Registered, error) {
				return s.RegisterJob(w.ctx, named(), endpoint.RegisterOptions{Key: "1"})
			},
			"without a class": func() (*endpoint.Registered, error) {
				return s.RegisterJob(w.ctx, unnamed(), endpoint.RegisterOptions{Key: "2"})
			},
			"with a plan": func() (*endpoint.Registered, error) {
				return s.RegisterJob(w.ctx, coretest.Job("planned").Priority(0).Obj(), endpoint.RegisterOptions{Key: "3", Token: planned.Token})
			},
			"a binding": func() (*endpoint.Registered, error) {
				return s.RegisterBinding(w.ctx, binding, endpoint.RegisterOptions{Key: "4"})
			},
		}
		first := map[string]*endpoint.Registered{}
		for name, request := range requests {
			if first[name], err = request(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		expect := func(change string) {
			for name, request := range requests {
				r, err := request()
				if want := first[name]; err != nil || !r.Replayed || r.Index != want.Index || r.JobModifyIndex != want.JobModifyIndex || r.EvalID != want.EvalID {
					t.Errorf("%s, repeated after %s: %+v, %v; first %+v", name, change, r, err, want)
				}
			}
		}
		classes(700, 20)
		expect("other values of the classes")
		must(s.DeletePriorityClass(w.ctx, "gold"))
		must(s.DeletePriorityClass(w.ctx, "usual"))
		expect("the deletion of the classes")
		for _, id := range []string{"named", "unnamed", "planned"} {
			if _, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: id}, endpoint.StopOptions{Purge: true}); err != nil {
				t.Fatal(err)
			}
		}
		expect("the deletion of the jobs")
		for name, other := range map[string]func() (*endpoint.Registered, error){
			"with another class": func() (*endpoint.Registered, error) {
				return s.RegisterJob(w.ctx, named(), endpoint.RegisterOptions{Key: "2"})
			},
			"with an explicit priority of 0": func() (*endpoint.Registered, error) {
				return s.RegisterJob(w.ctx, unnamed(), endpoint.RegisterOptions{Key: "2", ExplicitPriority: true})
			},
			"with preemption": func() (*endpoint.Registered, error) {
				return s.RegisterBinding(w.ctx, binding, endpoint.RegisterOptions{Key: "4", ExplicitPreemption: true})
			},
		} {
			if r, err := other(); err == nil || apierror.CodeOf(err) != apierror.CodeConflict {
				t.Errorf("another request, %s: %+v, %v; want a conflict", name, r, err)
			}
		}
	})
}

// A key may be used again once its record is older than the window, also if no other entry has
// removed the record: the request is then a new one.
func TestRegisterJob_KeyExpires(t *testing.T) {
	c := &coretest.Clock{}
	runServers(t, 1, func(cfg *Config) { cfg.Clock = c }, func(w *harness) {
		s := w.leader().server
		register := func() *endpoint.Registered {
			t.Helper()
			r, err := s.RegisterJob(w.ctx, coretest.Job("nightly").Obj(), endpoint.RegisterOptions{Key: "nightly"})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := register()
		c.Set(23 * time.Hour)
		if r := register(); !r.Replayed || r.Index != first.Index {
			t.Errorf("within the window: %+v, want the result of index %d", r, first.Index)
		}
		c.Set(25 * time.Hour)
		second := register()
		if second.Replayed || second.Index <= first.Index {
			t.Errorf("after the window: %+v, want a new entry after index %d", second, first.Index)
		}
		if r := register(); !r.Replayed || r.Index != second.Index {
			t.Errorf("repeated: %+v, want the result of index %d", r, second.Index)
		}
	})
}

func TestPriorityClasses_FollowKubernetesRules(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		put := func(c model.PriorityClass) error {
			_, err := s.PutPriorityClass(w.ctx, &c)
			return err
		}
		for _, c := range []struct {
			class model.PriorityClass
			want  apierror.Code
		}{
			{model.PriorityClass{Name: "gold", Value: 900, NeverPreempts: true}, ""},
			{model.PriorityClass{Name: "gold", Value: 900, NeverPreempts: true, Description: "costly"}, ""},
			{model.PriorityClass{Name: "gold", Value: 901, NeverPreempts: true}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "gold", Value: 900}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "system-mine", Value: 1}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "system-node-critical", Value: 2_000_000_000}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "system-node-critical", Value: 2_000_001_000, GlobalDefault: true}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "system-node-critical", Value: 2_000_001_000}, ""},
			{model.PriorityClass{Name: "high", Value: 1_000_000_001}, apierror.CodeInvalid},
			{model.PriorityClass{Name: "highest", Value: 1_000_000_000}, ""},
			{model.PriorityClass{Name: "usual", Value: 30, GlobalDefault: true}, ""},
			{model.PriorityClass{Name: "other", Value: 40, GlobalDefault: true}, apierror.CodeInvalid},
		} {
			if err := put(c.class); err == nil && c.want != "" || err != nil && apierror.CodeOf(err) != c.want {
				t.Errorf("%+v: %v, want %q", c.class, err, c.want)
			}
		}
		for _, c := range []struct {
			job  *coretest.JobBuilder
			set  bool
			want int32
		}{
			{coretest.Job("a").Priority(0), false, 30},
			{coretest.Job("b").Priority(0), true, 0},
			{coretest.Job("c").Priority(0).Change(func(j *model.Job) { j.PriorityClass = "gold" }), false, 900},
			{coretest.Job("d").Priority(70), false, 70},
			{coretest.Job("s").Priority(0).Change(func(j *model.Job) { j.PriorityClass = "system-cluster-critical" }), false, 2_000_000_000},
		} {
			job := c.job.Obj()
			if _, err := s.RegisterJob(w.ctx, job, endpoint.RegisterOptions{ExplicitPriority: c.set}); err != nil {
				t.Fatal(err)
			}
			stored := s.Snapshot().Job(job.Key())
			if stored.Priority != c.want || stored.NeverPreempts != (stored.PriorityClass == "gold") {
				t.Errorf("job %s has priority %d, want %d (%+v)", job.ID, stored.Priority, c.want, stored)
			}
		}
		both := coretest.Job("e").Priority(5).Change(func(j *model.Job) { j.PriorityClass = "gold" }).Obj()
		if _, err := s.RegisterJob(w.ctx, both, endpoint.RegisterOptions{}); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("class with a different priority: %v", err)
		}
		if _, err := s.DeletePriorityClass(w.ctx, "gold"); err != nil {
			t.Error(err)
		}
		if _, err := s.DeletePriorityClass(w.ctx, "gold"); apierror.CodeOf(err) != apierror.CodeNotFound {
			t.Errorf("second deletion: %v", err)
		}
	})
}

func TestNodes_RequireSecret(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		node, secret := coretest.Node("n1", 1000, 1000, 0), strings.Repeat("s", 32)
		if _, err := s.RegisterNode(w.ctx, node, "short"); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("short secret: %v", err)
		}
		if _, err := s.RegisterNode(w.ctx, node, secret); err != nil {
			t.Fatal(err)
		}
		other := strings.Repeat("x", 32)
		_, registered := s.RegisterNode(w.ctx, node, other)
		_, beat := s.Heartbeat(w.ctx, "n1", other)
		_, updated := s.UpdateAllocs(w.ctx, "n1", other, nil)
		for _, err := range []error{registered, beat, updated} {
			if apierror.CodeOf(err) != apierror.CodeForbidden {
				t.Errorf("wrong secret: %v", err)
			}
		}
		if _, err := s.Heartbeat(w.ctx, "n2", secret); apierror.CodeOf(err) != apierror.CodeNotFound {
			t.Errorf("unknown node: %v", err)
		}
		w.addNodes(1)
		w.registerJob(coretest.Job("web").Ask(100, 100, 0))
		w.waitIdle()
		for a := range w.snap().Allocs() {
			foreign := []apply.ClientUpdate{{AllocID: a.ID, Status: model.ClientFailed}}
			elsewhere := "n1"
			if a.NodeID == "n1" {
				continue
			}
			if _, err := s.UpdateAllocs(w.ctx, elsewhere, secret, foreign); apierror.CodeOf(err) != apierror.CodeForbidden {
				t.Errorf("report for an allocation of another node: %v", err)
			}
		}
	})
}

// Instances that a plan leaves unplaced may use free capacity later, but must not evict
// anything that the plan did not show.
func TestPlanJob_EvictsOnlyShownVictims(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		w.registerJob(coretest.Job("peer").Priority(80).Count(1).Ask(800, 800, 0))
		w.registerJob(coretest.Job("low").Priority(20).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		job := func() *coretest.JobBuilder { return coretest.Job("high").Priority(80).Count(2).Ask(800, 800, 0) }
		p := w.propose(w.leader().server, job())
		if len(p.Place) != 1 || len(p.Evict) != 1 || p.Queued["g"] != 1 {
			t.Fatalf("proposed %+v", p)
		}
		// An allocation appears that the plan did not show, and that the remaining instance
		// could evict.
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "peer"}, endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		w.registerJob(coretest.Job("unseen").Priority(20).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		w.expectLiveCount("unseen", 1)
		r, err := w.runToken(w.leader().server, job(), p.Token, "")
		if err != nil {
			t.Fatal(err)
		}
		w.waitIdle()
		w.expectLiveCount("high", 1)
		w.expectLiveCount("unseen", 1)
		blocked := w.snap().Eval(w.snap().Eval(r.EvalID).Blocked)
		if blocked == nil || blocked.Failed["g"] == nil || !strings.Contains(blocked.Failed["g"].NoEviction, "did not list these evictions") {
			t.Errorf("blocked evaluation is %+v", blocked)
		}
		again := w.propose(w.leader().server, job())
		if len(again.Evict) != 1 || again.Evict[0].Alloc.Job.ID != "unseen" {
			t.Errorf("the new plan evicts %+v", again.Evict)
		}
		// Free capacity ends the restriction: from then on the job is placed like any
		// other.
		w.newNode("n900").waitRegistered()
		time.Sleep(time.Second)
		w.waitIdle()
		w.expectLiveCount("high", 2)
		w.expectLiveCount("unseen", 1)
		w.mustCall(func(s *Server) error {
			_, err := s.SetEligible(w.ctx, "n900", false)
			return err
		})
		for a := range w.snap().Allocs() {
			if a.NodeID == "n900" {
				w.mustCall(func(s *Server) error {
					_, err := s.StopAlloc(w.ctx, a.ID)
					return err
				})
			}
		}
		w.waitIdle()
		w.expectLiveCount("high", 2)
		w.expectLiveCount("unseen", 0)
	})
}

// Registering the job without the token places it like any other.
func TestPlanJob_RegistrationWithoutTokenMayEvict(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(1)
		w.registerJob(coretest.Job("low").Priority(20).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		p := w.propose(w.leader().server, highJob()) // preemption is disabled
		if len(p.Place) != 0 || p.Token == "" {
			t.Fatalf("proposed %+v", p)
		}
		if _, err := w.runToken(w.leader().server, highJob(), p.Token, ""); err != nil {
			t.Fatal(err)
		}
		w.waitIdle()
		w.enablePreemption() // reevaluates everything
		w.waitIdle()
		w.expectLiveCount("low", 1)
		w.registerJob(highJob())
		w.waitIdle()
		w.expectLiveCount("high", 1)
		w.expectLiveCount("low", 0)
	})
}

func TestPlanJob_ConflictsWhenRulesChanged(t *testing.T) {
	for name, c := range map[string]struct {
		job    func() *coretest.JobBuilder
		change func(*model.SchedulerConfig)
		want   string // "": the plan is run
	}{
		"preemption disabled": {highJob, func(c *model.SchedulerConfig) { c.Preemption = [model.EvalTypes]bool{} }, "preemption is off for service jobs"},
		"other delta":         {highJob, func(c *model.SchedulerConfig) { c.PriorityDelta = new(int32(70)) }, "the priority delta is 70"},
		"unrelated setting":   {highJob, func(c *model.SchedulerConfig) { c.Algorithm = model.SpreadRank }, ""},
		"no eviction": {
			func() *coretest.JobBuilder { return coretest.Job("high").Count(1).Ask(100, 100, 0) },
			func(c *model.SchedulerConfig) { c.PriorityDelta = new(int32(70)) }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				w.fillNodes()
				s := w.leader().server
				p := w.propose(s, c.job())
				config := *w.snap().Config()
				c.change(&config)
				w.mustCall(func(s *Server) error {
					_, err := s.SetConfig(w.ctx, &config, nil)
					return err
				})
				_, err := w.runToken(s, c.job(), p.Token, "")
				switch e, _ := errors.AsType[*apierror.Error](err); {
				case c.want == "" && err != nil:
					t.Errorf("refused: %v", err)
				case c.want != "" && (e == nil || e.Code != apierror.CodeConflict || !strings.Contains(e.Message, c.want)):
					t.Errorf("error is %v, want conflict %q", err, c.want)
				}
				w.waitIdle()
				if c.want != "" {
					w.expectLiveCount("low", 2)
				}
			})
		})
	}
}

// An instance on a draining node stays where it is once the drain has ended, so that a plan to
// replace it is refused. One that the update of the job replaces is not affected.
func TestRunPlan_ReplacesNothingOnceADrainHasEnded(t *testing.T) {
	for name, ask := range map[string]int64{"drain": 300, "update": 400} {
		t.Run(name, func(t *testing.T) {
			runServers(t, 1, nil, func(w *harness) {
				w.addNodes(2)
				job := func(cpu int64) *coretest.JobBuilder { return coretest.Job("web").Ask(cpu, 300, 0) }
				w.registerJob(job(300))
				w.waitIdle()
				var from string
				for id := range w.liveByNode("web") {
					from = id
				}
				s := w.leader().server
				s.pool.Resize(0)
				synctest.Wait()
				if name == "drain" {
					w.mustCall(func(s *Server) error {
						_, err := s.Drain(w.ctx, from, endpoint.DrainOptions{})
						return err
					})
				}
				p := w.propose(s, job(ask))
				if len(p.Place) != 1 || len(p.Stop) != 1 {
					t.Fatalf("proposed %+v", p)
				}
				w.mustCall(func(s *Server) error {
					var err error
					if name == "drain" {
						_, err = s.CancelDrain(w.ctx, from)
					} else if _, err = s.SetEligible(w.ctx, from, false); err == nil {
						_, err = s.SetEligible(w.ctx, from, true)
					}
					return err
				})
				_, err := w.runToken(s, job(ask), p.Token, "")
				refused := apierror.CodeOf(err) == apierror.CodeConflict && strings.Contains(fmt.Sprint(err), "has changed, from which allocation")
				if name == "drain" && !refused || name == "update" && err != nil {
					t.Errorf("the plan ends with %v", err)
				}
				s.pool.Resize(2)
				w.waitIdle()
				w.expectLiveCount("web", 1)
			})
		})
	}
}
