package topology_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// fill runs allocations of a few jobs, with negative and with equal priorities, on each node.
func fill(r *rand.Rand, store *state.Store) {
	txn := store.Begin(2)
	for i := range 12 {
		j := coretest.Job(fmt.Sprint("j", i)).Priority([]int32{-7, 0, 5, 5, 20, 40}[r.IntN(6)]).Ask(int64(1+r.IntN(4)), int64(1+r.IntN(3)), 0).Count(900).Obj()
		j.NonPreemptible = i == 0
		must(txn.JobWriter().Upsert(j))
		index := 0
		for n := range txn.Nodes() {
			if r.IntN(4) == 0 && n.Capacity["cpu"] > 0 {
				txn.AllocWriter().Upsert(coretest.Running(fmt.Sprint("a", i, "-", index), j, 0, index, n.ID))
				index++
			}
		}
	}
	txn.Commit()
}

// A nodeOffer is what instances on a node cost at least, found by trying every number of them.
type nodeOffer struct {
	more         int
	victims, sum int64
	rows         []*state.Row
	priorities   []int32 // at which each instance fits
	fewest       int     // for the first instance
}

const raised = 1 << 31

func fits(free model.Vector, ask *model.Ask, limit int) (n int) {
	for n < limit {
		for _, d := range ask.Dims {
			if free[d] < int64(n+1)*ask.Vec[d] {
				return n
			}
		}
		n++
	}
	return n
}

// offerOf returns the free instances of a node and its offer if everything up to a ceiling leaves.
func offerOf(snap *state.Snapshot, c, i int, g *model.Group, limit int, ceiling int64) (int, nodeOffer) {
	var free, largest model.Vector
	for _, d := range g.Ask.Dims {
		free[d] = snap.Chunk(c).Free(int(d))[i]
	}
	o := nodeOffer{victims: math.MaxInt64, sum: math.MaxInt64}
	now, all := fits(free, &g.Ask, limit), free
	for x := range snap.Chunk(c).Rows(i) {
		row := &snap.Chunk(c).Rows(i)[x]
		if int64(row.Priority) > ceiling || row.Group.Job.NonPreemptible || now+o.more == limit {
			continue
		}
		o.rows = append(o.rows, row)
		for _, d := range g.Ask.Dims {
			all[d], largest[d] = all[d]+row.Group.Ask.Vec[d], max(largest[d], row.Group.Ask.Vec[d])
		}
		for more := fits(all, &g.Ask, limit) - now; o.more < more; o.more++ {
			o.priorities = append(o.priorities, row.Priority)
		}
	}
	for n := 1; n <= o.more; n++ {
		suffice := func(rows int, one *model.Vector) bool { // with the others as large as the largest one
			for _, d := range g.Ask.Dims {
				if free[d]+one[d]+int64(rows-1)*largest[d] < int64(now+n)*g.Ask.Vec[d] {
					return false
				}
			}
			return true
		}
		rows := 1
		for rows < len(o.rows) && !suffice(rows, &largest) {
			rows++
		}
		if n == 1 {
			o.fewest = rows
		}
		var large, first int64
		left := rows
		for _, row := range o.rows {
			if left > 0 && suffice(rows, &row.Group.Ask.Vec) {
				large, left = large+int64(row.Priority)+raised, left-1
			}
		}
		for _, row := range o.rows[:min(rows+1, len(o.rows))] {
			first += int64(row.Priority) + raised
		}
		if left > 0 || rows < len(o.rows) && first < large {
			large = first
		}
		o.victims, o.sum = min(o.victims, int64(rows)<<20/int64(n)), min(o.sum, large/int64(n))
	}
	return now, o
}

// totalsOf returns the bound of need instances on the cheapest offers.
func totalsOf(offers []nodeOffer, need int, b *preempt.Bound) {
	total := func(each func(nodeOffer) int64) (sum int64) {
		var list []int64
		for _, o := range offers {
			list = append(list, slices.Repeat([]int64{each(o)}, o.more)...)
		}
		slices.Sort(list)
		for _, cost := range list[:need] {
			sum += cost
		}
		return sum
	}
	b.Victims = int32((total(func(o nodeOffer) int64 { return o.victims }) + 1<<20 - 1) >> 20)
	b.PrioritySum = total(func(o nodeOffer) int64 { return o.sum }) - int64(b.Victims)*raised
}

// Prices equal those that are computed one by one from their definition.
func TestPricer_EqualsDefinition(t *testing.T) {
	t.Parallel()
	evicting := 0
	for seed := range uint64(max(12, soak.Count(12, 500))) {
		r := rand.New(rand.NewPCG(4, seed))
		store := cluster(r)
		fill(r, store)
		need := 1 + r.IntN(30)
		job := coretest.Job("me").Priority(50).Ask(int64(1+r.IntN(4)), int64(1+r.IntN(3)), 0).Count(need).Obj()
		job.Groups[0].Constraints = []model.Constraint{{Attribute: "version", Operator: model.OpVersion, Value: "< 2"}}
		snap := coretest.PutJobs(store, job)
		g := snap.Job(job.Key()).Groups[0]
		domains := topology.Partition(snap, "rack", nil, snap.NodeOrder())
		p := topology.Pricer{Snap: snap, Ceiling: []int64{math.MinInt64, 5, 30, 49}[r.IntN(4)], ListRows: true, Workers: 2}
		for k, got := range p.Prices(need, g, domains) {
			price := func(ceiling int64) (free int, pos int32, offers []nodeOffer) {
				pos = -1
				for _, s := range domains[k].Spans {
					for i := range state.ChunkSize {
						checker := feasible.NewNodeChecker(g, snap.ClassCount())
						if s.Nodes>>i&1 == 0 || free >= need || !checker.Feasible(snap.Chunk(s.Chunk), i) {
							continue
						}
						if pos < 0 {
							pos = int32(s.Chunk*state.ChunkSize + i)
						}
						now, o := offerOf(snap, s.Chunk, i, g, need, ceiling)
						if free += now; o.more > 0 {
							offers = append(offers, o)
						}
					}
				}
				return free, pos, offers
			}
			free, pos, offers := price(p.Ceiling)
			want := topology.Price{Fits: free >= need, Free: min(need, free), Least: preempt.Bound{Pos: pos, Highest: math.MinInt32}}
			most := free
			for _, o := range offers {
				most += o.more
			}
			want.Most = min(need, most)
			want.Above = want.Least
			var priorities []int32
			for _, o := range offers {
				priorities = append(priorities, o.priorities...)
			}
			if lack := need - free; lack > 0 && len(priorities) >= lack {
				slices.Sort(priorities)
				want.Fits, want.Least.Highest, want.Above.Highest = true, priorities[lack-1], priorities[lack-1]+1
				totalsOf(offers, lack, &want.Above)
				_, _, offers = price(int64(want.Least.Highest))
				totalsOf(offers, lack, &want.Least)
				slices.SortStableFunc(offers, func(a, b nodeOffer) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.victims, b.victims)) })
				for i := 0; lack > 0; i++ {
					want.Least.Rows = append(want.Least.Rows, offers[i].rows[:offers[i].fewest]...)
					lack -= offers[i].more
				}
				evicting++
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s: %+v, want %+v", seed, domains[k].Value, got, want)
			}
		}
	}
	if evicting < 20 {
		t.Errorf("%d prices with evictions: too few", evicting)
	}
}
