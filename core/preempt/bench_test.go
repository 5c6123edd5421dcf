package preempt_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// fullNode returns one node that n candidates fill to the last unit, and a
// group of priority 90 that requests 500/1024/1000 (fixed) or half of all
// that they hold.
func fullNode(n int, half bool) (*state.Snapshot, *model.Group) {
	s := state.New()
	txn := s.Begin(1)
	var sum [3]int64
	uses := make([][3]int64, n)
	for i := range uses {
		uses[i] = [3]int64{int64(50 + 10*(i%11)), int64(128 + 32*(i%9)), int64(150 + 50*(i%7))}
		for d, use := range uses[i] {
			sum[d] += use
		}
	}
	must(txn.NodeWriter().Upsert(coretest.Node("n", sum[0], sum[1], sum[2])))
	// Instances of one group are of one size, so each has a group of its own.
	jobs := map[string]*coretest.JobBuilder{}
	for i, use := range uses {
		priority := int32(20 + 5*(i%7))
		id := fmt.Sprintf("p%d-g%d", priority, i%4)
		if jobs[id] == nil {
			jobs[id] = coretest.Job(id).Priority(priority)
			jobs[id].Obj().Groups = nil
		}
		jobs[id].Group(fmt.Sprintf("i%d", i), 1).Ask(use[0], use[1], use[2])
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		must(txn.JobWriter().Upsert(jobs[id].Obj()))
	}
	for i := range uses {
		job := jobs[fmt.Sprintf("p%d-g%d", 20+5*(i%7), i%4)].Obj()
		at := slices.IndexFunc(job.Groups, func(g *model.Group) bool { return g.Name == fmt.Sprintf("i%d", i) })
		txn.AllocWriter().Upsert(coretest.Running(fmt.Sprintf("a%03d", i), job, at, 0, "n"))
	}
	ask := [3]int64{500, 1024, 1000}
	if half {
		ask = [3]int64{sum[0] / 2, sum[1] / 2, sum[2] / 2}
	}
	job := coretest.Job("preemptor").Priority(90).Ask(ask[0], ask[1], ask[2]).Obj()
	must(txn.JobWriter().Upsert(job))
	txn.ConfigWriter().Set(coretest.AllPreempt())
	return txn.Commit(), job.Groups[0]
}

// BenchmarkA measures a search for the victims of one preemptor on one node: start,
// selection, verification and reprieve.
func BenchmarkA(b *testing.B) {
	rules := coretest.Policies().Default()
	for _, p := range []struct {
		name    string
		version *policy.Version
	}{{"default", rules}, {"nomad", coretest.Version(func() sdk.Policy { return nomad.New() })}} {
		for _, ask := range []string{"fixed", "half"} {
			for _, n := range []int{10, 50, 200} {
				b.Run(fmt.Sprintf("policy=%s/ask=%s/n=%d", p.name, ask, n), func(b *testing.B) {
					snap, group := fullNode(n, ask == "half")
					search(b, snap, preempt.Request{Group: group, Policy: p.version, Default: rules, Nodes: []int32{0}})
				})
			}
		}
	}
}

// search measures searches for the best option.
func search(b *testing.B, snap *state.Snapshot, request preempt.Request) {
	var f preempt.Finder
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Start(snap, request); err != nil {
			b.Fatal(err)
		}
		if _, ok, err := f.Best(); err != nil || !ok {
			b.Fatal("found no victims", err)
		}
		f.Release()
	}
}

// BenchmarkExplain measures what the explanation of a choice adds to a search over many
// nodes, for a policy that is called about all of them and for one that is called about
// few.
func BenchmarkExplain(b *testing.B) {
	rules := coretest.Policies().Default()
	for _, p := range []struct {
		name    string
		version *policy.Version
	}{{"default", rules}, {"nomad", coretest.Version(func() sdk.Policy { return nomad.New() })}} {
		for _, n := range []int{100, 2000} {
			snap, group := fullCluster(n)
			request := preempt.Request{Group: group, Policy: p.version, Default: rules, Nodes: make([]int32, n)}
			for i := range request.Nodes {
				request.Nodes[i] = int32(i)
			}
			for _, request.Explain = range []bool{false, true} {
				b.Run(fmt.Sprintf("policy=%s/nodes=%d/explain=%v", p.name, n, request.Explain), func(b *testing.B) { search(b, snap, request) })
			}
		}
	}
}

// fullCluster returns nodes of which each runs ten allocations of several priorities, and
// a group that needs three of them to leave.
func fullCluster(nodes int) (*state.Snapshot, *model.Group) {
	s := state.New()
	txn := s.Begin(1)
	jobs := make([]*model.Job, 7)
	for i := range jobs {
		jobs[i] = coretest.Job(fmt.Sprintf("p%d", i)).Priority(int32(20+5*i)).Ask(int64(90+i), 100, 100).Obj()
		must(txn.JobWriter().Upsert(jobs[i]))
	}
	for n := range nodes {
		id := fmt.Sprintf("n%05d", n)
		must(txn.NodeWriter().Upsert(coretest.Node(id, 1000, 1000, 1000)))
		for i := range 10 {
			txn.AllocWriter().Upsert(coretest.Running(fmt.Sprintf("%s-a%d", id, i), jobs[(n*3+i*5+n/7)%len(jobs)], 0, n*10+i, id))
		}
	}
	job := coretest.Job("preemptor").Priority(90).Ask(250, 250, 250).Obj()
	must(txn.JobWriter().Upsert(job))
	txn.ConfigWriter().Set(coretest.AllPreempt())
	return txn.Commit(), job.Groups[0]
}
