package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func TestCollectGarbage_RemovesOnlyTerminalObjects(t *testing.T) {
	// A tenth of the defaults: each virtual hour takes time of the processor.
	short := func(c *Config) {
		c.Retention = gc.Retention{Evals: 6 * time.Minute, Allocs: 6 * time.Minute, Jobs: 24 * time.Minute, Nodes: 144 * time.Minute}
	}
	runServers(t, 1, short, func(w *harness) {
		w.addNodes(3)
		s := w.leader().server
		key := func(id string) model.JobKey { return model.JobKey{Namespace: "default", ID: id} }
		w.registerJob(coretest.Job("runs").Ask(100, 100, 0))
		w.registerJob(coretest.Job("stopped").Ask(100, 100, 0))
		w.registerJob(coretest.Job("done").Type(model.JobBatch).Count(2).Ask(100, 100, 0))
		w.registerJob(coretest.Job("half").Type(model.JobBatch).Count(2).Ask(100, 100, 0))
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, key("stopped"), endpoint.StopOptions{})
			return err
		})
		w.completeAllocs("done", 2)
		w.completeAllocs("half", 1)
		w.waitIdle()
		gone := w.machines["n002"]
		for a := range w.snap().Allocs() {
			if a.NodeID == "n002" && a.Live() {
				gone = nil
			}
		}
		if gone != nil {
			gone.stop()
		}

		young, err := s.CollectGarbage(w.ctx, false)
		if err != nil || young != (gc.Collected{}) {
			t.Errorf("young objects were deleted: %+v, %v", young, err)
		}
		time.Sleep(3 * time.Hour) // the collector has run by itself
		snap := w.snap()
		for id, want := range map[string]bool{"runs": true, "stopped": false, "done": false, "half": true} {
			if exists := snap.Job(key(id)) != nil; exists != want {
				t.Errorf("job %s exists: %t, want %t", id, exists, want)
			}
		}
		w.expectLiveCount("runs", 1)
		w.expectLiveCount("half", 1)
		if n := snap.JobAllocCount(key("half")); n != 2 {
			t.Errorf("the unfinished job has %d allocations, want its completed ones", n)
		}
		for e := range snap.Evals() {
			if e.Status.Final() {
				t.Errorf("evaluation %s is %s since %v", e.ID, e.Status, time.Since(time.Unix(0, e.ModifyTime)))
			}
		}
		if gone != nil && snap.Node("n002") != nil {
			t.Error("a node that was down for three hours still exists")
		}
		w.registerJob(coretest.Job("brief").Ask(100, 100, 0))
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, key("brief"), endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		if forced, err := s.CollectGarbage(w.ctx, true); err != nil || forced.Jobs != 1 || w.snap().Job(key("brief")) != nil {
			t.Errorf("forced collection: %+v, %v", forced, err)
		}
	})
}

// completeAllocs completes some instances of a job.
func (w *harness) completeAllocs(job string, n int) {
	w.t.Helper()
	for _, a := range w.snap().AppendJobAllocs(nil, model.JobKey{Namespace: "default", ID: job}) {
		if n == 0 {
			return
		}
		n--
		m := w.machines[a.NodeID]
		w.mustCall(func(s *Server) error {
			_, err := s.UpdateAllocs(w.ctx, a.NodeID, m.secret, []apply.ClientUpdate{{AllocID: a.ID, Status: model.ClientComplete}})
			return err
		})
	}
}

