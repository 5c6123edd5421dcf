package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/policies/aging"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Small jobs of half a node keep two nodes full: one comes every five minutes and works
// for twenty, forty of them. Among them comes a job that needs both nodes whole.
const (
	smallJobs  = 40
	smallEvery = 5 * time.Minute
	smallWork  = 20 * time.Minute
	largeComes = 17 * time.Minute
	largeWork  = 30 * time.Minute
)

// stream is that, as a scenario.
func stream(use string, large, small int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scheduler: {policy: it}\npolicies: [{name: it, use: %s}]\n", use)
	b.WriteString("nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]\njobs:\n")
	one := "  - {id: %s, type: batch, priority: %d, allAtOnce: %t, groups: [{name: g, count: %d, resources: {cpu: %d}, duration: %s, checkpoint: 1s}]}\n"
	fmt.Fprintf(&b, one, "large", large, true, 2, 10, largeWork)
	for k := range smallJobs {
		fmt.Fprintf(&b, one, fmt.Sprint("s", k), small, false, 1, 5, smallWork)
	}
	b.WriteString("events:\n")
	for k := range smallJobs {
		if k == int((largeComes+smallEvery-1)/smallEvery) {
			fmt.Fprintf(&b, "  - {at: %s, submit: large}\n", largeComes)
		}
		fmt.Fprintf(&b, "  - {at: %s, submit: s%d}\n", time.Duration(k)*smallEvery, k)
	}
	return b.String()
}

// resolveStream also knows aging, where work is evicted by age whenever it started.
func resolveStream(spec sim.PolicySpec) (*policy.Version, error) {
	if spec.Use != "aging" {
		return resolve(spec)
	}
	config, err := json.Marshal(map[string]any{"settle": "0s"})
	if err != nil {
		return nil, err
	}
	return policy.NewVersion(policy.Source{
		Name: spec.Name, Config: config,
		Module: policy.Native(policy.BuiltinDigest(spec.Use, "test"), func() sdk.Policy { return aging.New() }),
	})
}

// Nobody who fits waits for a large job that does not. When that gets its turn goes by
// its priority: at once where it may evict what is in its way, as soon as its age lets it
// under aging, and else, as in Kubernetes and Nomad, when the small ones leave room: no
// room is kept for it, which would be empty meanwhile.
func TestLargeJobs_WaitAsLongAsPrioritySays(t *testing.T) {
	streamEnds := (smallJobs-1)*smallEvery + smallWork
	for _, c := range []struct {
		name, use    string
		large, small int
		want         time.Duration
	}{
		{"more important", "default", 50, 30, largeComes},
		{"more important", "kubernetes", 50, 30, largeComes},
		{"more important by less than the gap", "default", 50, 45, streamEnds},
		{"more important by less than the gap", "aging", 50, 45, largeComes + 10*time.Minute},
		{"more important, and there is no gap", "kubernetes", 50, 45, largeComes},
		{"as important", "default", 50, 50, streamEnds},
		{"as important", "kubernetes", 50, 50, streamEnds},
	} {
		t.Run(c.name+" under "+c.use, func(t *testing.T) {
			run, err := sim.Play(t.Context(), decode(t, stream(c.use, c.large, c.small)), sim.Options{Resolve: resolveStream})
			if err != nil {
				t.Fatal(err)
			}
			small, late := map[string]bool{}, 0
			for _, p := range run.Result.Placements {
				at := time.Duration(p.At)
				if p.Job == "large" {
					if at != c.want {
						t.Errorf("%s is placed at %s, want %s", p.Alloc, at, c.want)
					}
					continue
				}
				var k int
				if _, err := fmt.Sscanf(p.Job, "s%d", &k); err != nil {
					t.Fatal(err)
				}
				if !small[p.Job] && at != time.Duration(k)*smallEvery {
					late++
				}
				small[p.Job] = true
			}
			if len(small) != smallJobs || len(run.Result.Unplaced) > 0 {
				t.Errorf("%d of %d small ones were placed, and %v were not", len(small), smallJobs, run.Result.Unplaced)
			}
			if waits := c.want == streamEnds; waits && late > 0 {
				t.Errorf("%d small ones are late, and the large one was not there yet", late)
			}
		})
	}
}
