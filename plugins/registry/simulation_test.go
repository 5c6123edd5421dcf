//go:build unix

package registry_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/record"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/registry/testdata/foresight"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A playedRun is a run with everything that it reported.
type playedRun struct {
	*sim.Run
	Events    []timeline.Event
	evaluated []sim.Evaluated
}

// playForesight plays a scenario with the policy foresight in one of its forms.
func playForesight(t *testing.T, f *scenario.File, v *policy.Version) *playedRun {
	t.Helper()
	p := &playedRun{}
	run, err := sim.Play(t.Context(), f, sim.Options{
		Policy: "foresight", Explain: true,
		Timeline:  func(e timeline.Event) { p.Events = append(p.Events, e) },
		Evaluated: func(e sim.Evaluated) { p.evaluated = append(p.evaluated, e) },
		Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
			if spec.Name == "foresight" {
				return v, nil
			}
			m, _, _ := builtinOf(policy.DefaultName)
			return policy.NewVersion(policy.Source{Name: policy.DefaultName, Module: m})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Faults) > 0 {
		t.Fatal(run.Faults)
	}
	p.Run = run
	return p
}

// report returns the lines of everything that a run has decided and measured, without the ID
// of the version of the policy.
func (p *playedRun) report(t *testing.T) []string {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		Result *sim.Result
		Events []timeline.Event
		Series any
	}{p.Result, p.Events, p.Series}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.ReplaceAll(string(text), p.Result.PolicyVersion, "ID"), "\n")
}

// firstDifference returns the first line in which two reports differ, or "".
func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %s\nand %s", i, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d lines", len(a), len(b))
	}
	return ""
}

// drawn returns a scenario of a preset, with moves, that ends early.
func drawn(t *testing.T, preset string, seed uint64) *scenario.File {
	t.Helper()
	spec, err := generate.Open(preset)
	if err != nil {
		t.Fatal(err)
	}
	spec.Seed = seed
	f, _, err := generate.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	f.Scheduler.Moves = &scenario.Moves{PerJob: 2, Window: scenario.Duration(3600e9)}
	minutes := 45
	if soak.Full() {
		minutes = 300
	}
	f.Until = new(scenario.Duration(minutes * 60e9))
	return f
}

// A policy that reads the columns of relocation and look-ahead decides a whole simulation
// identically when it is linked in, a module and a process: every decision with its reasons, event
// and metric. The replay of a recording of the run is exact.
func TestForesight_PlaysIdenticallyInEveryForm(t *testing.T) {
	t.Parallel()
	if soak.Race {
		t.Skip("compiling Go modules is slow under the race detector")
	}
	dir := t.TempDir()
	goProgram(t, "testdata/foresight/guest", filepath.Join(dir, "foresight.wasm"), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	goProgram(t, "testdata/foresight/guest", filepath.Join(dir, "foresight"))
	loader := registry.NewLoader(realHosts(t))
	native := func() *policy.Version {
		v, err := policy.NewVersion(policy.Source{Name: "foresight", Module: policy.Native("sha256:foresight", foresight.New)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	presets := []string{"racks"}
	if soak.Full() {
		presets = append(presets, "gangs", "pinned")
	}
	for n := range soak.Count(1, 4) {
		for _, preset := range presets {
			f := drawn(t, preset, uint64(n+1))
			first := playForesight(t, f, native())
			played, want := 0, first.report(t)
			for i := range first.Result.Decisions {
				for _, o := range first.Result.Decisions[i].Why.Ranked {
					if o.Outlook != nil {
						played++
					}
				}
			}
			t.Logf("%s: %d placements, %d evicted, %d moved, %d options played", preset, len(first.Result.Placements), len(first.Result.Evicted), len(first.Result.Moved), played)
			if played < 10 {
				t.Errorf("%s: %d options were played: that shows too little", preset, played)
			}
			for _, file := range []string{"foresight.wasm", "foresight"} {
				v, err := loader.Load(t.Context(), registry.Spec{Name: "foresight", Use: filepath.Join(dir, file)})
				if err != nil {
					t.Fatal(err)
				}
				if diff := firstDifference(want, playForesight(t, f, v).report(t)); diff != "" {
					t.Errorf("%s, seed %d: linked in and %s differ in %s", preset, f.Seed, file, diff)
				}
			}
			recorded, notes := recordingOf(first, f).Scenario()
			if len(notes) > 0 {
				t.Errorf("%s: notes %v", preset, notes)
			}
			again := playForesight(t, recorded, native())
			if diff := sim.CheckExpect(recorded, again.Result); len(diff) > 0 || len(*recorded.Expect.Placements) == 0 {
				t.Errorf("%s, seed %d: replay of %d placements: %v", preset, f.Seed, len(*recorded.Expect.Placements), diff)
			}
		}
	}
}

// recordingOf returns the recording of a run: from its first evaluation to the last instant
// with one, as `cede sim record` makes it of the states and events of a server.
func recordingOf(p *playedRun, f *scenario.File) *record.Recording {
	first, last := p.evaluated[0], len(p.evaluated)-1
	for last > 0 && p.evaluated[last-1].Now == p.evaluated[last].Now {
		last--
	}
	r := &record.Recording{
		Name: "recorded", Began: first.Now, Begin: first.Before, Ended: p.evaluated[last].Now - 1, End: p.evaluated[last].Before,
	}
	for _, e := range f.Events {
		if int64(e.At) > r.Began && int64(e.At) <= r.Ended {
			for job := range r.End.Jobs() {
				if job.ID == e.Submit {
					r.Events = append(r.Events, record.Event{Kind: "JobRegistered", Namespace: job.Namespace, ID: job.ID, Version: job.Version, Time: int64(e.At)})
				}
			}
		}
	}
	return r
}
