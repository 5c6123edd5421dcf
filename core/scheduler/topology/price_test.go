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
		if int64(row.Priority) > ceiling || row.Group.Job.NonPreemptible {
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
				want.Fits, want.Least.Highest, want.Above.Highest = true, priorities[lack-1], math.MaxInt32
				for _, s := range domains[k].Spans {
					for i := range state.ChunkSize {
						checker := feasible.NewNodeChecker(g, snap.ClassCount())
						if s.Nodes>>i&1 == 0 || !checker.Feasible(snap.Chunk(s.Chunk), i) {
							continue
						}
						for _, row := range snap.Chunk(s.Chunk).Rows(i) {
							if row.Priority > want.Least.Highest {
								want.Above.Highest = min(want.Above.Highest, row.Priority)
							}
						}
					}
				}
				totalsOf(offers, lack, &want.Above)
				_, _, offers = price(int64(want.Least.Highest))
				totalsOf(offers, lack, &want.Least)
				slices.SortStableFunc(offers, func(a, b nodeOffer) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.victims, b.victims)) })
				for i := 0; lack > 0; i++ {
					want.Least.Rows = append(want.Least.Rows, offers[i].rows[:offers[i].fewest]...)
					lack -= offers[i].more
				}
				if int64(want.Above.Highest) > p.Ceiling {
					want.Above = want.Least
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

// One large candidate makes room for the instance, although two small ones, which come before it
// by their amounts, do as well.
func TestPricer_CountsCandidatesBeyondThoseThatSuffice(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	n := coretest.Node("n1", 4, 10, 0)
	n.Attributes = map[string]string{"rack": "r1"}
	must(txn.NodeWriter().Upsert(n))
	for i, cpu := range []int64{1, 1, 2} {
		j := coretest.Job(fmt.Sprint("j", i)).Priority(10).Ask(cpu, 1, 0).Obj()
		must(txn.JobWriter().Upsert(j))
		txn.AllocWriter().Upsert(coretest.Running(fmt.Sprint("a", i), j, 0, 0, "n1"))
	}
	txn.Commit()
	job := coretest.Job("me").Priority(50).Ask(2, 1, 0).Obj()
	snap := coretest.PutJobs(store, job)
	p := topology.Pricer{Snap: snap, Ceiling: 49}
	got := p.Prices(1, snap.Job(job.Key()).Groups[0], topology.Partition(snap, "rack", nil, snap.NodeOrder()))[0].Least
	if got.Highest != 10 || got.Victims != 1 || got.PrioritySum != 10 {
		t.Errorf("got %+v, want one victim", got)
	}
}

// A clearing is a set of candidates without which need instances fit into a domain.
type clearing struct {
	rows    []*state.Row
	highest int32
	sum     int64 // of priorities
	lost    int64
}

// clear evicts candidates of a domain in random order until the instances fit, and then as few of them
// as possible, also in random order. It returns false if they never fit.
func clearDomain(r *rand.Rand, snap *state.Snapshot, d *feasible.Domain, g *model.Group, need int, ceiling, now int64) (c clearing, ok bool) {
	type node struct{ free model.Vector }
	var nodes []*node
	var rows []*state.Row
	of := map[*state.Row]*node{}
	checker := feasible.NewNodeChecker(g, snap.ClassCount())
	for _, s := range d.Spans {
		chunk := snap.Chunk(s.Chunk)
		for i := range state.ChunkSize {
			if s.Nodes>>i&1 == 0 || chunk.Eligible()>>i&1 == 0 || !checker.Feasible(chunk, i) {
				continue
			}
			n := &node{}
			for _, dim := range g.Ask.Dims {
				n.free[dim] = chunk.Free(int(dim))[i]
			}
			nodes = append(nodes, n)
			for x := range chunk.Rows(i) {
				if row := &chunk.Rows(i)[x]; int64(row.Priority) <= ceiling && !row.Group.Job.NonPreemptible {
					rows, of[row] = append(rows, row), n
				}
			}
		}
	}
	suffice := func() bool {
		total := 0
		for _, n := range nodes {
			total += fits(n.free, &g.Ask, need)
		}
		return total >= need
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	if r.IntN(2) == 0 { // those of low priority, or with little lost work, first
		byWork := r.IntN(2) == 0
		slices.SortStableFunc(rows, func(a, b *state.Row) int {
			if byWork {
				return cmp.Compare(b.Start, a.Start)
			}
			return cmp.Compare(a.Priority, b.Priority)
		})
	}
	at := 0
	for ; !suffice(); at++ {
		if at == len(rows) {
			return c, false
		}
		of[rows[at]].free.Add(&rows[at].Group.Ask.Vec)
	}
	c.highest = math.MinInt32
	for _, row := range slices.Backward(rows[:at]) {
		of[row].free.Sub(&row.Group.Ask.Vec)
		if suffice() {
			continue
		}
		of[row].free.Add(&row.Group.Ask.Vec)
		c.rows, c.highest = append(c.rows, row), max(c.highest, row.Priority)
		c.sum += int64(row.Priority)
		c.lost += workOf(row, now)
	}
	return c, true
}

func workOf(row *state.Row, now int64) int64 {
	if !row.Started {
		return 0
	}
	return row.Group.LostWork(now - row.Start)
}

// pairs reports whether each of some least victims can be paired with a victim of its own that is at
// least as high in every column.
func (c *clearing) pairs(list []preempt.LeastVictim, now int64) bool {
	var least []*preempt.LeastVictim
	for i := range list {
		for range list[i].Count {
			least = append(least, &list[i])
		}
	}
	partner := make([]int, len(c.rows)) // by victim: position in least and 1
	var seen []bool
	var find func(k int) bool
	find = func(k int) bool {
		for v, row := range c.rows {
			l := least[k]
			if seen[v] || row.Priority < l.Priority || workOf(row, now) < l.LostWork || len(row.Group.Annotations) > 0 {
				continue
			}
			if use := &row.Group.Ask.Vec; slices.ContainsFunc([]int{0, 1, 2}, func(d int) bool { return use[d] < l.Use[d] }) {
				continue
			}
			seen[v] = true
			if partner[v] == 0 || find(partner[v]-1) {
				partner[v] = k + 1
				return true
			}
		}
		return false
	}
	for k := range least {
		if seen = make([]bool, len(c.rows)); !find(k) {
			return false
		}
	}
	return true
}

// Whatever is evicted in a domain costs at least as much as one of the bounds: in each total, and
// by victims that can be paired with those of each list.
func TestPricer_BoundsAreBelowEveryClearing(t *testing.T) {
	t.Parallel()
	const now = 1000e9
	least, above, long := 0, 0, 0
	for seed := range uint64(max(50, soak.Count(200, 20_000))) {
		r := rand.New(rand.NewPCG(6, seed))
		store := cluster(r)
		fill(r, store)
		txn := store.Begin(3)
		for j := range txn.Jobs() {
			again := *j
			g := *j.Groups[0]
			if g.Job, again.Groups = &again, []*model.Group{&g}; r.IntN(3) == 0 {
				g.Checkpoint = int64(1+r.IntN(400)) * 1e9
			}
			if r.IntN(6) == 0 {
				g.Annotations = map[string]float64{"cost": r.Float64()}
			}
			again.Version++
			must(txn.JobWriter().Upsert(&again))
			for _, a := range txn.AppendJobAllocs(nil, j.Key()) {
				next := *a
				next.Job, next.Group = &again, &g
				next.StartTime, next.Started = int64(r.IntN(1000))*1e9, r.IntN(8) > 0
				txn.AllocWriter().Upsert(&next)
			}
		}
		txn.Commit()
		need := 1 + r.IntN(40)
		job := coretest.Job("me").Priority(50).Ask(int64(1+r.IntN(4)), int64(1+r.IntN(3)), 0).Count(need).Obj()
		snap := coretest.PutJobs(store, job)
		g := snap.Job(job.Key()).Groups[0]
		domains := topology.Partition(snap, "rack", nil, snap.NodeOrder())
		for _, detail := range []topology.Detail{topology.Coarse, topology.Fine} {
			p := topology.Pricer{
				Snap: snap, Ceiling: []int64{5, 20, 49}[r.IntN(3)], Lists: detail, LostWork: true, Annotations: true, Now: now, Workers: 2,
			}
			for k, price := range p.Prices(need, g, domains) {
				for range 8 {
					c, ok := clearDomain(r, snap, domains[k], g, need, p.Ceiling, now)
					if ok != price.Fits {
						t.Fatalf("seed %d, %s: fits is %v, want %v", seed, domains[k].Value, price.Fits, ok)
					}
					if !ok || len(c.rows) == 0 {
						continue
					}
					b := &price.Least
					if least++; c.highest >= price.Above.Highest && price.Above.Highest > price.Least.Highest {
						b = &price.Above
						least, above = least-1, above+1
					}
					raisedSum := func(sum int64, n int) int64 { return sum + int64(n)*raised }
					switch {
					case c.highest < b.Highest, len(c.rows) < int(b.Victims), c.lost < b.LostWork,
						raisedSum(c.sum, len(c.rows)) < raisedSum(b.PrioritySum, int(b.Victims)):
						t.Fatalf("seed %d, %s, detail %d: %+v is below %+v", seed, domains[k].Value, detail, c, b)
					}
					for _, list := range b.Lists {
						if !c.pairs(list, now) {
							t.Fatalf("seed %d, %s, detail %d: %+v cannot be paired with %+v", seed, domains[k].Value, detail, c, list)
						}
						if len(list) > 2 {
							long++
						}
					}
				}
			}
		}
	}
	t.Logf("%d and %d clearings, %d with lists of several sets", least, above, long)
	if min(least, above, long) < 100 {
		t.Errorf("%d and %d clearings, %d with lists of several sets: too few", least, above, long)
	}
}
