package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestActivatePolicy_RefusesVersionThatFailedCheck(t *testing.T) {
	c := startServer(t)
	for mood, why := range map[string]string{"nan": "NaN", "traps": "on purpose"} {
		v := c.load(mood)
		if check := v.Checks["s1"]; check.OK || !strings.Contains(check.Error, why) {
			t.Errorf("%s: %+v", mood, check)
		}
		_, err := c.ActivatePolicy(t.Context(), "p", v.ID)
		c.expectError(err, apierror.CodeConflict, "server s1 rejected it", why)
		_, err = c.ShadowPolicy(t.Context(), "p", v.ID)
		c.expectError(err, apierror.CodeConflict, "server s1 rejected it")
	}
	if c.role().Active != "" || c.ready() != "" {
		t.Error("the rejected version is active, or blocks readiness:", c.ready())
	}
}

// A policy that is both built in under one name and loaded under another has one version
// ID. The calls of the check count only for the loaded copy.
func TestPolicyStatus_ExcludesCallsOfOtherCopy(t *testing.T) {
	c := startServer(t)
	v, err := c.LoadPolicy(t.Context(), policy.LoadRequest{Name: "rules", Builtin: policy.DefaultName})
	if err != nil {
		t.Fatal(err)
	}
	c.activate(v)
	for _, name := range []string{policy.DefaultName, "rules"} {
		st, err := c.PolicyStatus(t.Context(), name)
		if err != nil || st.Here == nil || st.Here.Version != v.ID || st.Here.Calls != 0 {
			t.Errorf("%s: %+v, %v; want version %s without calls", name, st.Here, err, v.ID)
		}
	}
}

func TestPolicyVersions_ResolveByPrefix(t *testing.T) {
	c := startServer(t)
	_, err := c.ActivatePolicy(t.Context(), "p", "00")
	c.expectError(err, apierror.CodeNotFound, `no version of policy "p"`, "cede policy load")
	v := c.load("first")
	hash := strings.TrimPrefix(v.ID, "sha256:")
	for _, prefix := range []string{hash[:1], hash[:12], "sha256:" + hash[:4], v.ID} {
		if _, err := c.ActivatePolicy(t.Context(), "p", prefix); err != nil {
			t.Error(err)
		}
	}
	_, err = c.ActivatePolicy(t.Context(), "p", "g")
	c.expectError(err, apierror.CodeNotFound, "has no version g", hash[:12])
	_, err = c.ActivatePolicy(t.Context(), "q", hash)
	c.expectError(err, apierror.CodeNotFound, `no version of policy "q"`, "versions are loaded of p")
	_, err = c.PolicyStatus(t.Context(), "q")
	c.expectError(err, apierror.CodeNotFound, `"q"`, "default, p")
}

func TestRollbackPolicy_ReturnsToLastGoodVersion(t *testing.T) {
	c := startServer(t)
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	c.activate(two)
	if c.activeVersion() != two.ID || c.role().Previous != one.ID {
		t.Errorf("%+v", c.role())
	}
	_, err := c.UnloadPolicy(t.Context(), "p", one.ID)
	c.expectError(err, apierror.CodeConflict, "the version that a rollback activates")
	_, err = c.UnloadPolicy(t.Context(), "p", two.ID)
	c.expectError(err, apierror.CodeConflict, "is active")
	for _, want := range []string{one.ID, two.ID, one.ID} {
		if _, err := c.RollbackPolicy(t.Context(), "p"); err != nil || c.activeVersion() != want {
			t.Errorf("active version is %s, want %s: %v", c.activeVersion(), want, err)
		}
	}
}

