package toolchain

import (
	"math/rand/v2"
	stdruntime "runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/plugins/bundle"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// thrifty is the policy of testdata/thrifty.yaml in Go.
type thrifty struct{}

func (thrifty) Info() sdk.Info {
	return sdk.Info{Name: "thrifty", Delta: 10, Ascending: true, Monotone: true, Columns: sdk.LostWorkColumn}
}

func (thrifty) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for row, lost := range in.Rows.LostWork {
		out.Tier[row], out.Score[row] = int64(in.Rows.Priority[row]), float64(lost)
	}
	return nil
}

func (thrifty) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	copy(out.Tiers[1], in.LostWork)
	for i, priority := range in.HighestPriority {
		out.Tiers[0][i] = int64(priority)
	}
	return nil
}

// thriftyForms returns least-waste, and thrifty in each of its forms.
func thriftyForms() []string { return []string{"least-waste", "native", "c", bundle.Rules} }

// thriftyModule returns a policy of thriftyForms.
func thriftyModule(t testing.TB, form string) policy.Module {
	switch form {
	case "least-waste":
		return policy.Native("least-waste", func() sdk.Policy { return leastwaste.New() })
	case "native":
		return policy.Native("thrifty", func() sdk.Policy { return thrifty{} })
	}
	return testModule(t, newHost(t), "thrifty", form)
}

// thriftyScheduler returns a scheduler whose default policy is one of thriftyForms.
func thriftyScheduler(t testing.TB, form string, workers int) *scheduler.Scheduler {
	v, err := policy.NewVersion(policy.Source{Name: "bench", Module: thriftyModule(t, form), Grants: policy.Grants})
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.NewSet(coretest.Policies().Default(), v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Unpin)
	return scheduler.New(scheduler.Config{Policies: set.Override(v), Workers: workers})
}

// thriftyStore is a full cluster of equal nodes whose instances started at different times,
// and a job that evicts there.
func thriftyStore(nodes int, seed uint64) (*state.Snapshot, *model.Job) {
	r := rand.New(rand.NewPCG(seed, 18))
	store := coretest.FilledStoreWith(nodes, 10, func(*model.Job) {}, func(a *model.Allocation) {
		a.StartTime = -r.Int64N(10_000) * 1e9
	})
	job := coretest.PreemptingJob(1).Obj()
	return coretest.PutJobs(store, job), job
}

// The forms of thrifty evict the same instances with one worker and with two, although the host
// calls them about few nodes.
func TestThrifty_EvictsTheSameInEveryForm(t *testing.T) {
	native := thriftyScheduler(t, "native", 1)
	for _, form := range []string{"c", bundle.Rules} {
		t.Run(form, func(t *testing.T) {
			guest := thriftyScheduler(t, form, 2)
			for seed := range uint64(3) {
				snap, job := thriftyStore(1100, seed)
				want, got := thriftyVictims(t, native, snap, job), thriftyVictims(t, guest, snap, job)
				if len(got) == 0 || !cmp.Equal(want, got) {
					t.Errorf("seed %d: %v are evicted, %v by the native form", seed, got, want)
				}
			}
		})
	}
}

// thriftyVictims returns the instances that are evicted for a job.
func thriftyVictims(t *testing.T, s *scheduler.Scheduler, snap *state.Snapshot, job *model.Job) (ids []string) {
	t.Helper()
	out, err := s.Process(coretest.Eval(job), snap, 1)
	if err != nil || out.Fault != nil || !out.Placed() {
		t.Fatal(err, out)
	}
	for _, e := range out.Plan.Groups[0].Evictions {
		ids = append(ids, e.AllocID)
	}
	slices.Sort(ids)
	return ids
}

// BenchmarkThrifty measures one preempting placement on 5,000 equal nodes, under policies that
// read lost work, so that no node shares the answer of another one.
func BenchmarkThrifty(b *testing.B) {
	snap, job := thriftyStore(5000, 1)
	for _, form := range thriftyForms() {
		b.Run(form, func(b *testing.B) {
			s := thriftyScheduler(b, form, stdruntime.GOMAXPROCS(0))
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Process(coretest.Eval(job), snap, 1)
				if err != nil || !out.Placed() || out.Fault != nil || len(out.Plan.Groups[0].Evictions) == 0 {
					b.Fatal(err, out)
				}
			}
		})
	}
}
