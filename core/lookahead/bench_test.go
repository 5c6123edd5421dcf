package lookahead_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

type selectsAndScores interface {
	sdk.Policy
	sdk.VictimSelector
	sdk.OptionScorer
}

// wider is a policy that reads more columns under another name.
type wider struct {
	selectsAndScores
	more sdk.Columns
}

func (w wider) Info() sdk.Info {
	info := w.selectsAndScores.Info()
	info.Name, info.Columns = "wider", info.Columns|w.more
	return info
}

// BenchmarkLookAhead is construction (b), with different start times: one preempting
// placement without and with the columns. p99-ms is over the runs of a benchmark.
func BenchmarkLookAhead(b *testing.B) {
	for _, name := range []string{"default", "least-waste"} {
		for _, nodes := range []int{1000, 5000} {
			store := coretest.FilledStoreWith(nodes, 10, func(*model.Job) {}, func(a *model.Allocation) {
				a.StartTime = -int64(a.Index*7919%10007) * 1e9
				a.Index = a.Group.Count - 1 // so that jobs are complete, and victims are all that is missing
			})
			job := coretest.PreemptingJob(1).Obj()
			job.Policy = "wider"
			snap := coretest.PutJobs(store, job)
			for _, more := range []sdk.Columns{0, sdk.LookAheadColumns} {
				b.Run(fmt.Sprintf("policy=%s/nodes=%d/ahead=%v", name, nodes, more != 0), func(b *testing.B) {
					policies := coretest.Policies(func() sdk.Policy {
						if name == "default" {
							return wider{rules.New(), more}
						}
						return wider{leastwaste.New(), more}
					})
					s := lookahead.NewScheduler(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0)})
					measure(b, s, job, snap)
				})
			}
		}
	}
}

// measure makes a decision that evicts, again and again.
func measure(b *testing.B, s *scheduler.Scheduler, job *model.Job, snap *state.Snapshot) {
	b.Helper()
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		out, err := s.Process(coretest.Eval(job), snap, 1)
		took = append(took, time.Since(began))
		if err != nil || out.Fault != nil || len(out.Plan.Groups[0].Evictions) == 0 {
			b.Fatal(err, out)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkLookAhead_WithoutFuel is a decision in which every play ends because its fuel is
// exhausted: beside the 5,000 nodes of construction (b), four nodes begin chains of evictions
// that are longer than a play can pay for.
func BenchmarkLookAhead_WithoutFuel(b *testing.B) {
	const chains, length = 4, 12
	store := coretest.FilledStore(5000, 10)
	txn := store.Begin(store.Snapshot().Index() + 1)
	config := coretest.AllPreempt()
	config.PriorityDelta = new(int32(1))
	txn.ConfigWriter().Set(config)
	place := func(c, at int) string { return fmt.Sprintf("%d.%02d", c, at) }
	on := func(values ...string) func(*model.Group) {
		return func(g *model.Group) {
			g.Constraints = []model.Constraint{{Attribute: "at", Operator: model.OpIn, Values: values}}
		}
	}
	var heads []string
	for c := range chains {
		heads = append(heads, place(c, 0))
		for at := range length {
			node := coretest.Node("chain-"+place(c, at), 500, 1024, 300)
			node.Attributes = map[string]string{"at": place(c, at)}
			job := coretest.Job("job-"+place(c, at)).Priority(int32(80-at)).Ask(500, 1024, 300).With(on(place(c, at), place(c, at+1))).Obj()
			if err := errors.Join(txn.NodeWriter().Upsert(node), txn.JobWriter().Upsert(job)); err != nil {
				b.Fatal(err)
			}
			txn.AllocWriter().Upsert(coretest.Running("alloc-"+place(c, at), job, 0, 0, node.ID))
		}
	}
	txn.Commit()
	job := coretest.Job("top").Priority(90).Ask(500, 1024, 300).With(on(heads...)).Obj()
	job.Policy = "wider"
	snap := coretest.PutJobs(store, job)
	policies := coretest.Policies(func() sdk.Policy { return wider{rules.New(), sdk.LookAheadColumns} })
	s := lookahead.NewScheduler(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0), Explain: true})
	out, err := s.Process(coretest.Eval(job), snap, 1)
	if err != nil || len(out.Plan.Groups[0].Choices) == 0 {
		b.Fatal(err, out)
	}
	for _, r := range out.Plan.Groups[0].Choices[0].Ranked {
		// A play on 5,048 nodes pays for eight evaluations, and the first one evicts in its turn.
		if r.Outlook == nil || r.Outlook.Depth != 8 {
			b.Fatalf("the play about %s did not exhaust its fuel: %+v", r.NodeID, r.Outlook)
		}
	}
	measure(b, s, job, snap)
}
