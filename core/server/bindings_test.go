package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state/apply"
)

const memberSecret = "the secret of a member cluster"

// putCluster registers a cluster without an agent.
func (w *harness) putCluster(id string, units int64) {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		_, err := s.PutCluster(w.ctx, &model.Cluster{ID: id, Capacity: model.Resources{"units": units}})
		return err
	})
}

// registerBinding registers a binding of one replica; change may be nil.
func (w *harness) registerBinding(id string, priority int32, units int64, change func(*model.Binding)) {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		b := &model.Binding{ID: id, Priority: priority, Replicas: 1, Resources: model.Resources{"units": units}}
		if change != nil {
			change(b)
		}
		_, err := s.RegisterBinding(w.ctx, b, endpoint.RegisterOptions{ExplicitPriority: true, ExplicitPreemption: true})
		return err
	})
}

func withPreemption(b *model.Binding) { b.Preempts = true }

// allowAnyPriorityGap lets bindings evict every binding of a lower priority.
func (w *harness) allowAnyPriorityGap() {
	w.mustCall(func(s *Server) error {
		config := coretest.AllPreempt()
		config.PriorityDelta = new(int32(1))
		_, err := s.SetConfig(w.ctx, config, nil)
		return err
	})
}

// replicasByCluster returns the live replicas of a binding by cluster.
func (w *harness) replicasByCluster(binding string) map[string]int {
	clusters := map[string]int{}
	for _, a := range w.snap().BindingAssignments(bindingKey(binding)) {
		if a.Live() {
			clusters[a.ClusterID] += a.Replicas
		}
	}
	return clusters
}

func (w *harness) expectAssigned(binding, want string) {
	w.t.Helper()
	if got := fmt.Sprint(w.replicasByCluster(binding)); got != "map["+want+"]" {
		w.t.Errorf("binding %s is on %s, want [%s]", binding, got, want)
	}
}

func bindingKey(id string) model.JobKey {
	return model.JobKey{Namespace: model.DefaultNamespace, ID: id}
}

// eventTypes returns the types and subjects of the events of some topics so far.
func (w *harness) eventTypes(topics ...string) []string {
	w.t.Helper()
	s, err := w.leader().server.Events(w.ctx, 1, topics)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait() // the publisher is done
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	var list []string
	for {
		batch, err := s.Next(ended)
		if err != nil {
			return list
		}
		for _, e := range batch.Events {
			list = append(list, e.Type+" "+e.Key)
		}
	}
}

// The example of the proposal: of capacity 10, bindings of priority 0 to 3 hold 1, 2, 5 and
// 2, and a binding of priority 10 requests 5.
func TestServer_EvictsVictimsOfTheProposal(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		for priority, units := range []int64{1, 2, 5, 2} {
			w.registerBinding(fmt.Sprintf("p%d", priority), int32(priority), units, nil)
		}
		w.waitIdle()
		w.registerBinding("p10", 10, 5, func(b *model.Binding) { b.Preempts = true })
		w.waitIdle()
		w.expectAssigned("p10", "m:1")
		w.expectAssigned("p2", "")
		for _, id := range []string{"p0", "p1", "p3"} {
			w.expectAssigned(id, "m:1")
		}
		decisions, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{})
		if err != nil || len(decisions) != 1 || len(decisions[0].Victims) != 1 || decisions[0].Victims[0].JobID != "p2" || decisions[0].ClusterID != "m" {
			t.Errorf("decisions %+v, %v", decisions, err)
		}
		list := strings.Join(w.eventTypes(string(events.Preemption), string(events.Assignment)), "\n")
		for _, want := range []string{"AssignmentPreempted default/p2/m/", "AssignmentEvicted default/p2/m/", "AssignmentEnded default/p2/m/", "AssignmentPlaced default/p10/m/"} {
			if !strings.Contains(list, want) {
				t.Errorf("no event %s in\n%s", want, list)
			}
		}
	})
}

