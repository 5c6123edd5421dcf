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

// Small jobs of half a node keep two nodes busy: one is submitted every five minutes
// and runs for twenty, forty in total. A large job that needs both nodes is submitted
// in between.
const (
	smallJobs  = 40
	smallEvery = 5 * time.Minute
	smallWork  = 20 * time.Minute
	largeComes = 17 * time.Minute
	largeWork  = 30 * time.Minute
)

// stream returns this workload as a scenario.
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

// resolveStream also resolves aging, configured to evict by age only.
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

// Jobs that fit do not wait for a large job that does not fit. The priority of the
// large job determines when it is placed: at once if it may evict the small ones; as
// soon as its age permits under aging; otherwise, as in Kubernetes and Nomad, when
// the small ones leave enough free capacity. No capacity is reserved for it, because
// it would be idle meanwhile.
func TestLargeJobs_DelayDependsOnPriority(t *testing.T) {
	t.Parallel()
	streamEnds := (smallJobs-1)*smallEvery + smallWork
	for _, c := range []struct {
		name, use    string
		large, small int
		want         time.Duration
	}{
		{"higher priority", "default", 50, 30, largeComes},
		{"higher priority", "kubernetes", 50, 30, largeComes},
		{"higher priority within the gap", "default", 50, 45, streamEnds},
		{"higher priority within the gap", "aging", 50, 45, largeComes + 10*time.Minute},
		{"higher priority without a gap", "kubernetes", 50, 45, largeComes},
		{"equal priority", "default", 50, 50, streamEnds},
		{"equal priority", "kubernetes", 50, 50, streamEnds},
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
						t.Errorf("%s placed at %s, want %s", p.Alloc, at, c.want)
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
				t.Errorf("placed %d of %d small jobs; unplaced: %v", len(small), smallJobs, run.Result.Unplaced)
			}
			if waits := c.want == streamEnds; waits && late > 0 {
				t.Errorf("%d small jobs were delayed although the large job was not placed", late)
			}
		})
	}
}
