package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// fixture is a small cluster for tests that describe expectations as text.
type fixture struct {
	t     testing.TB
	store *state.Store
	sched *scheduler.Scheduler
	now   int64
}

func newFixture(t testing.TB, policies ...func() sdk.Policy) *fixture {
	policies = append(policies, func() sdk.Policy { return nomad.New() })
	w := &fixture{
		t: t, store: state.New(),
		sched: scheduler.New(scheduler.Config{Policies: coretest.Policies(policies...)}),
	}
	w.write(func(txn *state.Txn) { txn.ConfigWriter().Set(coretest.AllPreempt()) })
	return w
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *fixture) write(f func(*state.Txn)) {
	txn := w.store.Begin(w.store.Snapshot().Index() + 1)
	f(txn)
	txn.Commit()
}

// node registers a node of 10 cpu and 10 memory.
func (w *fixture) node(id string, change ...func(*model.Node)) {
	n := coretest.Node(id, 10, 10, 0)
	for _, f := range change {
		f(n)
	}
	w.write(func(txn *state.Txn) { must(txn.NodeWriter().Upsert(n)) })
}

func zone(z string) func(*model.Node) {
	return func(n *model.Node) { n.Attributes = map[string]string{"zone": z} }
}

// config changes the scheduler's configuration.
func (w *fixture) config(change func(*model.SchedulerConfig)) {
	c := *w.store.Snapshot().Config()
	change(&c)
	w.write(func(txn *state.Txn) { txn.ConfigWriter().Set(&c) })
}

// job stores a job, or a newer version of it.
func (w *fixture) job(j *model.Job) {
	if old := w.store.Snapshot().Job(j.Key()); old != nil {
		j.Succeed(old)
	}
	w.write(func(txn *state.Txn) { must(txn.JobWriter().Upsert(j)) })
}

// run puts allocations of the last group of a stored job on nodes, with explicit IDs:
// "x1" on "n1".
func (w *fixture) run(j *model.Job, pairs ...string) {
	w.job(j)
	w.write(func(txn *state.Txn) {
		for i := 0; i < len(pairs); i += 2 {
			txn.AllocWriter().Upsert(coretest.Running(pairs[i], j, 0, i/2, pairs[i+1]))
		}
	})
}

// plan plans an evaluation of a job and writes nothing.
func (w *fixture) plan(id string) *scheduler.Outcome {
	w.t.Helper()
	snap := w.store.Snapshot()
	e := &model.Evaluation{ID: "eval", Namespace: "default", JobID: id}
	if j := snap.Job(e.JobKey()); j != nil {
		e.Type, e.Priority = j.Type, j.Priority
	}
	out, err := w.sched.Process(e, snap, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	var scratch planner.Scratch
	v, err := planner.Verify(snap, out.Plan, w.now, &feasible.Verifier{}, &scratch)
	if err != nil || len(v.Rejected) > 0 {
		w.t.Fatalf("the planner rejected the plan: %+v, %v", v.Rejected, err)
	}
	return out
}

// eval plans an evaluation, writes the plan, and returns it as text.
func (w *fixture) eval(id string) string {
	w.t.Helper()
	out := w.plan(id)
	w.write(func(txn *state.Txn) {
		groups := make([]int, len(out.Plan.Groups))
		for i := range groups {
			groups[i] = i
		}
		apply.Plan(txn, w.now, out.Plan, groups)
		// Agents react at once.
		for _, g := range out.Plan.Groups {
			for _, a := range g.Placements {
				next := *txn.Alloc(a.ID)
				next.Client, next.Started, next.StartTime = model.ClientRunning, true, w.now
				txn.AllocWriter().Upsert(&next)
			}
		}
	})
	return format(out)
}

// format returns an outcome as text, in the order of nodes and allocations.
func format(out *scheduler.Outcome) string {
	var words []string
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			text := a.ID + "@" + a.NodeID
			if len(a.Preempted) > 0 {
				text += " over " + strings.Join(a.Preempted, " ")
			}
			words = append(words, text)
		}
		for _, a := range g.Updates {
			words = append(words, "keep "+a.ID)
		}
		for _, s := range g.Stops {
			text := "stop " + s.AllocID
			if s.Lost {
				text = "lost " + s.AllocID
			}
			words = append(words, text)
		}
	}
	slices.Sort(words)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range out.Queued {
			if !yield(name) {
				return
			}
		}
	}) {
		words = append(words, fmt.Sprintf("%s waits for %d", name, out.Queued[name]))
	}
	return strings.Join(words, ", ")
}

// want checks the texts of evaluations of a job.
func (w *fixture) want(id, want string) {
	w.t.Helper()
	if got := w.eval(id); got != want {
		w.t.Errorf("evaluating %s: %q, want %q", id, got, want)
	}
}

func job(id string, priority int32, cpu, memory int64) *coretest.JobBuilder {
	return coretest.Job(id).Priority(priority).Ask(cpu, memory, 0)
}
