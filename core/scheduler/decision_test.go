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
	w, v, fails := flakyFixture(t, policy.AsConfigured)
	var format []scheduler.Decision
	set, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.New() }), v)
	must(err)
	w.sched = scheduler.New(scheduler.Config{
		Policies: set, Forget: true,
		Observe: func(d scheduler.Decision) { format = append(format, d) },
	})
	out := w.plan("j")
	if len(format) != 1 || format[0].Outcome != out || format[0].Snap != w.store.Snapshot() || format[0].Eval.JobID != "j" {
		t.Fatalf("told %+v", format)
	}
	hooks := map[string]string{} // versions by the hook that was called
	for _, c := range out.Calls {
		hooks[c.Hook] = c.Policy
	}
	if out.Version != v || hooks["ScoreVictims"] != "flaky" || hooks["ScoreOptions"] != "default" {
		t.Errorf("by %v, calls %+v", out.Version, out.Calls)
	}
	*fails = true
	out = w.plan("j")
	if len(format) != 2 || out.Fault == nil || len(out.Calls) != 1 || out.Calls[0].Err == nil || out.Version != v {
		t.Errorf("a fault: told %d times, by %v, calls %+v", len(format), out.Version, out.Calls)
	}
	*fails = false
	w.run(job("light", 10, 1, 1).Obj())
	w.node("n2")
	if out := w.plan("light"); len(out.Calls) != 0 || !out.Placed() {
		t.Errorf("nobody had to be asked: %+v", out.Calls)
	}
}

func TestOnFault_AsConfiguredFollowsCurrentConfiguration(t *testing.T) {
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