func TestServer_PreemptorStartsAfterKillTimeoutAndVictimReturns(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.registerBinding("low", 1, 8, func(b *model.Binding) { b.KillTimeout = int64(time.Minute) })
		w.waitIdle()
		w.registerBinding("high", 5, 8, withPreemption)
		time.Sleep(50 * time.Second)
		w.expectAssigned("low", "")
		w.expectAssigned("high", "")
		if claims := w.snap().ClusterClaims("m"); len(claims) != 1 || claims[0].Claimant != bindingKey("high") {
			t.Errorf("claims %+v", claims)
		}
		time.Sleep(20 * time.Second)
		w.expectAssigned("high", "m:1")
		w.mustCall(func(s *Server) error {
			_, err := s.StopBinding(w.ctx, bindingKey("high"), endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		w.expectAssigned("high", "")
		w.expectAssigned("low", "m:1")
	})
}

func TestServer_BlockedBindingSurvivesChangeOfLeader(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.registerBinding("first", 1, 8, func(b *model.Binding) { b.Duration = int64(10 * time.Minute) })
		w.waitIdle()
		w.registerBinding("second", 1, 8, nil)
		w.waitIdle()
		w.expectAssigned("second", "")
		w.leader().halt()
		time.Sleep(15 * time.Minute)
		w.waitIdle()
		w.expectAssigned("second", "m:1")
	})
}

func TestCollectGarbage_RemovesFinishedAndStoppedBindings(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.putCluster("m", 10)
		w.registerBinding("done", 1, 2, func(b *model.Binding) { b.Duration = int64(time.Minute) })
		w.registerBinding("stopped", 1, 2, nil)
		w.registerBinding("stays", 1, 2, nil)
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StopBinding(w.ctx, bindingKey("stopped"), endpoint.StopOptions{Purge: true})
			return err
		})
		time.Sleep(2 * time.Minute)
		w.waitIdle()
		got, err := w.leader().server.CollectGarbage(w.ctx, true)
		if err != nil || got.Bindings != 2 {
			t.Errorf("collected %+v, %v", got, err)
		}
		for id, want := range map[string]bool{"done": false, "stopped": false, "stays": true} {
			if exists := w.snap().Binding(bindingKey(id)) != nil; exists != want {
				t.Errorf("binding %s exists: %t, want %t", id, exists, want)
			}
		}
	})
}

// registerMember registers a cluster of 10 units through its agent.
func (w *harness) registerMember(id string) {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		_, err := s.RegisterMember(w.ctx, &model.Cluster{ID: id, Capacity: model.Resources{"units": 10}}, memberSecret)
		return err
	})
}

// keepAlive sends heartbeats of a cluster until stop is called.
func (w *harness) keepAlive(id string) (stop func()) {
	quit := make(chan struct{})
	w.group.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-w.ctx.Done():
				return
			case <-time.After(5 * time.Second):
				_ = w.call(func(s *Server) error {
					_, err := s.ClusterHeartbeat(w.ctx, id, memberSecret, &endpoint.ClusterReport{})
					return err
				})
			}
		}
	})
	return func() { close(quit) }
}

// reportAssignments reports a status for all assignments of a cluster.
func (w *harness) reportAssignments(cluster string, status model.ClientStatus) {
	w.t.Helper()
	var updates []apply.AssignmentUpdate
	for _, a := range w.snap().ClusterAssignments(cluster) {
		updates = append(updates, apply.AssignmentUpdate{ID: a.ID, Client: status, Ready: a.Replicas, Text: "reported"})
	}
	w.mustCall(func(s *Server) error {
		_, err := s.UpdateAssignments(w.ctx, cluster, memberSecret, updates)
		return err
	})
}

