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
	"github.com/cede-scheduler/cede/plugins/composition"
	"github.com/cede-scheduler/cede/policies/aging"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// settled is the policy of testdata/settled.yaml in Go: thrifty with the gate of gentle.
type settled struct{ thrifty }

func (settled) Info() sdk.Info {
	info := thrifty{}.Info()
	info.Name, info.Columns = "settled", info.Columns|sdk.StartColumn|sdk.TimeColumns
	return info
}

func (settled) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	return gentle{}.PriorityDelta(in, gap, recheck)
}

// gatedForms returns the names of policies with a gate, in several forms.
func gatedForms() []string {
	return []string{"protect", "aging", "protect and least-waste", "settled/native", "settled/rules", "gentle and thrifty/c"}
}

// gatedModule returns a policy of gatedForms.
func gatedModule(t testing.TB, form string) policy.Module {
	t.Helper()
	switch form {
	case "protect":
		return policy.Native(form, func() sdk.Policy { return protect.New() })
	case "aging":
		return policy.Native(form, func() sdk.Policy { return aging.New() })
	case "protect and least-waste":
		return gatedBy(t, policy.Native("protect", func() sdk.Policy { return protect.New() }),
			policy.Native("least-waste", func() sdk.Policy { return leastwaste.New() }))
	case "settled/native":
		return policy.Native("settled", func() sdk.Policy { return settled{} })
	case "gentle and thrifty/c":
		h := newHost(t)
		return gatedBy(t, testModule(t, h, "gentle", "c"), testModule(t, h, "thrifty", "c"))
	}
	return testModule(t, newHost(t), "settled", bundle.Rules)
}