// The built-in policy that a version replaces has no version of its own at first.
func TestRollbackPolicy_NamesWayBackToBuiltin(t *testing.T) {
	c := startServer(t)
	c.activate(c.load("first", func(r *policy.LoadRequest) { r.Name = policy.DefaultName }))
	_, err := c.RollbackPolicy(t.Context(), policy.DefaultName)
	c.expectError(err, apierror.CodeConflict, "policy default has no version to roll back to", "cede policy load default --activate")
	builtin, err := c.LoadPolicy(t.Context(), policy.LoadRequest{Builtin: policy.DefaultName})
	if err != nil {
		t.Fatal(err)
	}
	c.activate(builtin)
	if s := c.Snapshot().PolicyState(policy.DefaultName); s.Active != builtin.ID || s.Previous == "" {
		t.Errorf("%+v", s)
	}
}

func TestUnloadPolicy_DeletesModuleWithLastVersion(t *testing.T) {
	c := startServer(t)
	one := c.load("first")
	two := c.load("first", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":2}`) })
	if n := c.member.Modules.Len(); n != 1 {
		t.Fatalf("%d modules stored", n)
	}
	if _, err := c.UnloadPolicy(t.Context(), "p", one.ID); err != nil {
		t.Fatal(err)
	}
	if n := c.member.Modules.Len(); n != 1 {
		t.Errorf("%d modules stored while a version needs one", n)
	}
	if _, err := c.UnloadPolicy(t.Context(), "p", two.ID); err != nil {
		t.Fatal(err)
	}
	c.waitFor("all modules are closed", func() bool { return c.shelf.open.Load() == 0 })
	if n := c.member.Modules.Len(); n != 0 || len(c.Snapshot().PolicyVersions()) != 0 {
		t.Errorf("%d modules stored", n)
	}
	if v := c.load("first"); !v.Checks["s1"].OK {
		t.Errorf("loaded again: %+v", v)
	}
}

// Versions alternate while workers preempt: nothing is dropped, and every plan is made by
// exactly one version that was active.
func TestActivatePolicy_DropsNothingUnderLoad(t *testing.T) {
	jobs, nodes := 120, 20
	if soak.Full() {
		jobs, nodes = 4000, 500
	}
	c := startServer(t)
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	c.fillNodes(nodes)
	c.setClusterPolicy()
	swapped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(swapped)
		for i := range 40 {
			var err error
			switch i % 4 {
			case 0, 2:
				_, err = c.ActivatePolicy(t.Context(), "p", []*model.PolicyVersion{two, one}[i/2%2].ID)
			case 1:
				_, err = c.ShadowPolicy(t.Context(), "p", []*model.PolicyVersion{one, two}[i/4%2].ID)
			case 3:
				_, err = c.RollbackPolicy(t.Context(), "p")
			}
			if err != nil && apierror.CodeOf(err) != apierror.CodeConflict {
				t.Error(err)
			}
		}
	})
	for i := range jobs {
		c.register(preemptorJob(fmt.Sprintf("j%d", i)))
	}
	wg.Wait()
	<-swapped
	for i := range jobs {
		id := fmt.Sprintf("j%d", i)
		c.waitFor(id+" is placed", func() bool { return c.running(id) == 1 })
	}
	used := map[string]int{}
	c.plans(func(index uint64, p *model.Plan) {
		versions := map[string]bool{}
		for _, g := range p.Groups {
			for _, e := range g.Evictions {
				versions[e.Policy] = true
			}
			for _, a := range g.Placements {
				if a.PolicyVersion != "" {
					versions[a.PolicyVersion] = true
				}
			}
		}
		if len(versions) > 1 {
			t.Errorf("the plan at index %d used versions %v", index, versions)
		}
		for v := range versions {
			used[v]++
		}
	})
	if used[one.ID]+used[two.ID] < jobs || len(used) > 2 {
		t.Errorf("versions that decided: %v", used)
	}
	st, err := c.PolicyStatus(t.Context(), "p")
	if err != nil || len(st.Decisions) == 0 {
		t.Fatal("no decision recorded", err)
	}
	for _, d := range st.Decisions {
		if d.Policy != "p" || d.Version != one.ID && d.Version != two.ID || d.Digest == "" || d.EvalID == "" || d.Index == 0 || len(d.Uses) == 0 {
			t.Errorf("recorded %+v", d)
		}
		for _, u := range d.Uses {
			if u.Hook == "" || u.Calls == 0 || u.Version != d.Version && u.Policy != policy.DefaultName {
				t.Errorf("recorded use %+v", u)
			}
		}
	}
}

