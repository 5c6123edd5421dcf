package scheduler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// quarter is a cluster of a few full nodes in two zones, with a job that must be
// co-located with others, some of which have a lower priority.
type quarter struct {
	nodes  []*model.Node
	allocs []*model.Allocation
	job    *model.Job
}

func rollQuarter(d *rand.Rand) *quarter {
	q := &quarter{}
	for i := range 2 + d.IntN(3) {
		n := coretest.Node(fmt.Sprint("n", i), 10, 10, 0)
		if zone := d.IntN(5); zone < 4 { // else it is in no zone
			n.Attributes = map[string]string{"zone": []string{"a", "a", "b", "b"}[zone]}
		}
		q.nodes = append(q.nodes, n)
		for left := int64(10); left > 0; {
			cpu := min(left, int64(2+d.IntN(5)))
			if left -= cpu; d.IntN(8) == 0 {
				continue
			}
			id := fmt.Sprintf("v%d-%d", i, left)
			app := []string{"cache", "cache", "other"}[d.IntN(3)]
			a := coretest.Running(id, job(id, []int32{1, 2, 3, 50, 60}[d.IntN(5)], cpu, 1).With(func(g *model.Group) { g.Labels = labels(app) }).Change(func(j *model.Job) {
				j.NonPreemptible = d.IntN(10) == 0
			}).Obj(), 0, 0, n.ID)
			a.StartTime = -int64(100*d.IntN(50)+len(q.allocs)) * 1e9 // all start times differ
			q.allocs = append(q.allocs, a)
		}
	}
	q.job = job("j", 50, int64(2+d.IntN(6)), 1).With(func(g *model.Group) {
		g.Labels = labels([]string{"cache", "j"}[d.IntN(2)])
		g.Colocate = term("cache", []string{"zone", "zone", "node"}[d.IntN(3)])
	}).Obj()
	return q
}

func (q *quarter) String() string {
	g := q.job.Groups[0]
	text := fmt.Sprintf("j, %v, requests %d, co-located with cache by %s\n", g.Labels, g.Resources["cpu"], g.Colocate[0].TopologyKey)
	for _, a := range q.allocs {
		domain, _ := q.domain(q.nodes[slices.IndexFunc(q.nodes, func(n *model.Node) bool { return n.ID == a.NodeID })])
		text += fmt.Sprintf("%s %v of %d in %s, %d cpu, since %d, stays %t\n", a.ID, a.Group.Labels, a.Job.Priority, domain, a.Group.Resources["cpu"], a.StartTime, a.Job.NonPreemptible)
	}
	return text
}

func ids(list []*model.Allocation) (names []string) {
	for _, a := range list {
		names = append(names, a.ID)
	}
	return names
}

func (q *quarter) domain(n *model.Node) (string, bool) {
	if q.job.Groups[0].Colocate[0].TopologyKey == "node" {
		return n.ID, true
	}
	zone, ok := n.Attributes["zone"]
	return zone, ok
}

// allowsColocation reports whether the job's co-location terms hold on a node without
// some allocations.
func (q *quarter) allowsColocation(n *model.Node, gone []*model.Allocation) bool {
	domain, ok := q.domain(n)
	if !ok {
		return false
	}
	some := false
	for _, a := range q.allocs {
		if slices.Contains(gone, a) || a.Group.Labels["app"] != "cache" {
			continue
		}
		some = true
		other, ok := q.domain(q.nodes[slices.IndexFunc(q.nodes, func(o *model.Node) bool { return o.ID == a.NodeID })])
		if ok && other == domain {
			return true
		}
	}
	return !some && q.job.Groups[0].Labels["app"] == "cache"
}

func (q *quarter) fits(n *model.Node, gone []*model.Allocation) bool {
	free := n.Capacity["cpu"] - q.job.Groups[0].Resources["cpu"]
	for _, a := range q.allocs {
		if a.NodeID == n.ID && !slices.Contains(gone, a) {
			free -= a.Group.Resources["cpu"]
		}
	}
	return free >= 0
}

