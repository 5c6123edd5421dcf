package preempt_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/fmath"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// soak multiplies a test's count when CEDE_SOAK=1, and divides it when
// CEDE_QUICK=1.
func soak(n int) int {
	switch {
	case os.Getenv("CEDE_SOAK") != "":
		return n * 50
	case os.Getenv("CEDE_QUICK") != "":
		return max(1, n/10)
	}
	return n
}

// check runs a property, many more times when CEDE_SOAK asks for it.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range soak(10) { // rapid's hundred, from another seed each time
		rapid.Check(t, property)
	}
}

// world is a small cluster and a group that wants in.
type world struct {
	snap  *state.Snapshot
	asker *model.Group
	delta *int32
	nodes []string // without room for the group, ascending
	base  int32    // gap that delta stands for
	ties  tiebreak.Order
}

// shape bounds a random world. guards adds disruption budgets, preemption
// tolerations and jobs that are evicted whole.
type shape struct{ devices, ports, guards bool }

var resourceNames = []string{"cpu", "memory", "disk", "network", "licence", "tape", "fpga"}

// dice draws details evenly, which rapid does not: it prefers small values, and
// an almost empty cluster shows nothing.
type dice struct{ *rand.Rand }

func drawDice(t *rapid.T) dice {
	return dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "details"), rapid.Uint64().Draw(t, "more details")))}
}

// in is a number from least to most.
func (d dice) in(least, most int) int { return least + d.IntN(most-least+1) }

// oneIn is true once in n times.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// resources leaves a name out once in rarely times.
func (d dice) resources(names []string, least, most, rarely int) model.Resources {
	r := model.Resources{}
	for _, n := range names {
		if v := d.in(least, most); v > 0 && !d.oneIn(rarely) {
			r[n] = int64(v)
		}
	}
	return r
}

func (d dice) group(g *model.Group, names []string, s shape, most int) {
	g.Resources = d.resources(names, 0, most, 3)
	g.MaxParallelEvictions = d.in(0, 2)
	if s.ports && d.oneIn(2) {
		for _, p := range d.Perm(4)[:d.in(1, 2)] {
			g.Ports = append(g.Ports, uint16(80+p))
		}
	}
	if s.devices && d.oneIn(2) {
		for range d.in(1, 2) {
			g.Devices = append(g.Devices, model.DeviceRequest{
				ID: pick(d, "gpu", "gpu", "acme/gpu", "acme/gpu/b"), Count: int32(d.in(1, 3)),
			})
		}
	}
}

func (d dice) node(id string, names []string, s shape) *model.Node {
	n := &model.Node{ID: id, Datacenter: "dc1", Capacity: d.resources(names, 8, 24, 30)}
	if v := n.Capacity[names[0]]; d.oneIn(4) && v > 2 {
		n.Reserved = model.Resources{names[0]: 2}
	}
	if s.ports && d.oneIn(5) {
		n.Ports = []uint16{uint16(d.in(80, 83))}
	}
	if s.devices {
		for _, dev := range []string{"acme/gpu/a", "acme/gpu/b", "mega/gpu/a"} {
			if c := d.in(0, 5); c > 0 {
				n.Devices = append(n.Devices, model.Device{ID: dev, Count: int32(c)})
			}
		}
	}
	return n
}

func drawWorld(t *rapid.T, s shape) *world {
	d := drawDice(t)
	nodes := d.in(1, 5)
	return rollWorld(d, s, nodes, d.in(1, 8), d.in(0, 12*nodes))
}

func rollWorld(d dice, s shape, nodes, jobCount, attempts int) *world {
	names := resourceNames[:d.in(1, len(resourceNames))]
	store := state.New()
	txn := store.Begin(1)
	ids := make([]string, nodes)
	for i, at := range d.Perm(nodes) {
		ids[i] = fmt.Sprintf("n%04d", at)
		must(txn.UpsertNode(d.node(ids[i], names, s)))
	}
	jobs := make([]*model.Job, jobCount+1)
	for i := range jobCount {
		j := coretest.Job(fmt.Sprintf("j%d", i)).Priority(pick[int32](d, -30, -5, 0, 10, 10, 20, 40)).Obj()
		j.NonPreemptible = d.oneIn(10)
		d.group(j.Groups[0], names, s, 7)
		if s.guards {
			d.guard(j)
		}
		jobs[i] = j
		must(txn.UpsertJob(j))
	}
	asker := coretest.Job("asker").Priority(pick[int32](d, -20, 20, 21, 50, 50, 50, 50, 50)).Obj()
	d.group(asker.Groups[0], names, s, 14)
	jobs[jobCount] = asker
	must(txn.UpsertJob(asker))

	w := &world{asker: asker.Groups[0], base: rules.Delta}
	if d.oneIn(2) {
		w.base = pick[int32](d, 0, 1, 5, 20, -3)
		w.delta = &w.base
	}
	// What runs is placed one by one where it fits; now and then where it does
	// not, as on a node whose capacity was lowered.
	proposed := txn
	for i := range attempts {
		j := pick(d, jobs...)
		a := coretest.Running(fmt.Sprintf("a%05d", d.IntN(100000)), j, 0, i, pick(d, ids...))
		if s.guards {
			a.Started, a.StartTime = !d.oneIn(6), int64(d.in(0, 999))
		}
		if proposed.Alloc(a.ID) != nil {
			continue
		}
		choice, ok := oracleRoom(proposed.Node(a.NodeID), oracleOn(proposed, a.NodeID), a.Group, d.oneIn(12))
		if !ok {
			continue
		}
		for r, dev := range choice {
			a.Devices = append(a.Devices, model.DeviceUse{ID: dev, Count: a.Group.Devices[r].Count})
		}
		proposed.UpsertAllocs(a)
	}
	if s.guards {
		for i := range d.in(0, 4) {
			txn.UpsertBudget(d.budget(i))
		}
	}
	w.snap = txn.Commit()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if _, ok := oracleRoom(w.snap.Node(id), oracleOn(w.snap, id), w.asker, false); !ok {
			w.nodes = append(w.nodes, id)
		}
	}
	return w
}