func TestShadowPolicy_ReportsDifferencesAndAppliesNothing(t *testing.T) {
	c := startServer(t)
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	c.fillNodes(2)
	c.setClusterPolicy()
	if _, err := c.ShadowPolicy(t.Context(), "p", two.ID); err != nil {
		t.Fatal(err)
	}
	var st *policymgr.Status
	shadow := func() *policymgr.ShadowStatus {
		var err error
		if st, err = c.PolicyStatus(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		return st.Shadow
	}
	c.waitFor("the shadow run starts", func() bool { return shadow() != nil })
	for i := range 5 {
		c.register(preemptorJob(fmt.Sprintf("j%d", i)))
	}
	c.waitFor("all decisions are compared", func() bool { s := shadow(); return s.Decisions+s.Skipped >= 5 })
	s := st.Shadow
	if s.Version != two.ID || s.Differed == 0 || s.Failed != 0 || len(s.Differences) == 0 {
		t.Fatalf("%+v", s)
	}
	for _, d := range s.Differences {
		if d.Active.Version != one.ID || d.Shadow.Version != two.ID || len(d.Active.Victims) != 1 || len(d.Shadow.Victims) != 1 ||
			d.Active.Victims[0] == d.Shadow.Victims[0] || d.EvalID == "" || d.Index == 0 || len(d.Shadow.Places) != 1 || d.Shadow.Calls == 0 ||
			!strings.HasPrefix(d.Active.Why, "low.") || !strings.Contains(d.Shadow.Why, "(priority 10, loses") {
			t.Errorf("%+v", d)
		}
	}
	c.plans(func(_ uint64, p *model.Plan) {
		for _, g := range p.Groups {
			for _, e := range g.Evictions {
				if e.Policy != one.ID {
					t.Errorf("the shadow version decided: %+v", e)
				}
			}
		}
	})
	_, err := c.UnloadPolicy(t.Context(), "p", two.ID)
	c.expectError(err, apierror.CodeConflict, "is a shadow")
	if _, err := c.ShadowPolicy(t.Context(), "p", ""); err != nil || c.role().Shadow != "" {
		t.Error("the shadow run did not end:", err)
	}
	c.waitFor("the shadow run ends", func() bool { return shadow() == nil })
}

// The first version ever may be shadowed before any other policy was active.
func TestShadowPolicy_WithoutActivePolicy(t *testing.T) {
	c := startServer(t)
	first := c.load("last")
	if _, err := c.ShadowPolicy(t.Context(), "p", first.ID); err != nil {
		t.Fatal(err)
	}
	c.waitFor("the shadow run starts", func() bool {
		st, err := c.PolicyStatus(t.Context(), "p")
		return err == nil && st.Shadow != nil && st.Shadow.Version == first.ID
	})
}

func TestShadowPolicy_FaultsHaveNoEffect(t *testing.T) {
	c := startServer(t)
	one, bad := c.load("first"), c.load("breaks")
	c.activate(one)
	c.fillNodes(2)
	c.setClusterPolicy()
	if _, err := c.ShadowPolicy(t.Context(), "p", bad.ID); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		id := fmt.Sprintf("j%d", i)
		c.register(preemptorJob(id))
		c.waitFor(id+" is placed", func() bool { return c.running(id) == 1 })
	}
	c.waitFor("faults are counted", func() bool {
		st, err := c.PolicyStatus(t.Context(), "p")
		return err == nil && st.Shadow != nil && st.Shadow.Failed > 0 && st.Shadow.Differences[0].Shadow.Fault
	})
	if s := c.role(); s.Active != one.ID || len(s.Tripped) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPolicy_DisabledAfterRepeatedFaults(t *testing.T) {
	c := startServer(t)
	good, bad := c.load("first"), c.load("breaks")
	c.activate(good)
	c.activate(bad)
	c.fillNodes(2)
	c.setClusterPolicy()
	for i := range 12 {
		c.register(preemptorJob(fmt.Sprintf("j%d", i)))
	}
	c.waitFor("the last good version is active", func() bool { return c.role().Active == good.ID })
	if why := c.role().Tripped[bad.ID]; !strings.Contains(why, "only when it matters") {
		t.Errorf("reason of the trip is %q", why)
	}
	c.register(preemptorJob("after"))
	c.waitFor("it decides", func() bool { return c.running("after") == 1 && c.activeVersion() == good.ID })
	_, err := c.ActivatePolicy(t.Context(), "p", bad.ID)
	c.expectError(err, apierror.CodeConflict, "disabled because of faults", "only when it matters", "--reset")
	if _, err := c.ResetPolicy(t.Context(), "p", bad.ID); err != nil {
		t.Fatal(err)
	}
	c.activate(bad)
	if c.activeVersion() != bad.ID {
		t.Error("the reset version was not activated")
	}
}

func TestPolicy_FallsBackToBuiltinWithoutPredecessor(t *testing.T) {
	c := startServer(t)
	bad := c.load("breaks", func(r *policy.LoadRequest) { r.Name = policy.DefaultName })
	c.activate(bad)
	c.fillNodes(1)
	for i := range 8 {
		c.register(preemptorJob(fmt.Sprintf("j%d", i)))
	}
	c.waitFor("the version is disabled", func() bool {
		s := c.Snapshot().PolicyState(policy.DefaultName)
		return s != nil && s.Active == "" && s.Tripped[bad.ID] != ""
	})
	c.register(preemptorJob("after"))
	c.waitFor("the builtin policy decides", func() bool { return c.running("after") == 1 })
}

func TestTryPolicy_RollsBackUnlessConfirmed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := clock.NewVirtual(now)
	c := startServer(t, withClock(v))
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	try := func() {
		t.Helper()
		if _, err := c.TryPolicy(t.Context(), "p", two.ID, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		if want := v.Now().Add(10 * time.Minute).UnixNano(); c.role().Until != want || c.activeVersion() != two.ID {
			t.Fatalf("%+v", c.role())
		}
	}
	try()
	v.AdvanceTo(v.Now().Add(9 * time.Minute))
	if c.activeVersion() != two.ID {
		t.Error("trial ended too early")
	}
	c.waitFor("the trial ends", func() bool { v.AdvanceTo(v.Now().Add(time.Minute)); return c.activeVersion() == one.ID })
	if s := c.role(); s.Until != 0 {
		t.Errorf("%+v", s)
	}
	try()
	c.activate(two)
	if s := c.role(); s.Until != 0 || s.Active != two.ID || s.Previous != one.ID {
		t.Errorf("confirmed: %+v", s)
	}
	v.AdvanceTo(v.Now().Add(time.Hour))
	c.load("third") // the server has observed the state since
	if c.activeVersion() != two.ID {
		t.Error("confirmed version was rolled back")
	}
	_, err := c.TryPolicy(t.Context(), "p", one.ID, -time.Second)
	c.expectError(err, apierror.CodeInvalid, "invalid trial duration")
}

func TestPolicies_SurviveRestartInEveryPhase(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := clock.NewVirtual(now)
	c := startServer(t, withClock(v))
	restart := func(phase string, holds func() bool) {
		t.Helper()
		c.restart(withClock(v))
		c.waitFor(phase+" is restored", holds)
	}
	one := c.load("first")
	restart("the loaded version", func() bool {
		st, err := c.PolicyStatus(t.Context(), "p")
		return err == nil && len(st.Ready) == 1 && st.Versions[0].Checks["s1"].OK
	})
	c.activate(one)
	restart("the active version", func() bool { return c.activeVersion() == one.ID })
	bad, two := c.load("traps"), c.load("last")
	if _, err := c.ShadowPolicy(t.Context(), "p", two.ID); err != nil {
		t.Fatal(err)
	}
	restart("the shadow run", func() bool {
		st, err := c.PolicyStatus(t.Context(), "p")
		return err == nil && st.Shadow != nil && st.Shadow.Version == two.ID && st.Refused[bad.ID] != ""
	})
	if _, err := c.TryPolicy(t.Context(), "p", two.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	restart("the trial", func() bool { return c.activeVersion() == two.ID && c.role().Until != 0 })
	c.stop()
	v.AdvanceTo(v.Now().Add(2 * time.Hour)) // the trial ends while no server runs
	c.start(withClock(v))
	c.waitFor("the trial ends", func() bool { return c.activeVersion() == one.ID && c.role().Until == 0 })
	restart("the version after the rollback", func() bool { return c.activeVersion() == one.ID })
}

// The state holds the active version and the trial. Every server follows it, and a new
// leader ends the trial of the previous one. Time is virtual for Raft too: on a busy machine
// a server would lose its leadership, and retry by a clock that stands still.
func TestPolicies_TrialSurvivesChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := startThree(t)
		leader := all[0]
		one, two := leader.load("first"), leader.load("last")
		everywhere := func(list []*testServer, id string) {
			t.Helper()
			for _, c := range list {
				c.waitFor("the server follows", func() bool { return c.activeVersion() == id })
			}
		}
		leader.activate(one)
		everywhere(all, one.ID)
		_, err := all[1].ActivatePolicy(t.Context(), "p", two.ID)
		all[1].expectError(err, apierror.CodeNotLeader, leader.member.ID)
		_, err = all[1].tryLoad("third")
		all[1].expectError(err, apierror.CodeNotLeader, leader.member.ID)
		if _, err := leader.TryPolicy(t.Context(), "p", two.ID, time.Minute); err != nil {
			t.Fatal(err)
		}
		everywhere(all, two.ID)
		leader.stop()
		left := all[1:]
		leaderFirst(left)
		if left[0].activeVersion() != two.ID || left[0].role().Until == 0 {
			t.Errorf("role on the new leader is %+v", left[0].role())
		}
		time.Sleep(time.Minute)
		everywhere(left, one.ID)
	})
}