// Dashboards are built from the table in METRICS.md.
func TestMetrics_MatchTable(t *testing.T) {
	registry := prometheus.NewRegistry()
	runServers(t, 1, func(c *Config) { c.Registry = registry }, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Count(3).Ask(800, 800, 0))
		w.waitIdle()
		file, err := os.ReadFile("METRICS.md")
		if err != nil {
			t.Fatal(err)
		}
		page, _, _ := strings.Cut(string(file), "\n## Of the process\n")
		table := map[string][]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z, 1]+ \\| ([^|]*)\\|").FindAllStringSubmatch(page, -1) {
			table[row[1]] = nil
			for _, label := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
				table[row[1]] = append(table[row[1]], label[1])
			}
			slices.Sort(table[row[1]])
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, f := range families {
			seen[f.GetName()] = true
			labels, ok := table[f.GetName()]
			if !ok {
				t.Errorf("%s is not in the table", f.GetName())
				continue
			}
			for _, m := range f.GetMetric() {
				var have []string
				for _, l := range m.GetLabel() {
					have = append(have, l.GetName())
				}
				slices.Sort(have)
				if !slices.Equal(have, labels) {
					t.Errorf("%s has labels %v, table has %v", f.GetName(), have, labels)
				}
			}
		}
		for name := range table {
			if !seen[name] {
				t.Errorf("%s is in the table, but not registered", name)
			}
		}
		w.checkCounts(sumsOf(families))
	})
}

// sumsOf returns the sums of counters by name and first label value.
func sumsOf(families []*dto.MetricFamily) map[string]float64 {
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()+m.GetSummary().GetSampleCount())
			name := f.GetName()
			sums[name] += v
			for _, l := range m.GetLabel() {
				sums[name+"/"+l.GetValue()] += v
			}
		}
	}
	return sums
}

func (w *harness) checkCounts(sums map[string]float64) {
	w.t.Helper()
	for name, want := range map[string]float64{
		"cede_sched_placements_total/placed": 4, "cede_preempt_victims_total/default": 2,
		"cede_preempt_decisions_total/evicted": 1, "cede_raft_is_leader": 1, "cede_broker_evals/blocked": 2,
	} {
		if sums[name] != want {
			w.t.Errorf("%s is %v, want %v", name, sums[name], want)
		}
	}
	for _, name := range []string{"cede_plan_commit_seconds", "cede_plan_verify_seconds", "cede_worker_process_seconds", "cede_raft_applied_index"} {
		if sums[name] == 0 {
			w.t.Errorf("%s is 0", name)
		}
	}
}

func TestReady_ListsFailedChecks(t *testing.T) {
	var broken error
	runServers(t, 1, func(c *Config) { c.StorageHealthy = func() error { return broken } }, func(w *harness) {
		s := w.leader().server
		bad := func() (names []string) {
			for _, c := range s.Ready(w.ctx) {
				if !c.OK {
					names = append(names, c.Name)
				}
			}
			return names
		}
		if names := bad(); len(names) > 0 {
			t.Errorf("healthy server fails checks %v", names)
		}
		broken = errors.New("disk full")
		if names := bad(); !slices.Equal(names, []string{"storage"}) {
			t.Errorf("failed checks are %v", names)
		}
		broken = nil
	})
}

func TestEvents_ResumeOnAnotherServer(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		w.fillNodes()
		first := w.leader()
		r := w.registerJob(highJob())
		w.waitIdle()
		w.checkStatesEqual()
		read := func(s *Server, from uint64, topics ...string) (types []string) {
			sub, err := s.Events(w.ctx, from, topics)
			if err != nil {
				t.Fatal(err)
			}
			for {
				ctx, cancel := context.WithTimeout(w.ctx, time.Second)
				batch, err := sub.Next(ctx)
				cancel()
				if err != nil {
					return types
				}
				if batch.Lost != nil && from > 1 {
					t.Errorf("lost %+v", batch.Lost)
				}
				for _, e := range batch.Events {
					types = append(types, fmt.Sprint(e.Index, " ", e.Type, " ", e.Key))
				}
			}
		}
		var follower *member
		for _, m := range w.members {
			if m != first {
				follower = m
			}
		}
		mine := read(first.server, r.Index)
		theirs := read(follower.server, r.Index)
		if !slices.Equal(mine, theirs) || len(mine) == 0 {
			t.Errorf("servers return different events:\n%v\n%v", mine, theirs)
		}
		kinds := strings.Join(mine, "\n")
		for _, want := range []string{"JobRegistered high", "EvaluationCreated", "AllocationEvicted", "AllocationPlaced", "AllocationPreempted", "PreemptionDecided", "EvaluationUpdated", "AllocationUpdated"} {
			if !strings.Contains(kinds, want) {
				t.Errorf("no %s among\n%s", want, kinds)
			}
		}
		if only := read(first.server, r.Index, string(events.Decision)); len(only) != 1 {
			t.Errorf("got decisions %v, want one", only)
		}
		if none := read(first.server, r.Index, "Deployment"); len(none) != 0 {
			t.Errorf("unknown topic returned %v", none)
		}
	})
}

