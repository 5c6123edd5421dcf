package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/record"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/state"
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A fairHost also holds the policy fair-share.
type fairHost struct {
	builtinHost
	config string // of fair-share, as JSON
}

func (h fairHost) Builtins() []*policy.Version {
	return append(h.builtinHost.Builtins(), h.fairShare())
}

func (h fairHost) fairShare() *policy.Version {
	v, err := policy.NewVersion(policy.Source{
		Name: "fair-share", Config: []byte(h.config),
		Module: policy.Native(policy.BuiltinDigest("fair-share", "test"), func() sdk.Policy { return fairshare.New() }),
	})
	if err != nil {
		panic(err)
	}
	return v
}

// runFairly runs a test on one server under the policy fair-share.
func runFairly(t *testing.T, host fairHost, story func(w *harness)) {
	t.Helper()
	runServers(t, 1, func(c *Config) { c.Policies = host }, func(w *harness) {
		config := coretest.AllPreempt()
		config.Policy = "fair-share"
		w.mustCall(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		story(w)
	})
}

func (w *harness) putNamespace(name string, weight float64) {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		_, err := s.PutNamespace(w.ctx, endpoint.NamespaceRequest{Name: name, Weight: &weight})
		return err
	})
}

// tenant returns a job in a namespace, whose instances take a node each.
func tenant(namespace, id string, priority int32, count int) *coretest.JobBuilder {
	return coretest.Job(id).Priority(priority).Count(count).Ask(800, 800, 0).Change(func(j *model.Job) { j.Namespace = namespace })
}

// live returns how many instances of a job are live.
func live(snap *state.Snapshot, namespace, id string) (n int) {
	for _, a := range snap.AppendJobAllocs(nil, model.JobKey{Namespace: namespace, ID: id}) {
		if a.Live() {
			n++
		}
	}
	return n
}

// With weights 1:3, a server takes from the namespace that is above its share, like the
// simulator with the same workload: a recording replays without differences. Without the
// weights, the replay differs.
func TestServer_WeighsNamespacesLikeTheSimulator(t *testing.T) {
	for _, c := range []struct {
		a, b         float64
		fromA, fromB int
	}{{1, 3, 1, 0}, {3, 1, 0, 1}} {
		t.Run(fmt.Sprintf("%v to %v", c.a, c.b), func(t *testing.T) {
			host := fairHost{config: "{}"}
			runFairly(t, host, func(w *harness) {
				w.putNamespace("a", c.a)
				w.putNamespace("b", c.b)
				w.addNodes(4)
				w.registerJob(tenant("a", "work-a", 20, 2))
				w.registerJob(tenant("b", "work-b", 20, 2))
				w.waitIdle()
				r := &record.Recording{Name: "weights", Began: w.leader().server.cfg.Clock.Now().UnixNano(), Begin: w.snap()}
				w.registerJob(tenant("c", "urgent", 80, 1))
				w.waitIdle()
				r.End, r.Ended = w.snap(), w.leader().server.cfg.Clock.Now().UnixNano()
				urgent := model.JobKey{Namespace: "c", ID: "urgent"}
				r.Events = []record.Event{{Kind: "JobRegistered", Namespace: "c", ID: "urgent", Version: r.End.Job(urgent).Version, Time: r.End.Job(urgent).SubmitTime}}
				if live(r.End, "a", "work-a") != 2-c.fromA || live(r.End, "b", "work-b") != 2-c.fromB || live(r.End, "c", "urgent") != 1 {
					t.Fatalf("%d of a and %d of b remain", live(r.End, "a", "work-a"), live(r.End, "b", "work-b"))
				}
				f, notes := r.Scenario()
				if len(notes) > 0 {
					t.Errorf("notes %v", notes)
				}
				if differences := replay(t, host, f); len(differences) > 0 {
					t.Errorf("the replay differs: %v", differences)
				}
				for i := range f.Namespaces { // the weights of the other case
					f.Namespaces[i].Weight = new(c.a * c.b / weightOf(&f.Namespaces[i]))
				}
				if differences := replay(t, host, f); len(differences) == 0 {
					t.Error("the replay does not depend on the weights")
				}
			})
		})
	}
}