func TestClusters_MissedHeartbeatsWithdrawAssignments(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerMember("m1")
		w.registerMember("m2")
		defer w.keepAlive("m2")()
		silence := w.keepAlive("m1")
		w.registerBinding("a", 1, 8, func(b *model.Binding) { b.Clusters = []string{"m1"} })
		w.registerBinding("b", 1, 1, func(b *model.Binding) { b.Weights = map[string]int{"m1": 2, "m2": 1} })
		w.waitIdle()
		w.expectAssigned("a", "m1:1")
		w.expectAssigned("b", "m1:1")
		silence()
		time.Sleep(time.Minute)
		if c := w.snap().Cluster("m1"); !c.Down {
			t.Error("cluster without heartbeats is not down")
		}
		w.expectAssigned("b", "m1:1") // existing assignments stay for now
		w.registerBinding("c", 1, 1, nil)
		w.waitIdle()
		w.expectAssigned("c", "m2:1")
		time.Sleep(6 * time.Minute)
		w.waitIdle()
		w.expectAssigned("a", "")
		w.expectAssigned("b", "m2:1")
		w.registerMember("m1")
		defer w.keepAlive("m1")()
		w.reportAssignments("m1", model.ClientComplete) // it has stopped the withdrawn assignment
		w.waitIdle()
		w.expectAssigned("a", "m1:1")
	})
}

func TestClusters_AgentReportsAssignments(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.registerMember("m")
		defer w.keepAlive("m")()
		w.registerBinding("low", 1, 8, nil)
		w.waitIdle()
		w.reportAssignments("m", model.ClientRunning)
		if a := w.snap().BindingAssignments(bindingKey("low"))[0]; a.Client != model.ClientRunning || a.Ready != 1 || a.ClientText != "reported" {
			t.Errorf("assignment %+v", a)
		}
		w.registerBinding("high", 5, 8, withPreemption)
		time.Sleep(5 * time.Minute) // the cluster is slow
		w.expectAssigned("high", "")
		w.reportAssignments("m", model.ClientComplete)
		w.waitIdle()
		w.expectAssigned("high", "m:1")
		w.reportAssignments("m", model.ClientFailed)
		time.Sleep(time.Second)
		w.expectAssigned("high", "")
		w.expectAssigned("low", "m:1") // it holds capacity while the other binding is delayed
		time.Sleep(15 * time.Second)
		w.reportAssignments("m", model.ClientComplete)
		w.waitIdle()
		w.expectAssigned("high", "m:1")
	})
}

func TestClusters_RequireSecret(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerMember("m")
		w.putCluster("plain", 10)
		s := w.leader().server
		cluster := &model.Cluster{ID: "m", Capacity: model.Resources{"units": 1}}
		for what, c := range map[string]struct {
			code apierror.Code
			call func() error
		}{
			"other agent":                 {apierror.CodeForbidden, func() error { _, err := s.RegisterMember(w.ctx, cluster, strings.Repeat("x", 20)); return err }},
			"short secret":                {apierror.CodeInvalid, func() error { _, err := s.RegisterMember(w.ctx, cluster, "short"); return err }},
			"operator":                    {apierror.CodeConflict, func() error { _, err := s.PutCluster(w.ctx, cluster); return err }},
			"heartbeat with wrong secret": {apierror.CodeForbidden, func() error { _, err := s.ClusterHeartbeat(w.ctx, "m", "?", &endpoint.ClusterReport{}); return err }},
			"unknown cluster": {apierror.CodeNotFound, func() error {
				_, err := s.ClusterHeartbeat(w.ctx, "x", memberSecret, &endpoint.ClusterReport{})
				return err
			}},
			"no agent": {apierror.CodeNotFound, func() error {
				_, err := s.ClusterHeartbeat(w.ctx, "plain", memberSecret, &endpoint.ClusterReport{})
				return err
			}},
			"delete unknown cluster": {apierror.CodeNotFound, func() error { _, err := s.DeleteCluster(w.ctx, "x", false); return err }},
			"ID with a slash": {apierror.CodeInvalid, func() error {
				_, err := s.PutCluster(w.ctx, &model.Cluster{ID: "a/b", Capacity: model.Resources{"units": -1}})
				return err
			}},
		} {
			if err := c.call(); apierror.CodeOf(err) != c.code || err == nil {
				t.Errorf("%s: %v, want %s", what, err, c.code)
			}
		}
		w.mustCall(func(s *Server) error {
			_, err := s.ClusterHeartbeat(w.ctx, "m", memberSecret, &endpoint.ClusterReport{Reported: model.Resources{"units": 4}})
			return err
		})
		w.registerBinding("large", 1, 5, func(b *model.Binding) { b.Clusters = []string{"m"} })
		w.waitIdle()
		w.expectAssigned("large", "")
		w.mustCall(func(s *Server) error {
			_, err := s.ClusterHeartbeat(w.ctx, "m", memberSecret, &endpoint.ClusterReport{Reported: model.Resources{"units": 6}})
			return err
		})
		w.waitIdle()
		w.expectAssigned("large", "m:1")
	})
}

