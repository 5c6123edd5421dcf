package sim_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/sim"
)

// The workload as it was planned. In the recorded run, frames take longer, some of them much, and
// stop more slowly.
const planned = `version: 1
name: planned
nodes: [{id: n, count: 3, capacity: {cpu: 4000, memory: 8192}}]
jobs:
- {id: frames, type: batch, priority: 20, groups: [{name: g, count: 14, resources: {cpu: 1000, memory: 64}, duration: 100s, killTimeout: 4s}]}
- {id: tails, type: batch, priority: 30, groups: [{name: g, count: 3, resources: {cpu: 1000, memory: 64}, duration: 90s, killTimeout: 2s}]}
- {id: urgent, type: batch, priority: 80, groups: [{name: g, count: 5, resources: {cpu: 1000, memory: 64}, duration: 40s}]}
events:
- {at: 0s, submit: frames}
- {at: 3s, submit: tails}
- {at: 30s, submit: urgent}
until: 20m
`

// run runs cede sim with arguments in the working folder, and returns its standard output.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	w := clitest.New(nil, append([]string{"sim"}, args...)...)
	w.Env.Files = cmdutil.OS{}
	exit := cmdutil.Run(t.Context(), w.Env, func(env *cmdutil.Env) *cobra.Command {
		root := &cobra.Command{Use: "cede", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(sim.NewCommand(env))
		root.SetArgs(env.Args)
		return root
	})
	if exit != cmdutil.ExitOK {
		t.Fatalf("cede sim %v: exit %d:\n%s", args, exit, &w.Err)
	}
	return w.Out.Bytes()
}

// times returns the seconds of the first event of each kind, by instance. An eviction is a stop.
func times(t *testing.T, name string) map[string]map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at, kind, alloc := slices.Index(rows[0], "at_s"), slices.Index(rows[0], "kind"), slices.Index(rows[0], "alloc")
	all := map[string]map[string]float64{}
	for _, row := range rows[1:] {
		seconds, err := strconv.ParseFloat(row[at], 64)
		if err != nil {
			t.Fatal(err)
		}
		of := all[row[alloc]]
		if of == nil {
			of = map[string]float64{}
			all[row[alloc]] = of
		}
		event := strings.ReplaceAll(row[kind], "evicted", "stopped")
		if _, ok := of[event]; !ok && row[alloc] != "" {
			of[event] = seconds
		}
	}
	return all
}

// A run is recorded, the plan of it is replayed and calibrated: the errors are those of the two
// timelines, computed here from their rows.
func TestCalibrate_ReportsErrorsOfARecordedRun(t *testing.T) {
	t.Chdir(t.TempDir())
	happened := strings.NewReplacer("duration: 100s, killTimeout: 4s", "duration: 131s, killTimeout: 11s", "duration: 90s", "duration: 77s").Replace(planned)
	for name, text := range map[string]string{"plan.yaml": planned, "happened.yaml": happened} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "run", "happened.yaml", "--output-dir", "recorded")
	run(t, "run", "plan.yaml", "--output-dir", "replayed")
	var got struct {
		Measures []struct {
			Name                              string
			Pairs, OnlyRecorded, OnlyReplayed int
			AbsoluteError                     struct{ P50, P90, Max *float64 }
			Bias, RelativeError               *float64
		}
	}
	if err := json.Unmarshal(run(t, "calibrate", "plan.yaml", "recorded/timeline.csv", "-o", "json"), &got); err != nil {
		t.Fatal(err)
	}
	recorded, replayed := times(t, "recorded/timeline.csv"), times(t, "replayed/timeline.csv")
	submitted := map[string]float64{"frames": 0, "tails": 3, "urgent": 30}
	measures := map[string]func(alloc string, of map[string]float64) (float64, bool){
		"duration": func(_ string, of map[string]float64) (float64, bool) { return between(of, "started", "finished") },
		"killTime": func(_ string, of map[string]float64) (float64, bool) { return between(of, "stopped", "gone") },
		"startDelay": func(alloc string, of map[string]float64) (float64, bool) {
			job, _, _ := strings.Cut(alloc, ".")
			started, ok := of["started"]
			return started - submitted[job], ok && !strings.Contains(alloc, "#")
		},
	}
	if len(got.Measures) != len(measures) {
		t.Fatalf("%d measures", len(got.Measures))
	}
	for _, m := range got.Measures {
		var errors []float64
		var signed, sum float64
		only := [2]int{}
		for alloc, of := range recorded {
			x, ok := measures[m.Name](alloc, of)
			y, both := measures[m.Name](alloc, replayed[alloc])
			switch {
			case ok && both:
				errors, signed, sum = append(errors, math.Abs(y-x)), signed+y-x, sum+x
			case ok:
				only[0]++
			}
		}
		for alloc, of := range replayed {
			_, ok := measures[m.Name](alloc, of)
			if _, both := measures[m.Name](alloc, recorded[alloc]); ok && !both {
				only[1]++
			}
		}
		slices.Sort(errors)
		n := len(errors)
		if n == 0 || errors[n-1] == 0 && m.Name != "startDelay" {
			t.Fatalf("%s: the runs do not differ", m.Name)
		}
		absolute := 0.0
		for _, e := range errors {
			absolute += e
		}
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"pairs", float64(m.Pairs), float64(n)},
			{"only recorded", float64(m.OnlyRecorded), float64(only[0])},
			{"only replayed", float64(m.OnlyReplayed), float64(only[1])},
			{"p50", *m.AbsoluteError.P50, errors[(n+1)/2-1]},
			{"p90", *m.AbsoluteError.P90, errors[(9*n+9)/10-1]},
			{"max", *m.AbsoluteError.Max, errors[n-1]},
			{"bias", *m.Bias, signed / float64(n)},
			{"relative", *m.RelativeError, absolute / sum},
		} {
			if math.Abs(v.got-v.want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", m.Name, v.name, v.got, v.want)
			}
		}
		t.Logf("%s: %d pairs, bias %.3f s, maximum %.3f s", m.Name, n, signed/float64(n), errors[n-1])
	}
	// Replayed against its own timeline, a scenario has no error.
	var exact struct {
		Measures []struct{ AbsoluteError struct{ Max *float64 } }
	}
	if err := json.Unmarshal(run(t, "calibrate", "plan.yaml", "replayed/timeline.csv", "-o", "json"), &exact); err != nil {
		t.Fatal(err)
	}
	for _, m := range exact.Measures {
		if m.AbsoluteError.Max == nil || *m.AbsoluteError.Max > 1e-9 {
			t.Errorf("errors of a run against itself: %+v", exact)
		}
	}
}

// between returns the time between two events, and false if one is missing.
func between(of map[string]float64, from, to string) (float64, bool) {
	a, ok := of[from]
	b, both := of[to]
	return b - a, ok && both
}
