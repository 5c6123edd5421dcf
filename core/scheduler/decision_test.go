package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestObserve_ReceivesEveryOutcomeWithCalls(t *testing.T) {
	t.Parallel()
	w, v, fails := flakyFixture(t, policy.AsConfigured)
	var decisions []scheduler.Decision
	set, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.New() }), v)
	must(err)
	w.sched = scheduler.New(scheduler.Config{
		Policies: set, Forget: true,
		Observe: func(d scheduler.Decision) { decisions = append(decisions, d) },
	})
	out := w.plan("j")
	if len(decisions) != 1 || decisions[0].Outcome != out || decisions[0].Snap != w.store.Snapshot() || decisions[0].Eval.JobID != "j" {
		t.Fatalf("decisions %+v", decisions)
	}
	hooks := map[string]string{} // versions by the hook that was called
	for _, c := range out.Calls {
		hooks[c.Hook] = c.Policy
	}
	if out.Version != v || hooks["ScoreVictims"] != "flaky" || hooks["ScoreOptions"] != "default" {
		t.Errorf("version %v, calls %+v", out.Version, out.Calls)
	}
	*fails = true
	out = w.plan("j")
	if len(decisions) != 2 || out.Fault == nil || len(out.Calls) != 1 || out.Calls[0].Err == nil || out.Version != v {
		t.Errorf("after a fault: %d decisions, version %v, calls %+v", len(decisions), out.Version, out.Calls)
	}
	*fails = false
	w.run(job("light", 10, 1, 1).Obj())
	w.node("n2")
	if out := w.plan("light"); len(out.Calls) != 0 || !out.Placed() {
		t.Errorf("no call was necessary: %+v", out.Calls)
	}
}

func TestOnFault_AsConfiguredFollowsCurrentConfiguration(t *testing.T) {
	t.Parallel()
	w, v, fails := flakyFixture(t, policy.AsConfigured)
	*fails = true
	for _, c := range []struct{ config, want string }{
		{"", "g waits for 1"},
		{model.OnFaultDefault, "j.g[0]@n1 over l"},
		{model.OnFaultDeny, "g waits for 1"},
	} {
		w.config(func(s *model.SchedulerConfig) { s.OnFault = c.config })
		if got := format(w.plan("j")); got != c.want {
			t.Errorf("%q: %s, want %s", c.config, got, c.want)
		}
	}
	if v.Fallbacks() != 1 {
		t.Errorf("%d fallbacks", v.Fallbacks())
	}
}