func TestPolicies_RestoreFromSnapshot(t *testing.T) {
	c := startServer(t)
	one := c.load("first")
	c.activate(one)
	if err := c.log.TakeSnapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.stop()
	c.member.Modules = replicationtest.NewModules() // only the contents of the snapshot
	c.start()
	c.waitFor("the active version is restored", func() bool { return c.activeVersion() == one.ID })
}

// A server that cannot open the active version decides nothing and reports it. It continues
// as soon as another version is active.
func TestPolicies_ServerWithoutActiveVersionDecidesNothing(t *testing.T) {
	c := startServer(t)
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	c.activate(two)
	c.fillNodes(1)
	c.stop()
	gate := make(chan struct{})
	c.start(gated(&gate))
	c.waitFor("reported", func() bool { return strings.Contains(c.ready(), "is active and not ready here") })
	c.register(preemptorJob("j"))
	if c.running("j") != 0 {
		t.Error("another version decided")
	}
	close(gate)
	c.waitFor("the server continues", func() bool { return c.ready() == "" && c.running("j") == 1 })
}

func TestPolicies_ServeReadsAfterStop(t *testing.T) {
	c := startServer(t)
	c.activate(c.load("first"))
	c.stop()
	if n := c.shelf.open.Load(); n != 0 {
		t.Errorf("%d modules still open", n)
	}
	if _, err := c.PolicyStatus(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	if _, err := c.registry.Gather(); err != nil {
		t.Error(err)
	}
	_ = c.ready()
	_, err := c.tryLoad("last")
	if err == nil {
		t.Error("a stopped server accepted a policy")
	}
}

func TestPolicyMetrics_MatchContract(t *testing.T) {
	c := startServer(t)
	good, bad := c.load("first"), c.load("breaks", func(r *policy.LoadRequest) { r.OnFault = "default" })
	c.activate(good)
	c.fillNodes(1)
	c.setClusterPolicy()
	c.register(preemptorJob("j0"))
	c.waitFor("the first version decides", func() bool { return c.running("j0") == 1 })
	c.activate(bad)
	c.register(preemptorJob("j1"))
	c.waitFor("default decides instead", func() bool { return c.running("j1") == 1 })
	want := map[string]string{
		"cede_policy_call_seconds":    `point="ScoreVictims" policy="p"`,
		"cede_policy_faults_total":    `fault="guest" policy="p"`,
		"cede_policy_fallbacks_total": `policy="p"`,
		"cede_policy_active_info":     `digest="` + bad.Digest + `" policy="p"`,
		"cede_policy_instances":       `policy="p" state="idle"`,
	}
	families, err := c.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		labels, wanted := want[f.GetName()]
		if !wanted {
			if strings.HasPrefix(f.GetName(), "cede_policy_") {
				t.Errorf("%s is not in the contract", f.GetName())
			}
			continue
		}
		found := false
		for _, m := range f.GetMetric() {
			var words []string
			for _, l := range m.GetLabel() {
				words = append(words, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			found = found || strings.Join(words, " ") == labels
		}
		if !found {
			t.Errorf("%s has no %s", f.GetName(), labels)
		}
		delete(want, f.GetName())
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// A plan belongs to the version that made it. However another version became active, it is
// a difference, unless the plan evicts nothing.
func TestPlanJob_ConflictsWhenPolicyVersionChanged(t *testing.T) {
	c := startServer(t)
	one, two := c.load("first"), c.load("last")
	c.activate(one)
	c.activate(two)
	c.fillNodes(2)
	c.setClusterPolicy()
	run := func(j *model.Job) (func() error, *endpoint.Proposal) {
		p, err := c.PlanJob(t.Context(), j, endpoint.PlanOptions{ExplicitPriority: true})
		if err != nil {
			t.Fatal(err)
		}
		return func() error {
			_, err := c.RegisterJob(t.Context(), j, endpoint.RegisterOptions{Token: p.Token, ExplicitPriority: true})
			return err
		}, p
	}
	for name, change := range map[string]func() error{
		"rolled back": func() error { _, err := c.RollbackPolicy(t.Context(), "p"); return err },
		"activated":   func() error { _, err := c.ActivatePolicy(t.Context(), "p", two.ID); return err },
		"another configuration": func() error {
			c.activate(c.load("last", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":2}`) }))
			return nil
		},
		"by another policy": func() error {
			config := *c.Snapshot().Config()
			config.Policy = "default"
			_, err := c.SetConfig(t.Context(), &config, nil)
			return err
		},
	} {
		c.activate(two)
		c.setClusterPolicy()
		if name == "activated" {
			c.activate(one)
		}
		evicting, p := run(preemptorJob("j"))
		if len(p.Evict) != 1 {
			t.Fatalf("%s: proposed %+v", name, p)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		err := evicting()
		c.expectError(err, apierror.CodeConflict, "was active when it was planned, and", "is active now", "plan again")
		if c.Snapshot().Job(preemptorJob("j").Key()) != nil || c.running("low") != 20 {
			t.Errorf("%s: a refused plan had an effect", name)
		}
	}
	if _, err := c.RegisterNode(t.Context(), coretest.Node("n9", 100, 100, 0), strings.Repeat("s", 32)); err != nil {
		t.Fatal(err)
	}
	c.setClusterPolicy()
	roomy, _ := run(preemptorJob("roomy"))
	if _, err := c.RollbackPolicy(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if err := roomy(); err != nil {
		t.Errorf("plan without policy calls: %v", err)
	}
}
