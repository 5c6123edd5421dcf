package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// faulty is a policy that returns an error from every call.
type faulty struct{}

func (faulty) Info() sdk.Info { return sdk.Info{Name: "faulty"} }

func (faulty) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error {
	return errors.New("out of ideas")
}

// withFaulty resolves the faulty policy in addition to the built-in ones.
type withFaulty struct{ *policies.Loader }

func (w withFaulty) Open(ctx context.Context, r policies.Request) (*policies.Policy, error) {
	if r.Use != "faulty" {
		return w.Loader.Open(ctx, r)
	}
	v, err := policy.NewVersion(policy.Source{
		Name: r.Name, OnFault: r.OnFault, Observe: r.Observe,
		Module: policy.Native(policy.BuiltinDigest("faulty", "1"), func() sdk.Policy { return faulty{} }),
	})
	return &policies.Policy{Version: v}, err
}

func TestRun_PolicyFailureIsExit7WithAResult(t *testing.T) {
	files := map[string]string{"s.yaml": clitest.Contested + "expect: {placements: [{job: high}]}\n"}
	w := clitest.New(files, "sim", "run", "s.yaml", "-p", "faulty", "-o", "json")
	w.Policies = withFaulty{clitest.BuiltIn()}
	if code := runEnv(t, w); code != cmdutil.ExitPolicy { // a policy failure takes precedence over the failed expectation
		t.Errorf("exit %d, want %d", code, cmdutil.ExitPolicy)
	}
	if !strings.HasPrefix(w.Out.String(), `{"version":1,"scenario":"contested","policy":"faulty"`) {
		t.Errorf("printed %s", &w.Out)
	}
	said := w.Err.String()
	for _, want := range []string{`"Code":"expectation_failed"`, `"Code":"policy_fault"`, "out of ideas"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is missing in\n%s", want, said)
		}
	}
}

func TestRun_OnFaultSelectsTheFallback(t *testing.T) {
	for choice, victims := range map[string]string{"deny": "0", "default": "1"} {
		w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "sim", "run", "s.yaml", "-p", "faulty", "--on-fault", choice, "-t", "{{.metrics.victims}}")
		w.Policies = withFaulty{clitest.BuiltIn()}
		if code := runEnv(t, w); code != cmdutil.ExitPolicy || strings.TrimSpace(w.Out.String()) != victims {
			t.Errorf("%s: exit %d with %s victims, want %s", choice, code, strings.TrimSpace(w.Out.String()), victims)
		}
		if instead := strings.Contains(w.Err.String(), "default decided instead"); instead != (choice == "default") || instead == strings.Contains(w.Err.String(), "evict nothing") {
			t.Errorf("%s: stderr is %s", choice, &w.Err)
		}
	}
}

func TestRun_PolicyLogRecordsFailures(t *testing.T) {
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "sim", "run", "s.yaml", "-p", "faulty", "--policy-log", "calls.jsonl", "-o", "name")
	w.Policies = withFaulty{clitest.BuiltIn()}
	if code := runEnv(t, w); code != cmdutil.ExitPolicy {
		t.Errorf("exit %d: %s", code, &w.Err)
	}
	if log := w.Files["calls.jsonl"]; !strings.Contains(log, `"hook":"ScoreVictims"`) || !strings.Contains(log, `"error":"out of ideas"`) {
		t.Errorf("wrote %s", log)
	}
}

func TestCompare_PolicyFailureIsExit7(t *testing.T) {
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "compare", "s.yaml", "-p", "default", "-p", "faulty", "--fail-if", "policyFaults(faulty) > 0")
	w.Policies = withFaulty{clitest.BuiltIn()}
	if code := runEnv(t, w); code != cmdutil.ExitPolicy { // a policy failure takes precedence over the condition
		t.Errorf("exit %d, want %d", code, cmdutil.ExitPolicy)
	}
	if said := w.Err.String(); !strings.Contains(said, "s.yaml under faulty, seed 0: a policy failed") || !strings.Contains(said, "--fail-if holds") {
		t.Errorf("stderr is %s", said)
	}
	if !strings.Contains(w.Out.String(), "policyFaults") {
		t.Errorf("printed %s", &w.Out)
	}
}

// slowly is a policy loader that advances the clock when it loads.
type slowly struct {
	*policies.Loader
	clock *clock.Virtual
}

func (s slowly) Open(ctx context.Context, r policies.Request) (*policies.Policy, error) {
	s.clock.AdvanceTo(s.clock.Now().Add(7 * time.Second))
	return s.Loader.Open(ctx, r)
}

func TestRun_ShowsProgressOfLongRuns(t *testing.T) {
	slow := clock.NewVirtual(time.Unix(0, 0))
	w := clitest.New(map[string]string{"s.yaml": clitest.Contested}, "compare", "s.yaml", "-p", "default", "-p", "nomad")
	w.Cores, w.Clock = 1, slow
	w.Policies = slowly{clitest.BuiltIn(), slow}
	if code := runEnv(t, w); code != cmdutil.ExitOK {
		t.Fatalf("exit %d: %s", code, &w.Err)
	}
	if said := w.Err.String(); !strings.Contains(said, " of 2 runs done; contested under ") || strings.Contains(said, "\r") {
		t.Errorf("stderr is %q", said)
	}
}