// weightOf returns the weight of a namespace of a scenario, which may be absent.
func weightOf(n *scenario.Namespace) float64 {
	if n.Weight == nil {
		return model.DefaultWeight
	}
	return *n.Weight
}

// replay plays a recording and returns the differences from its expectations.
func replay(t *testing.T, host fairHost, f *scenario.File) []string {
	t.Helper()
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: func(s sim.PolicySpec) (*policy.Version, error) {
		if s.Use == "fair-share" {
			return host.fairShare(), nil
		}
		return host.builtinHost.Builtins()[0], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return sim.CheckExpect(f, run.Result)
}

// A changed weight unblocks evaluations, because it may permit evictions. A changed
// description does not, and neither does a weight that no active policy reads.
func TestServer_ChangeOfWeightUnblocks(t *testing.T) {
	blocked := func(w *harness) (indexes []uint64) {
		for e := range w.snap().Evals() {
			if e.Status == model.EvalBlocked {
				indexes = append(indexes, e.ModifyIndex)
			}
		}
		return indexes
	}
	fill := func(w *harness) {
		for _, name := range []string{"a", "b"} {
			w.putNamespace(name, 3)
		}
		w.addNodes(2)
		w.registerJob(tenant("a", "work-a", 20, 1))
		w.registerJob(tenant("b", "work-b", 20, 1))
		w.waitIdle()
	}
	runFairly(t, fairHost{config: `{"onlyAbove":true}`}, func(w *harness) {
		fill(w)
		w.registerJob(tenant("c", "urgent", 80, 1))
		w.waitIdle()
		before := blocked(w)
		if len(before) != 1 {
			t.Fatalf("%d blocked evaluations, want 1: no namespace is above its share", len(before))
		}
		w.mustCall(func(s *Server) error {
			_, err := s.PutNamespace(w.ctx, endpoint.NamespaceRequest{Name: "b", Description: "a tenant"})
			return err
		})
		w.waitIdle()
		if after := blocked(w); !slices.Equal(after, before) {
			t.Errorf("a description unblocked: %v, want %v", after, before)
		}
		w.putNamespace("b", 1)
		w.waitIdle()
		if live(w.snap(), "b", "work-b") != 0 || live(w.snap(), "a", "work-a") != 1 || live(w.snap(), "c", "urgent") != 1 {
			t.Error("the lower weight of b did not permit its eviction")
		}
	})
	runServers(t, 1, nil, func(w *harness) {
		fill(w)
		w.registerJob(tenant("c", "urgent", 80, 1))
		w.waitIdle()
		before := blocked(w)
		w.putNamespace("b", 1)
		w.waitIdle()
		if after := blocked(w); len(after) != 1 || !slices.Equal(after, before) {
			t.Errorf("a weight that no policy reads unblocked: %v, want %v", after, before)
		}
	})
}

// A plan is refused once the weights have changed by which it chose its victims.
func TestPlanJob_ConflictsWhenWeightsChanged(t *testing.T) {
	runFairly(t, fairHost{config: "{}"}, func(w *harness) {
		w.addNodes(2)
		w.registerJob(tenant("a", "work-a", 20, 1))
		w.registerJob(tenant("b", "work-b", 20, 1))
		w.waitIdle()
		s := w.leader().server
		p := w.propose(s, tenant("c", "urgent", 80, 1))
		w.putNamespace("b", 0.5)
		if _, err := w.runToken(s, tenant("c", "urgent", 80, 1), p.Token, ""); err == nil || live(w.snap(), "c", "urgent") != 0 {
			t.Errorf("the plan was run: %v", err)
		}
	})
}