// victims returns the victims that kube-scheduler would choose on a node: it removes
// everything of lower priority, and if the job may then be placed there, reprieves
// allocations, the highest priority first. If only co-location forbids the placement,
// its targets stay: that is an extension of this project.
func (q *quarter) victims(n *model.Node) (gone []*model.Allocation, ok bool) {
	if !q.allowsColocation(n, nil) {
		return nil, false // the search skips nodes on which evictions cannot help
	}
	for _, a := range q.allocs {
		if a.NodeID == n.ID && a.Job.Priority < q.job.Priority && !a.Job.NonPreemptible {
			gone = append(gone, a)
		}
	}
	if !q.allowsColocation(n, gone) {
		gone = slices.DeleteFunc(gone, func(a *model.Allocation) bool { return a.Group.Labels["app"] == "cache" })
	}
	if !q.fits(n, gone) || !q.allowsColocation(n, gone) {
		return nil, false
	}
	for _, a := range slices.SortedFunc(slices.Values(gone), moreImportant) {
		without := slices.DeleteFunc(slices.Clone(gone), func(o *model.Allocation) bool { return o == a })
		if q.fits(n, without) && q.allowsColocation(n, without) {
			gone = without
		}
	}
	return slices.SortedFunc(slices.Values(gone), moreImportant), true
}

func moreImportant(a, b *model.Allocation) int {
	return cmp.Or(cmp.Compare(b.Job.Priority, a.Job.Priority), cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.ID, b.ID))
}

// cost compares nodes, apart from start times and IDs.
func cost(victims []*model.Allocation) (c [3]int64) {
	for _, a := range victims {
		c[0] = max(c[0], int64(a.Job.Priority))
		c[1] += int64(a.Job.Priority) + 1<<31
	}
	c[2] = int64(len(victims))
	return c
}

// best returns the lowest cost of a node, and the number of candidate nodes.
func (q *quarter) best() (least [3]int64, nodes int) {
	for _, n := range q.nodes {
		victims, ok := q.victims(n)
		if !ok {
			continue
		}
		if c := cost(victims); nodes == 0 || slices.Compare(c[:], least[:]) < 0 {
			least = c
		}
		nodes++
	}
	return least, nodes
}

func (q *quarter) alloc(id string) *model.Allocation {
	return q.allocs[slices.IndexFunc(q.allocs, func(a *model.Allocation) bool { return a.ID == id })]
}

// An affinity target is evicted like any other allocation if another one stays in the
// domain, or if the job may be the first of its kind; else it stays. In each case the
// victims are those of kube-scheduler.
func TestAffinityTarget_IsEvictedAsByKubeScheduler(t *testing.T) {
	t.Parallel()
	gone, spared := 0, 0
	for seed := range soak.Count(700, 100_000) {
		q := rollQuarter(rand.New(rand.NewPCG(7, uint64(seed))))
		w := newFixture(t, func() sdk.Policy { return kubernetes.New() })
		w.config(func(c *model.SchedulerConfig) { c.Policy = "kubernetes" })
		w.write(func(txn *state.Txn) {
			for _, n := range q.nodes {
				must(txn.NodeWriter().Upsert(n))
			}
			for _, a := range q.allocs {
				must(txn.JobWriter().Upsert(a.Job))
				txn.AllocWriter().Upsert(a)
			}
			must(txn.JobWriter().Upsert(q.job))
		})
		least, nodes := q.best()
		out := w.plan("j")
		if out.Placed() != (nodes > 0) {
			t.Fatalf("seed %d: %s, with %d candidate nodes", seed, format(out), nodes)
		}
		if nodes == 0 {
			continue
		}
		var victims []*model.Allocation
		for _, e := range out.Plan.Groups[0].Evictions {
			victims = append(victims, q.alloc(e.AllocID))
		}
		victims = slices.SortedFunc(slices.Values(victims), moreImportant)
		n := q.nodes[slices.IndexFunc(q.nodes, func(n *model.Node) bool { return n.ID == out.Plan.Groups[0].Placements[0].NodeID })]
		want, _ := q.victims(n)
		if !slices.Equal(victims, want) || cost(victims) != least {
			t.Fatalf("seed %d: %s at %v; kube-scheduler would evict %v of that node, cost %v on the best one\n%s", seed, format(out), cost(victims), ids(want), least, q)
		}
		for _, a := range victims {
			if a.Group.Labels["app"] == "cache" {
				gone++
			}
		}
		if !q.allowsColocation(n, slices.DeleteFunc(slices.Clone(q.allocs), func(a *model.Allocation) bool {
			return a.NodeID != n.ID || a.Job.Priority >= q.job.Priority || a.Job.NonPreemptible
		})) {
			spared++
		}
	}
	if few := soak.Count(80, 100); gone < few || spared < few/5 {
		t.Errorf("%d affinity targets were evicted and %d retained: too few", gone, spared)
	}
	t.Logf("%d affinity targets were evicted and %d retained", gone, spared)
}
