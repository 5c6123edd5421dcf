package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/policies/karmada"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// restartingPolicy evicts no bindings, and causes another evaluation whenever it is
// called.
type restartingPolicy struct {
	*karmada.Policy
	again func()
}

func (p restartingPolicy) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	p.again()
	for range in.Len() {
		out.Next()
	}
	return nil
}

const contested = `
version: 1
name: contested
scheduler: {policy: restless}
clusters: [{id: m1, capacity: {cpu: 1000}}]
bindings:
- {id: low, priority: 1, resources: {cpu: 1000}}
- {id: a, priority: 9, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
- {id: b, priority: 9, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: l, binding: low, clusters: {m1: 1}}]
events: [{at: 5s, submit: a}, {at: 5s, submit: b}]
`

// newLivelockedEngine returns an engine in which a and b are evaluated endlessly.
func newLivelockedEngine(t *testing.T) *engine {
	f, err := scenario.Decode("contested", strings.NewReader(contested))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := scenario.Resolve(f)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{file: resolved, waiting: lifetime.NewWaiting(), jobs: newJobStats(), bound: newBindings()}
	asked := 0
	e.opts.Resolve = func(spec PolicySpec) (*policy.Version, error) {
		return policy.NewVersion(policy.Source{Name: spec.Name, Module: policy.Native(policy.BuiltinDigest(spec.Use, "test"), func() sdk.Policy {
			return restartingPolicy{karmada.New(), func() {
				asked++
				if err := e.submitBinding(resolved.Bindings[1+asked%2]); err != nil {
					t.Error(err)
				}
			}}
		})})
	}
	if err := e.loadPolicies(); err != nil {
		t.Fatal(err)
	}
	if err := e.assemble(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestPlay_FailsOnLivelock(t *testing.T) {
	t.Parallel()
	e := newLivelockedEngine(t)
	e.livelock.most = 100 // the scenario contains nothing else
	err := e.play(t.Context())
	endless, ok := errors.AsType[*EndlessError](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	a, b := model.JobKey{Namespace: "default", ID: "a"}, model.JobKey{Namespace: "default", ID: "b"}
	if endless.At != At(5e9) || len(endless.Of) != 2 || endless.Of[a] == 0 || endless.Of[b] == 0 || endless.Evaluations < 100 {
		t.Errorf("%+v", endless)
	}
	if text := err.Error(); !strings.Contains(text, "at 5s") || !strings.Contains(text, "default/a") || !strings.Contains(text, "default/b") {
		t.Error(text)
	}
}

// Evaluations are counted per instant: the counter resets when time advances.
func TestLivelockGuard_ResetsWhenTimeAdvances(t *testing.T) {
	t.Parallel()
	r := livelockGuard{most: 3}
	for at := range int64(5) {
		for range 3 {
			if err := r.count(at, &model.Evaluation{JobID: "j"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.count(4, &model.Evaluation{JobID: "j"}); err == nil {
		t.Error("no error for the fourth evaluation at one instant")
	}
}
