package wasm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// yard is a fixture of four full nodes and a job of priority 50 that requires 6 of the 10
// units of each: n1 runs a and b of priority 10 and 20, n2 runs c of 10, n3 runs d of 80,
// n4 runs e of 10 and f of 80.
type yard struct {
	snap  *state.Snapshot
	asker *model.Job
}

func newYard(t testing.TB, policyName string) *yard {
	t.Helper()
	store := state.New()
	txn := store.Begin(1)
	for _, id := range []string{"n1", "n2", "n3", "n4"} {
		check(t, txn.NodeWriter().Upsert(coretest.Node(id, 10, 10, 0)))
	}
	for _, a := range []struct {
		id       string
		priority int32
		cpu      int64
		node     string
	}{{"a", 10, 5, "n1"}, {"b", 20, 5, "n1"}, {"c", 10, 10, "n2"}, {"d", 80, 10, "n3"}, {"e", 10, 5, "n4"}, {"f", 80, 5, "n4"}} {
		job := coretest.Job("job-"+a.id).Priority(a.priority).Ask(a.cpu, 0, 0).Obj()
		check(t, txn.JobWriter().Upsert(job))
		txn.AllocWriter().Upsert(coretest.Running(a.id, job, 0, 0, a.node))
	}
	asker := coretest.Job("asker").Priority(50).Ask(6, 0, 0).Change(func(j *model.Job) { j.Policy = policyName }).Obj()
	check(t, txn.JobWriter().Upsert(asker))
	txn.ConfigWriter().Set(coretest.AllPreempt())
	return &yard{snap: txn.Commit(), asker: asker}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// find returns the victims that a version chooses on each node.
func (y *yard) find(v, fallback *policy.Version) ([]string, error) {
	var f preempt.Finder
	err := f.Start(y.snap, preempt.Request{
		Group: y.asker.Groups[0], Now: 1000, Algorithm: model.Binpack, Policy: v, Default: fallback,
		Nodes: y.snap.NodeOrder(), Evictions: &protect.EvictionCounts{},
	})
	defer f.Release()
	if err != nil {
		return nil, err
	}
	var found []string
	err = f.EachNode(func(c preempt.Choice) {
		found = append(found, y.snap.NodeAt(c.Pos).ID+": "+strings.Join(ids(c.Victims), " "))
	})
	return found, err
}

func ids(allocs []*model.Allocation) []string {
	var list []string
	for _, a := range allocs {
		list = append(list, a.ID)
	}
	slices.Sort(list)
	return list
}

// plan returns the evictions that the scheduler plans, or the fault if there are none.
func (y *yard) plan(t testing.TB, set *policy.Set) (evicted []string, fault error) {
	t.Helper()
	s := scheduler.New(scheduler.Config{Policies: set, Forget: true})
	out, err := s.Process(coretest.Eval(y.asker), y.snap, 1000)
	check(t, err)
	for _, g := range out.Plan.Groups {
		for _, e := range g.Evictions {
			evicted = append(evicted, e.AllocID)
		}
	}
	return evicted, out.Fault
}