// gatedBy returns the gate of one policy with the other hooks of another one.
func gatedBy(t testing.TB, gate, others policy.Module) policy.Module {
	t.Helper()
	m, err := composition.New("both", "sha256:both", []composition.Part{{Name: "gate", Module: gate}, {Name: "others", Module: others}},
		composition.Uses{Eligible: []string{"gate"}, Order: []string{"others"}, Option: []string{"others"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gatedScheduler returns a scheduler with a gated policy. The rules of default serve the hooks
// that it lacks.
func gatedScheduler(t testing.TB, module, defaults policy.Module, workers int, observe func(scheduler.Decision)) *scheduler.Scheduler {
	t.Helper()
	var versions []*policy.Version
	for _, s := range []policy.Source{{Name: policy.DefaultName, Module: defaults}, {Name: "gated", Module: module, Grants: policy.Grants}} {
		v, err := policy.NewVersion(s)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	set, err := policy.NewSet(versions...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Unpin)
	return scheduler.New(scheduler.Config{Policies: set, Workers: workers, Observe: observe})
}

func nativeDefault() policy.Module {
	return policy.Native("default", func() sdk.Policy { return rules.New() })
}

// BenchmarkGated measures one preempting placement on 5,000 equal nodes, under policies with a
// gate that depends on age.
func BenchmarkGated(b *testing.B) {
	snap, job := thriftyStore(5000, 1)
	job.Policy = "gated"
	for _, form := range gatedForms() {
		b.Run(form, func(b *testing.B) {
			s := gatedScheduler(b, gatedModule(b, form), nativeDefault(), stdruntime.GOMAXPROCS(0), nil)
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

// unbounded is a policy without the declarations from which bounds follow, so that it is called
// about every node. It also reads start times, so that no two options are equal.
type unbounded struct{ policy.Module }

func (m unbounded) Start(c *sdk.Config) (policy.Instance, error) {
	in, err := m.Module.Start(c)
	return unboundedInstance{in}, err
}

type unboundedInstance struct{ policy.Instance }

func (i unboundedInstance) Info() sdk.Info {
	info := i.Instance.Info()
	info.LeastFirst, info.Monotone = false, false
	info.Columns |= sdk.StartColumn
	return info
}

// A policy with a gate gets the same plan with bounds as without, with one worker and with two,
// for any number of instances. If instances remain unplaced, it is called again at the same time.
func TestGated_BoundsChangeNoPlan(t *testing.T) {
	for _, form := range gatedForms() {
		t.Run(form, func(t *testing.T) {
			module := gatedModule(t, form)
			var all, some gatedCalls
			full := gatedScheduler(t, unbounded{module}, unbounded{nativeDefault()}, 1, all.count)
			one := gatedScheduler(t, module, nativeDefault(), 1, some.count)
			two := gatedScheduler(t, module, nativeDefault(), 2, nil)
			evicted, queued := 0, 0
			for seed := range uint64(max(6, soak.Scale(6))) { // fewer decide too little
				snap, job := gatedCase(rand.New(rand.NewPCG(82, seed)))
				want := gatedPlan(t, full, snap, job)
				for workers, s := range []*scheduler.Scheduler{one, two} {
					if diff := cmp.Diff(want, gatedPlan(t, s, snap, job)); diff != "" {
						t.Fatalf("seed %d, %d workers: without bounds (-) and with them (+):\n%s", seed, workers+1, diff)
					}
				}
				evicted, queued = evicted+len(want.Victims), queued+want.Queued
			}
			t.Logf("%d evicted, %d unplaced; %d nodes in calls without bounds, %d with them", evicted, queued, all, some)
			if evicted == 0 || some*2 > all {
				t.Errorf("%d evicted; %d nodes in calls without bounds, %d with them", evicted, all, some)
			}
		})
	}
}

// On equal nodes a gate leaves few different options, because its own columns do not distinguish
// them. The policy for victims is called about one of equal options.
func TestGated_SelectsVictimsOfDifferentOptionsAlone(t *testing.T) {
	snap, job := thriftyStore(560, 1)
	job.Policy = "gated"
	for _, form := range []string{"protect", "aging", "protect and default"} {
		module := policy.Native(form, func() sdk.Policy { return protect.New() })
		switch form {
		case "aging":
			module = gatedModule(t, form)
		case "protect and default":
			module = gatedBy(t, module, nativeDefault())
		}
		selected := 0
		s := gatedScheduler(t, module, nativeDefault(), 2, func(d scheduler.Decision) {
			for _, call := range d.Outcome.Calls {
				if call.Hook == "SelectVictims" {
					selected += call.Options
				}
			}
		})
		if victims := thriftyVictims(t, s, snap, job); len(victims) == 0 || selected == 0 || selected > 100 {
			t.Errorf("%s: the policy selects victims of %d options of 560, and evicts %d", form, selected, len(victims))
		}
	}
}

// gatedCalls counts the nodes about which gates are called.
type gatedCalls int

func (n *gatedCalls) count(d scheduler.Decision) {
	for _, call := range d.Outcome.Calls {
		if call.Hook == "PriorityDelta" {
			*n += gatedCalls(call.Options)
		}
	}
}

// gatedCase returns a full cluster that is large enough for bounds, of instances of several
// sizes, priorities and ages, and a job that evicts there: often more than is possible.
func gatedCase(r *rand.Rand) (*state.Snapshot, *model.Job) {
	oldest := int64(300 + r.IntN(3000))
	store := coretest.FilledStoreWith(560, 10, func(j *model.Job) {
		j.Priority = int32(20 + 5*r.IntN(12))
		j.NonPreemptible, j.AllOrNone = r.IntN(10) == 0, r.IntN(20) == 0
		g := j.Groups[0]
		g.Ask.Vec[0] = int64(350 + 50*r.IntN(4))
		if r.IntN(3) == 0 {
			g.Checkpoint = int64(1+r.IntN(900)) * 1e9
		}
	}, func(a *model.Allocation) {
		a.StartTime, a.Started = -r.Int64N(oldest)*1e9, r.IntN(10) > 0
	})
	job := coretest.PreemptingJob(1 + r.IntN(12)).Change(func(j *model.Job) {
		j.Priority, j.AllAtOnce, j.SubmitTime = int32(40+r.IntN(50)), r.IntN(4) == 0, -r.Int64N(1200)*1e9
	}).Obj()
	job.Policy = "gated"
	return coretest.PutJobs(store, job), job
}

// A gatedOutcome holds the changes of a plan, and when to call the policy again.
type gatedOutcome struct {
	Nodes, Victims []string
	Queued         int
	RecheckAt      int64
}

func gatedPlan(t *testing.T, s *scheduler.Scheduler, snap *state.Snapshot, job *model.Job) (o gatedOutcome) {
	t.Helper()
	out, err := s.Process(coretest.Eval(job), snap, 1)
	if err != nil || out.Fault != nil {
		t.Fatal(err, out.Fault)
	}
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			o.Nodes = append(o.Nodes, a.ID+" on "+a.NodeID)
		}
		for _, e := range g.Evictions {
			o.Victims = append(o.Victims, e.AllocID)
		}
	}
	for _, n := range out.Queued {
		o.Queued += n
	}
	slices.Sort(o.Nodes)
	slices.Sort(o.Victims)
	o.RecheckAt = out.RecheckAt
	return o
}
