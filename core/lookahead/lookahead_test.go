package lookahead_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A prediction is an option that was played.
type prediction struct {
	now             int64
	job, node       string
	lostWork, delay int64
	depth           int32
}

// reader wraps the policy default. It records the columns of look-ahead and ignores them,
// so that plays and the simulation decide alike.
type reader struct {
	*rules.Default
	calls *[][]prediction // the options of every call about options that were played
}

func (r *reader) Info() sdk.Info {
	info := r.Default.Info()
	info.Columns |= sdk.LookAheadColumns | sdk.PlaceColumn
	return info
}

func (r *reader) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	if slices.Max(in.CascadeDepth) > 0 {
		var list []prediction
		for i := range in.Len() {
			list = append(list, prediction{in.Now, in.Preemptor.Job, in.Strings[in.Place[i]], in.ExpectedLostWork[i], in.ExpectedDelay[i], in.CascadeDepth[i]})
		}
		*r.calls = append(*r.calls, list)
	}
	return r.Default.ScoreOptions(in, out)
}

// playReader plays a scenario under reader. It returns the recorded columns and the timeline.
func playReader(t *testing.T, text string, workers int) (run *sim.Run, calls [][]prediction, events []timeline.Event) {
	t.Helper()
	f, err := scenario.Decode("test.yaml", strings.NewReader("version: 1\nname: test\n"+text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	run, err = sim.Play(t.Context(), f, sim.Options{
		Workers: workers, Timeline: func(e timeline.Event) { events = append(events, e) },
		Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
			return policy.NewVersion(policy.Source{
				Name: spec.Name, Module: policy.Native(policy.BuiltinDigest("reader", "1"), func() sdk.Policy { return &reader{rules.New(), &calls} }),
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return run, calls, events
}

// happened returns the outcome of the simulation from a time until every victim runs again, or
// the horizon.
func happened(run *sim.Run, events []timeline.Event, from int64) (p prediction) {
	horizon := from + int64(lookahead.Horizon)
	end := horizon
	// Names of allocations are job.group[index], with #n behind the name of the n-th replacement.
	instance := func(alloc string) string { name, _, _ := strings.Cut(alloc, "#"); return name }
	absent, depths, chains := map[string]int64{}, map[string]int32{}, map[string]int32{}
	chain := func(alloc string) int32 { // ends the chain that led to a placement
		if _, ok := chains[alloc]; !ok {
			chains[alloc] = depths[instance(alloc)] + 1
			delete(depths, instance(alloc))
		}
		return chains[alloc]
	}
	for _, e := range events {
		if e.At < from || e.At > end {
			continue
		}
		name := instance(e.Alloc)
		switch e.Kind {
		case timeline.Rest:
			if len(absent) == 0 {
				end = e.At
			}
		case timeline.Placed:
			chain(e.Alloc)
		case timeline.Evicted:
			if _, ok := absent[name]; !ok {
				absent[name] = e.At
			}
			depths[name] = chain(e.By)
			p.depth = max(p.depth, depths[name])
		case timeline.Started:
			if since, ok := absent[name]; ok {
				p.delay += e.At - since
				delete(absent, name)
			}
		}
	}
	for _, e := range run.Result.Evicted {
		if int64(e.At) >= from && int64(e.At) <= end {
			p.lostWork += int64(e.LostWork)
		}
	}
	for _, since := range absent {
		p.delay += horizon - since
	}
	return p
}

// randomScenario returns a full cluster of jobs of several priorities, some of which end
// within the horizon, perhaps with waiting jobs, on which one job of higher priority arrives.
func randomScenario(r *rand.Rand) string {
	var jobs, events strings.Builder
	nodes := 3 + r.IntN(4)
	group := func(id, kind string, priority, count, cpu int) {
		fmt.Fprintf(&jobs, "  - {id: %s, type: %s, priority: %d, groups: [{name: g, count: %d, resources: {cpu: %d}", id, kind, priority, count, cpu)
		if r.IntN(2) == 0 {
			fmt.Fprintf(&jobs, ", duration: %ds", 600+r.IntN(1200))
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&jobs, ", killTimeout: %ds", 1+r.IntN(40))
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&jobs, ", checkpoint: %ds", 30+r.IntN(90))
		}
		jobs.WriteString("}]}\n")
	}
	fmt.Fprintf(&jobs, "nodes:\n")
	for n := range nodes {
		fmt.Fprintf(&jobs, "  - {id: n%d, capacity: {cpu: %d}}\n", n, 8+2*r.IntN(3))
	}
	jobs.WriteString("jobs:\n")
	at := 0
	// Priorities differ, because the snapshot does not hold the order in which waiting jobs of
	// equal priority are queued.
	priorities := r.Perm(12)
	for k := range 4 + r.IntN(8) {
		group(fmt.Sprint("j", k), []string{"batch", "service"}[r.IntN(2)], 10+5*priorities[k], 1+r.IntN(3), 2+r.IntN(4))
		at += r.IntN(45)
		fmt.Fprintf(&events, "  - {at: %ds, submit: j%d}\n", at, k)
	}
	group("top", "service", 90, 1+r.IntN(2), 4+r.IntN(4))
	fmt.Fprintf(&events, "  - {at: 500s, submit: top}\n")
	return jobs.String() + "events:\n" + events.String() + "until: 3000s\n"
}

// If nothing else arrives, the prediction for the chosen option comes true. A
// few predictions differ, because snapshots do not hold which capacity the queue has
// offered to waiting jobs before.
func TestOutlook_EqualsContinuation(t *testing.T) {
	t.Parallel()
	compared, chains, different := 0, 0, 0
	for seed := range uint64(soak.Count(300, 5_000)) {
		text := randomScenario(rand.New(rand.NewPCG(17, seed)))
		run, calls, events := playReader(t, text, 1)
		at := int64(500 * time.Second)
		first := slices.IndexFunc(calls, func(c []prediction) bool { return c[0].now == at && c[0].job == "top" })
		if first < 0 {
			continue // it had capacity, no choice, or nothing to evict
		}
		placed := slices.IndexFunc(run.Result.Placements, func(p sim.Placement) bool { return int64(p.At) == at && p.Job == "top" && len(p.Preempted) > 0 })
		if placed < 0 {
			t.Fatalf("seed %d: options were played, and top evicts nothing", seed)
		}
		chosen := slices.IndexFunc(calls[first], func(p prediction) bool { return p.node == run.Result.Placements[placed].Node })
		if chosen < 0 {
			continue // further instances decided about the first node with evictions
		}
		got := calls[first][chosen]
		want := happened(run, events, at)
		want.now, want.job, want.node = got.now, got.job, got.node
		if got != want {
			t.Logf("seed %d: predicted %+v, happened %+v", seed, got, want)
			different++
		}
		compared++
		if got.depth > 1 {
			chains++
		}
	}
	t.Logf("%d predictions, %d with chains, %d different", compared, chains, different)
	if different*100 > compared {
		t.Errorf("%d of %d predictions differ from the simulation: more than 1%%", different, compared)
	}
	if compared < 20 || chains < 5 {
		t.Errorf("compared %d predictions, %d of them with chains of evictions: that shows too little", compared, chains)
	}
}

// The same scenario has the same predictions with any number of workers.
func TestOutlook_IsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		text := randomScenario(rand.New(rand.NewPCG(17, seed)))
		_, one, _ := playReader(t, text, 1)
		_, four, _ := playReader(t, text, 4)
		if !slices.EqualFunc(one, four, slices.Equal[[]prediction]) {
			t.Fatalf("seed %d: %v with one worker, %v with four", seed, one, four)
		}
	}
}