func TestBroker_PauseSurvivesChangeOfLeader(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		w.addNodes(1)
		w.mustCall(func(s *Server) error {
			_, err := s.PauseBroker(w.ctx)
			return err
		})
		w.registerJob(coretest.Job("web").Ask(100, 100, 0))
		if err := w.leader().node.Transfer(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		w.expectLiveCount("web", 0)
		stats, _ := w.leader().server.BrokerStats()
		if !stats.Paused {
			t.Error("the new leader delivers evaluations while paused")
		}
		w.mustCall(func(s *Server) error {
			_, err := s.ResumeBroker(w.ctx)
			return err
		})
		time.Sleep(time.Second)
		w.waitIdle()
		w.expectLiveCount("web", 1)
	})
}

func TestTokens_BootstrapOnceAndExpire(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		s := w.leader().server
		secret, first, err := s.BootstrapToken(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if found, ok := s.Authenticate(secret); !ok || found.Accessor != first.Accessor {
			t.Errorf("bootstrap token: %+v, %t", found, ok)
		}
		if _, _, err := s.BootstrapToken(w.ctx); apierror.CodeOf(err) != apierror.CodeConflict {
			t.Errorf("second bootstrap: %v", err)
		}
		if _, _, err := s.CreateToken(w.ctx, endpoint.NewToken{Name: "x", Roles: []string{"root"}}); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("unknown role: %v", err)
		}
		if _, _, err := s.CreateToken(w.ctx, endpoint.NewToken{Name: "x", Roles: []string{"read", "management"}, Namespace: "team"}); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("management token with a namespace: %v", err)
		}
		brief, token, err := s.CreateToken(w.ctx, endpoint.NewToken{Name: "ci", Roles: []string{"submit", "policy"}, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Authenticate(brief); !ok {
			t.Error("new token is not accepted")
		}
		if _, ok := s.Authenticate(brief + "x"); ok {
			t.Error("wrong secret is accepted")
		}
		time.Sleep(2 * time.Hour)
		if _, ok := s.Authenticate(brief); ok {
			t.Error("expired token is accepted")
		}
		if _, err := s.DeleteToken(w.ctx, token.Accessor); err != nil {
			t.Error(err)
		}
		if _, err := s.DeleteToken(w.ctx, token.Accessor); apierror.CodeOf(err) != apierror.CodeNotFound {
			t.Errorf("second deletion: %v", err)
		}
	})
}

func TestServer_FollowerReturnsLeader(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		leader := w.leader()
		for _, m := range w.members {
			if m == leader {
				continue
			}
			_, err := m.server.RegisterJob(w.ctx, coretest.Job("web").Obj(), endpoint.RegisterOptions{})
			e, ok := errors.AsType[*apierror.Error](err)
			if !ok || e.Code != apierror.CodeNotLeader || e.Details["LeaderID"] != leader.id {
				t.Errorf("%s returns %+v", m.id, err)
			}
			if _, err := m.server.Consistent(w.ctx); apierror.CodeOf(err) != apierror.CodeNotLeader {
				t.Errorf("%s serves a consistent read: %v", m.id, err)
			}
		}
		if _, err := leader.server.Consistent(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A new cluster preempts for system jobs alone, as in Nomad. The configuration is in the log.
func TestServer_NewClusterPreemptsForSystemJobs(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		config := w.leader().server.Snapshot().Config()
		want := [model.EvalTypes]bool{model.JobSystem: true}
		if config.Preemption != want || config.ModifyIndex == 0 {
			t.Errorf("the configuration of index %d preempts for %v, want %v", config.ModifyIndex, config.Preemption, want)
		}
	})
}
