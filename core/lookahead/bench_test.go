package lookahead_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
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
				})
			}
		}
	}
}