func TestRegisterBinding_ReturnsAllProblems(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerJob(coretest.Job("taken").Ask(1, 1, 0))
		_, err := w.leader().server.RegisterBinding(w.ctx, &model.Binding{
			ID: "taken", Replicas: -1, ClusterScoped: true, Preempts: true, ClassSource: model.FederatedPriorityClass,
		}, endpoint.RegisterOptions{ExplicitPreemption: true})
		var e *apierror.Error
		if !errors.As(err, &e) || e.Code != apierror.CodeInvalid {
			t.Fatal(err)
		}
		for _, want := range []string{"a job with this ID exists", "-1 replicas", "cluster-scoped", "FederatedPriorityClass"} {
			if !strings.Contains(e.Message, want) {
				t.Errorf("%q is not in %s", want, e.Message)
			}
		}
	})
}

func TestRegisterBinding_UsesPriorityOfClass(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		for _, c := range []model.PriorityClass{{Name: "gold", Value: 1000}, {Name: "plain", Value: 50, GlobalDefault: true, NeverPreempts: true}} {
			w.mustCall(func(s *Server) error {
				_, err := s.PutPriorityClass(w.ctx, &c)
				return err
			})
		}
		for _, c := range []struct {
			id       string
			binding  model.Binding
			explicit bool
			priority int32
			preempts bool
			class    string
			warned   bool
		}{
			{id: "named", binding: model.Binding{PriorityClass: "gold"}, priority: 1000, preempts: true, class: "gold"},
			{id: "default", priority: 50, class: "plain"},
			{id: "zero", explicit: true},
			{id: "gone", binding: model.Binding{PriorityClass: "x"}, class: "x", warned: true},
			{id: "pod", binding: model.Binding{PriorityClass: "x", ClassSource: model.PodPriorityClass}, priority: 50, class: "plain", warned: true},
			{id: "scoped", binding: model.Binding{PriorityClass: "gold", ClusterScoped: true}, priority: 1000, class: "gold"},
		} {
			b := c.binding
			b.ID = c.id
			r, err := w.leader().server.RegisterBinding(w.ctx, &b, endpoint.RegisterOptions{ExplicitPriority: c.explicit})
			if err != nil {
				t.Errorf("%s: %v", c.id, err)
				continue
			}
			got := w.snap().Binding(bindingKey(c.id))
			if got.Priority != c.priority || got.Preempts != c.preempts || got.PriorityClass != c.class || (len(r.Warnings) > 0) != c.warned {
				t.Errorf("%s: priority %d, preempts %t, class %q, warnings %q", c.id, got.Priority, got.Preempts, got.PriorityClass, r.Warnings)
			}
			if missing := c.id == "gone"; got.HasMissingClass() != missing || (got.ClassWarning() != "") != missing {
				t.Errorf("%s: missing class: %t, %q", c.id, got.HasMissingClass(), got.ClassWarning())
			}
		}
		w.waitIdle()
		if list := strings.Join(w.eventTypes("Binding"), "\n"); strings.Count(list, "PriorityClassMissing") != 1 || !strings.Contains(list, "PriorityClassMissing gone") {
			t.Errorf("unexpected events of the missing class:\n%s", list)
		}
	})
}

