package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

var knob = []sdk.Setting{{Name: "delta", Kind: sdk.Integer, Default: "3"}}

func TestVersion_IsItsModuleAndItsConfiguration(t *testing.T) {
	t.Parallel()
	with := func(config string) func(*policy.Source) {
		return func(s *policy.Source) { s.Config = []byte(config) }
	}
	plain := version(t, &factory{name: "a", settings: knob})
	for _, same := range []string{`{}`, `{"delta":3}`, ` { "delta" : "3" } `} {
		if v := version(t, &factory{name: "a", settings: knob}, with(same)); v.ID != plain.ID {
			t.Errorf("%s is another version", same)
		}
	}
	for what, other := range map[string]*policy.Version{
		"configuration": version(t, &factory{name: "a", settings: knob}, with(`{"delta":4}`)),
		"module":        version(t, &factory{name: "b", settings: knob}),
	} {
		if other.ID == plain.ID {
			t.Errorf("another %s is the same version", what)
		}
	}
}

func TestNewVersion_RefusesByName(t *testing.T) {
	t.Parallel()
	for want, src := range map[string]policy.Source{
		"policy x: configuration: delta: invalid value \"no\": must be an integer": {Module: &factory{settings: knob}, Config: []byte(`{"delta":"no"}`)},
		"policy x: configuration: odd":                                             {Module: &factory{refuses: errors.New("odd")}},
		"policy x: unknown grant \"all\"":                                          {Module: &factory{}, Grants: []string{"all"}},
		"policy x: trap":                                                           {Module: &factory{refuses: &policy.Error{Err: errors.New("trap")}}},
	} {
		src.Name = "x"
		if _, err := policy.NewVersion(src); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestVersion_KeepsInstancesAndClosesDeadOnes(t *testing.T) {
	t.Parallel()
	f := &factory{name: "default"}
	v := version(t, f)
	a, b := acquire(t, v), acquire(t, v)
	v.Release(a)
	v.Release(b)
	v.Release(acquire(t, v))
	if f.started.Load() != 2 {
		t.Errorf("%d instances were started for two at a time", f.started.Load())
	}
	f.dies = true
	in := acquire(t, v)
	_ = in.PriorityDelta(nil, nil, nil)
	v.Release(in)
	if f.open.Load() != 1 {
		t.Errorf("%d instances are open; the dead one should be closed", f.open.Load())
	}
}

func TestVersion_FailedRestartIsAFault(t *testing.T) {
	t.Parallel()
	f := &factory{name: "default"}
	v := version(t, f)
	acquire(t, v)
	f.refuses = errors.New("no room")
	_, err := v.Acquire()
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok || fault.Policy != "default" || fault.Version != v.ID || fault.Hook != "Start" {
		t.Errorf("error %#v", err)
	}
}

func TestRecordCall_NamesTheVersionAndTheHook(t *testing.T) {
	t.Parallel()
	v := version(t, &factory{name: "default"})
	hosts := &policy.Error{Fault: policy.FaultLimit, Err: errors.New("out of fuel"), Hint: "raise it"}
	for _, err := range []error{hosts, fmt.Errorf("wrapped: %w", hosts), errors.New("own words")} {
		fault, ok := errors.AsType[*policy.Error](v.RecordCall("ScoreVictims", err))
		if !ok || fault.Policy != "default" || fault.Version != v.ID || fault.Hook != "ScoreVictims" {
			t.Errorf("%v became %#v", err, fault)
		}
	}
	if hosts.Policy != "" {
		t.Error("the host's error was changed")
	}
	if calls, faults := v.Stats(); calls != 3 || faults != 3 {
		t.Errorf("counted %d calls and %d faults", calls, faults)
	}
}

func TestObserve_ReportsSubjectAndCost(t *testing.T) {
	t.Parallel()
	f := &factory{name: "default", fails: errors.New("no")}
	var calls []policy.Call
	v := version(t, f, func(s *policy.Source) { s.Observe = func(c policy.Call) { calls = append(calls, c) } })
	in := acquire(t, v)
	err := in.PriorityDelta(&sdk.Candidates{FirstRow: []int32{0, 2, 3}, Rows: sdk.Rows{Priority: make([]int32, 3)}}, nil, nil)
	v.Release(in)
	if !errors.Is(err, f.fails) || len(calls) != 1 {
		t.Fatalf("%v, %d calls", err, len(calls))
	}
	c := calls[0]
	if c.Policy != "default" || c.Version != v.ID || c.Digest != "sha256:default" || c.Hook != "PriorityDelta" ||
		c.Options != 2 || c.Rows != 3 || c.Fuel != 7 || !errors.Is(c.Err, f.fails) || c.Duration < 0 {
		t.Errorf("told %+v", c)
	}
	if again := acquire(t, v); f.started.Load() != 1 {
		t.Error("the instance was not kept", again)
	}
}
