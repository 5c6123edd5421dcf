package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// callsOf returns the number of calls of the policy in an evaluation of a job on racks of two
// full nodes each, with four racks in a zone, and the outcome.
func callsOf(t *testing.T, racks int, on *coretest.JobBuilder) (int, *scheduler.Outcome) {
	t.Helper()
	var options []int
	w := newFixture(t, func() sdk.Policy { return ahead{named{rules.New(), 0}, &options} })
	for i := range 2 * racks {
		rack := i / 2
		w.node(fmt.Sprintf("n%03d", i), func(n *model.Node) {
			n.Attributes = map[string]string{"rack": fmt.Sprint("r", rack), "zone": fmt.Sprint("z", rack/4)}
		})
		w.run(job(fmt.Sprintf("v%03d", i), 20, 10, 1).Obj(), fmt.Sprintf("v%03d", i), fmt.Sprintf("n%03d", i))
	}
	j := on.Obj()
	j.Policy = "named"
	w.job(j)
	out := w.plan(j.ID)
	return len(options), out
}

// onRacks returns a job with groups of the given counts that each share a domain of every key.
func onRacks(gang bool, keys []string, counts ...int) *coretest.JobBuilder {
	j := job("j", 50, 10, 1)
	for i, count := range counts {
		if i > 0 {
			j.Group(fmt.Sprint("g", i), count).Ask(10, 1, 0)
		}
		j.Count(count).With(func(g *model.Group) {
			app := fmt.Sprint("app", i)
			g.Labels = labels(app)
			for _, key := range keys {
				g.Colocate = append(g.Colocate, term(app, key)...)
			}
		})
	}
	return j.Change(func(j *model.Job) { j.AllAtOnce = gang })
}

// A group that fits in no domain ends the search: it is not priced again for each combination of
// domains of the groups before it.
func TestLevels_InfeasibleGroupEndsSearch(t *testing.T) {
	t.Parallel()
	for _, gang := range []bool{true, false} {
		t.Run(fmt.Sprint("gang ", gang), func(t *testing.T) {
			t.Parallel()
			calls, out := callsOf(t, 20, onRacks(gang, []string{"rack"}, 2, 2, 2, 2, 3))
			want := 0
			if !gang {
				want = 10 // two of the last group are placed node by node
			}
			nodes := nodesOf(out)
			if len(nodes) != want {
				t.Errorf("placed on %v, want %d instances", nodes, want)
			}
			if calls > 3000 {
				t.Errorf("%d calls of the policy", calls)
			}
		})
	}
}

// Groups with zones and racks of their own combine in many ways. The search is limited, also
// where no combination is complete.
func TestLevels_CombinationsAreLimited(t *testing.T) {
	t.Parallel()
	calls, out := callsOf(t, 48, onRacks(true, []string{"zone", "rack"}, 2, 2, 2, 3))
	if len(nodesOf(out)) > 0 {
		t.Errorf("placed on %v", nodesOf(out))
	}
	if calls > 5000 {
		t.Errorf("%d calls of the policy", calls)
	}
}
