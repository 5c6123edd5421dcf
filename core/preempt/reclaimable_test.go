package preempt_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A search of many nodes, which uses reclaimable, returns the same as searches of few
// nodes, which evaluate every node: also after changes, for other requests and priorities.
func TestFinder_ReclaimableEqualsFullEvaluation(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	for name, make := range map[string]func() victimPolicy{
		"default": func() victimPolicy { return rules.New() },
		"nomad":   func() victimPolicy { return nomad.New() },
	} {
		t.Run(name, func(t *testing.T) {
			rows := 0
			version := coretest.Version(func() sdk.Policy { return reader{make(), sdk.StartColumn, &rows} })
			var many, few preempt.Finder
			rapid.Check(t, func(t *rapid.T) {
				d := drawSource(t)
				snap, group := uniformCluster(d, 600)
				for range 3 {
					job := *group.Job
					job.Groups = []*model.Group{{Name: "g", Count: 1, Resources: d.resources(resourceNames[:2], 1, 9, 9)}}
					job.Priority = oneOf[int32](d, 25, 50, 50)
					job.Compile(snap.Dims())
					all := outcomesOf(t, &many, snap, job.Groups[0], version, snap.NodeOrder())
					for from := 0; from < len(all); from += 100 {
						part := outcomesOf(t, &few, snap, job.Groups[0], version, snap.NodeOrder()[from:from+100])
						if got, want := fmt.Sprint(all[from:from+100]), fmt.Sprint(part); got != want {
							t.Fatalf("search of all nodes\n%s\nof a few\n%s", got, want)
						}
					}
					snap = perturbed(d, snap)
				}
			})
		})
	}
}

// outcomesOf returns the outcome and the victims of each node in a search.
func outcomesOf(t tb, f *preempt.Finder, snap *state.Snapshot, g *model.Group, v *policy.Version, nodes []int32) []string {
	if err := f.Start(snap, preempt.Request{
		Group: g, Policy: v, Default: coretest.Policies().Default(), Nodes: nodes, Now: 1000,
	}); err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	victims := map[int32]string{}
	if err := f.EachNode(func(c preempt.Choice) {
		for _, a := range c.Victims {
			victims[c.Pos] += " " + a.ID
		}
	}); err != nil {
		t.Fatal(err)
	}
	outcomes, of := f.Outcomes()
	lines := make([]string, len(of))
	for k, pos := range of {
		lines[k] = outcomes[k].String() + victims[pos]
	}
	return lines
}

// perturbed returns a snapshot without some allocations, and with some nodes resized.
func perturbed(d source, snap *state.Snapshot) *state.Snapshot {
	txn := snap.Fork(snap.Index() + 1)
	for range 40 {
		chunk := snap.Chunk(d.IntN(snap.ChunkCount()))
		at := d.IntN(chunk.Len())
		if rows := chunk.Rows(at); len(rows) > 0 && d.oneIn(2) {
			gone := *rows[d.IntN(len(rows))].Alloc
			gone.Desired = model.DesiredStop
			txn.AllocWriter().Upsert(&gone)
			continue
		}
		larger := *chunk.Node(at)
		larger.Capacity = model.Resources{"cpu": int64(d.in(4, 12)), "memory": int64(d.in(4, 12))}
		must(txn.NodeWriter().Upsert(&larger))
	}
	return txn.Snapshot()
}