func TestStopBinding_UnknownAndRepeated(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		if _, err := s.StopBinding(w.ctx, bindingKey("x"), endpoint.StopOptions{}); apierror.CodeOf(err) != apierror.CodeNotFound {
			t.Errorf("unknown binding: %v", err)
		}
		w.putCluster("m", 4)
		w.registerBinding("a", 1, 1, nil)
		w.waitIdle()
		for range 2 {
			if _, err := s.StopBinding(w.ctx, bindingKey("a"), endpoint.StopOptions{}); err != nil {
				t.Error(err)
			}
			w.waitIdle()
		}
		if _, err := s.DeleteCluster(w.ctx, "m", false); err != nil {
			t.Errorf("deletion of an empty cluster: %v", err)
		}
		if !slices.Contains(w.eventTypes(string(events.Cluster)), "ClusterDeleted m") {
			t.Error("no ClusterDeleted event")
		}
	})
}

// If a new cluster does not fit, the explanation of a blocked binding is updated with the
// reason.
func TestServer_UpdatesExplanationWhenClustersRegister(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerBinding("elsewhere", 5, 8, func(b *model.Binding) { b.Clusters = []string{"m2"} })
		w.registerBinding("large", 5, 80, nil)
		w.waitIdle()
		why := func(binding, want string) {
			t.Helper()
			for _, e := range w.snap().EvalsOfJob(bindingKey(binding)) {
				if x := e.Failed[binding]; e.Status == model.EvalBlocked && !strings.HasPrefix(x.String(), want) {
					t.Errorf("explanation of %s is %s; want %s", binding, x, want)
				}
			}
		}
		why("elsewhere", "there are no clusters")
		w.putCluster("m1", 10)
		w.waitIdle()
		why("elsewhere", "0 of 1 cluster: 1 excluded by the clusters that the binding allows")
		why("large", "0 of 1 cluster: 1 lacks units")
	})
}

// A cluster that shrinks below its assignments loses none. A preemptor must then evict
// enough to cover the excess as well.
func TestServer_ClusterShrinksBelowAssignments(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		for id, units := range map[string]int64{"a": 4, "b": 4, "c": 2} {
			w.registerBinding(id, map[string]int32{"a": 1, "b": 2, "c": 3}[id], units, nil)
		}
		w.waitIdle()
		w.putCluster("m", 7)
		w.waitIdle()
		for _, id := range []string{"a", "b", "c"} {
			w.expectAssigned(id, "m:1")
		}
		w.registerBinding("high", 9, 2, withPreemption) // three of the four were in excess
		w.waitIdle()
		w.expectAssigned("high", "m:1")
		w.expectAssigned("a", "")
		w.expectAssigned("b", "")
		w.expectAssigned("c", "m:1")
	})
}

// A claim ends if its capacity disappears. Once there is capacity again, the highest
// priority receives it.
func TestServer_ClaimIsLostWhenClusterShrinks(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.registerBinding("low", 1, 8, func(b *model.Binding) { b.KillTimeout = int64(time.Minute) })
		w.waitIdle()
		w.registerBinding("high", 5, 8, withPreemption)
		time.Sleep(10 * time.Second)
		w.putCluster("m", 4)
		time.Sleep(2 * time.Minute)
		w.expectAssigned("low", "")
		w.expectAssigned("high", "")
		w.putCluster("m", 9)
		time.Sleep(20 * time.Minute)
		w.expectAssigned("high", "m:1")
		w.expectAssigned("low", "")
		if claims := w.snap().ClusterClaims("m"); len(claims) != 0 {
			t.Errorf("claims %+v", claims)
		}
	})
}