// request is the search that the world asks for.
func (w *world) request(policies *policy.Set, v *policy.Version) preempt.Request {
	r := preempt.Request{
		Group: w.asker, Now: 1000, Algorithm: model.Binpack, Delta: w.delta,
		Policy: v, Default: policies.Default(), Evictions: &protect.EvictionCounts{},
	}
	for _, id := range w.nodes {
		pos, _ := w.snap.Position(id)
		r.Nodes = append(r.Nodes, pos)
	}
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What follows is the oracle: written from design.md, slow, in names, and with
// nothing in common with the code under test.

// oracleChoices lists the ways in which the devices of a node may serve a group.
func oracleChoices(n *model.Node, g *model.Group) [][]string {
	ways := [][]string{{}}
	for _, r := range g.Devices {
		var longer [][]string
		for _, way := range ways {
			for _, d := range n.Devices {
				parts := strings.Split(d.ID, "/")
				names := []string{parts[1], parts[0] + "/" + parts[1], d.ID}
				if slices.Contains(names, r.ID) && d.Count >= r.Count {
					longer = append(longer, append(slices.Clone(way), d.ID))
				}
			}
		}
		ways = longer
	}
	return ways
}

// oracleOn is what counts on a node.
func oracleOn(snap view, node string) []*model.Allocation {
	list := slices.DeleteFunc(snap.AppendNodeAllocs(nil, node), func(a *model.Allocation) bool { return !a.Live() })
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), strings.Compare(a.ID, b.ID))
	})
	return list
}

func oracleFits(n *model.Node, here []*model.Allocation, gone map[string]bool, g *model.Group, devices []string, overfull bool) bool {
	for name, ask := range g.Resources {
		left := n.Capacity[name] - n.Reserved[name]
		for _, a := range here {
			if !gone[a.ID] {
				left -= a.Group.Resources[name]
			}
		}
		if ask > 0 && left < ask && !overfull {
			return false
		}
	}
	for _, p := range g.Ports {
		if slices.Contains(n.Ports, p) {
			return false
		}
		for _, a := range here {
			if !gone[a.ID] && slices.Contains(a.Group.Ports, p) {
				return false
			}
		}
	}
	want := map[string]int32{}
	for r, id := range devices {
		want[id] += g.Devices[r].Count
	}
	for id, count := range want {
		for _, d := range n.Devices {
			if d.ID == id {
				count -= d.Count
			}
		}
		for _, a := range here {
			for _, u := range a.Devices {
				if !gone[a.ID] && u.ID == id {
					count += u.Count
				}
			}
		}
		if count > 0 {
			return false
		}
	}
	return true
}

// view is what snapshots and transactions share.
type view interface {
	AppendNodeAllocs(dst []*model.Allocation, node string) []*model.Allocation
}

func oracleRoom(n *model.Node, here []*model.Allocation, g *model.Group, overfull bool) ([]string, bool) {
	for _, way := range oracleChoices(n, g) {
		if oracleFits(n, here, nil, g, way, overfull) {
			return way, true
		}
	}
	return nil, false
}

// place is an option as people would write it.
type place struct {
	node    string
	devices string
	victims []string // in picking order

	highest, sum int64
	fit          float64
}

func (p *place) String() string {
	if p == nil {
		return "nowhere"
	}
	return fmt.Sprintf("%s[%s] evicting %v", p.node, p.devices, p.victims)
}

// candidates are those who may be evicted at all.
func (w *world) candidates(node string) []*model.Allocation {
	list := slices.DeleteFunc(oracleOn(w.snap, node), func(a *model.Allocation) bool {
		gap := int64(w.asker.Job.Priority) - int64(a.Job.Priority)
		return a.Job.ID == w.asker.Job.ID || a.Job.NonPreemptible || gap < 1 || gap < int64(w.base)
	})
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), w.ties.Compare(a.ID, b.ID))
	})
	return list
}

// pickDefault is whom default picks next among those left.
func (w *world) pickDefault(left []*model.Allocation, need map[string]float64) *model.Allocation {
	var best *model.Allocation
	var bestDistance float64
	for _, a := range left {
		if a.Job.Priority != left[0].Job.Priority {
			break
		}
		sum := 0.0
		for _, name := range w.snap.Dims().Names() {
			if n := need[name]; n > 0 {
				x := (n - float64(a.Group.Resources[name])) / n
				sum += float64(x * x)
			}
		}
		if d := math.Sqrt(sum); best == nil || d < bestDistance {
			best, bestDistance = a, d
		}
	}
	return best
}

// option is what default and the host's rules make of one node and one way of
// serving its devices; nil when it is none.
func (w *world) option(node string, devices []string) *place {
	n, here := w.snap.Node(node), oracleOn(w.snap, node)
	gone := map[string]bool{}
	fits := func() bool { return oracleFits(n, here, gone, w.asker, devices, false) }
	need := map[string]float64{}
	for name, v := range w.asker.Resources {
		need[name] = float64(v)
	}
	var picks []*model.Allocation
	for left := w.candidates(node); !fits(); {
		if len(left) == 0 {
			return nil
		}
		a := w.pickDefault(left, need)
		left = slices.DeleteFunc(left, func(b *model.Allocation) bool { return b == a })
		gone[a.ID] = true
		picks = append(picks, a)
		for name, v := range a.Group.Resources {
			need[name] -= float64(v)
		}
	}
	if len(picks) == 0 {
		return nil // it needs no eviction
	}
	for _, pick := range slices.Backward(picks) {
		if gone[pick.ID] = false; !fits() {
			gone[pick.ID] = true
		}
	}
	p := &place{node: node, devices: strings.Join(devices, " "), highest: math.MinInt64}
	for _, a := range picks {
		if gone[a.ID] {
			p.victims = append(p.victims, a.ID)
			p.highest = max(p.highest, int64(a.Job.Priority))
			p.sum += int64(a.Job.Priority)
		}
	}
	p.fit = w.fit(n, here, gone)
	return p
}

func (w *world) fit(n *model.Node, here []*model.Allocation, gone map[string]bool) float64 {
	powers := 0.0
	for _, name := range []string{"cpu", "memory"} {
		avail := n.Capacity[name] - n.Reserved[name]
		free := avail - w.asker.Resources[name]
		for _, a := range here {
			if !gone[a.ID] {
				free -= a.Group.Resources[name]
			}
		}
		fraction := 0.0
		if avail > 0 {
			fraction = float64(free) / float64(avail)
		}
		powers += fmath.Exp10(fraction)
	}
	return min(max(20-powers, 0), 18) / 18
}

// options lists the options of a node in order of device groups.
func (w *world) options(node string) (list []*place) {
	for _, way := range oracleChoices(w.snap.Node(node), w.asker) {
		if p := w.option(node, way); p != nil {
			list = append(list, p)
		}
	}
	return list
}

// best is the best of a list that is in tie order.
func best(list []*place) *place {
	var b *place
	for _, p := range list {
		if b == nil || cmp.Or(
			cmp.Compare(p.highest, b.highest), cmp.Compare(len(p.victims), len(b.victims)),
			cmp.Compare(p.sum, b.sum), cmp.Compare(b.fit, p.fit),
		) < 0 {
			b = p
		}
	}
	return b
}

// found makes a choice of the code under test comparable.
func found(snap *state.Snapshot, c preempt.Choice) *place {
	n := snap.NodeAt(c.Pos)
	var devices []string
	for _, at := range c.Device {
		devices = append(devices, n.Devices[at].ID)
	}
	p := &place{node: n.ID, devices: strings.Join(devices, " ")}
	for _, v := range c.Victims {
		p.victims = append(p.victims, v.ID)
	}
	return p
}

// search begins a search and is not done before the test is.
func search(t testing.TB, snap *state.Snapshot, r preempt.Request) *preempt.Finder {
	t.Helper()
	f := &preempt.Finder{}
	if err := f.Start(snap, r); err != nil {
		t.Fatal(err)
	}
	return f
}

func bestOf(t tb, snap *state.Snapshot, f *preempt.Finder) *place {
	c, ok, err := f.Best()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return nil
	}
	return found(snap, c)
}

func eachOf(t tb, snap *state.Snapshot, f *preempt.Finder) []string {
	list := []string{}
	if err := f.EachNode(func(c preempt.Choice) { list = append(list, found(snap, c).String()) }); err != nil {
		t.Fatal(err)
	}
	return list
}

type tb interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func sortedNames(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

var _ sdk.Policy = (*rules.Default)(nil)
