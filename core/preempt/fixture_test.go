package preempt_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
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
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// skipUnderRaceDetector skips a comparison of results without concurrency of its own.
func skipUnderRaceDetector(t *testing.T) {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("other tests exercise the workers of a search under the race detector: set CEDE_SOAK=1")
	}
}

// check runs a property, with many more cases if CEDE_SOAK is set.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range soak.Count(2, 500) { // a hundred cases each, from different seeds
		rapid.Check(t, property)
	}
}

// fixture is a small random cluster, and a group to be placed.
type fixture struct {
	snap  *state.Snapshot
	group *model.Group
	delta *int32
	nodes []string // on which the group does not fit, ascending
	base  int32    // value of delta
	order tiebreak.Order
}

// features are optional features of a fixture. protection adds disruption budgets,
// preemption tolerations and all-or-none jobs.
type features struct{ devices, ports, protection bool }

var resourceNames = []string{"cpu", "memory", "disk", "network", "licence", "tape", "fpga"}

// source draws uniformly distributed values. rapid prefers small ones, and an almost empty
// cluster exercises nothing.
type source struct{ *rand.Rand }

func drawSource(t *rapid.T) source {
	return source{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "details"), rapid.Uint64().Draw(t, "more details")))}
}

// in returns a number from least to most.
func (d source) in(least, most int) int { return least + d.IntN(most-least+1) }

// oneIn returns true with probability 1/n.
func (d source) oneIn(n int) bool { return d.IntN(n) == 0 }

func oneOf[T any](d source, of ...T) T { return of[d.IntN(len(of))] }

// resources returns random amounts. It omits each name with probability 1/rarely.
func (d source) resources(names []string, least, most, rarely int) model.Resources {
	r := model.Resources{}
	for _, n := range names {
		if v := d.in(least, most); v > 0 && !d.oneIn(rarely) {
			r[n] = int64(v)
		}
	}
	return r
}

func (d source) group(g *model.Group, names []string, s features, most int) {
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
				ID: oneOf(d, "gpu", "gpu", "acme/gpu", "acme/gpu/b"), Count: int32(d.in(1, 3)),
			})
		}
	}
}

func (d source) node(id string, names []string, s features) *model.Node {
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

func drawFixture(t *rapid.T, s features) *fixture {
	d := drawSource(t)
	nodes := d.in(1, 5)
	return randomFixture(d, s, nodes, d.in(1, 8), d.in(0, 12*nodes))
}

func randomFixture(d source, s features, nodes, jobCount, attempts int) *fixture {
	names := resourceNames[:d.in(1, len(resourceNames))]
	store := state.New()
	txn := store.Begin(1)
	ids := make([]string, nodes)
	for i, at := range d.Perm(nodes) {
		ids[i] = fmt.Sprintf("n%04d", at)
		must(txn.NodeWriter().Upsert(d.node(ids[i], names, s)))
	}
	jobs := make([]*model.Job, jobCount+1)
	for i := range jobCount {
		j := coretest.Job(fmt.Sprintf("j%d", i)).Priority(oneOf[int32](d, -30, -5, 0, 10, 10, 20, 40)).Obj()
		j.NonPreemptible = d.oneIn(10)
		d.group(j.Groups[0], names, s, 7)
		if s.protection {
			d.protect(j)
		}
		jobs[i] = j
		must(txn.JobWriter().Upsert(j))
	}
	job := coretest.Job("preemptor").Priority(oneOf[int32](d, -20, 20, 21, 50, 50, 50, 50, 50)).Obj()
	d.group(job.Groups[0], names, s, 14)
	jobs[jobCount] = job
	must(txn.JobWriter().Upsert(job))

	w := &fixture{group: job.Groups[0], base: rules.Delta}
	if d.oneIn(2) {
		w.base = oneOf[int32](d, 0, 1, 5, 20, -3)
		w.delta = &w.base
	}
	// Allocations are placed where they fit, and sometimes where they do not, as on a node
	// after its capacity has been reduced.
	proposed := txn
	for i := range attempts {
		j := oneOf(d, jobs...)
		a := coretest.Running(fmt.Sprintf("a%05d", d.IntN(100000)), j, 0, i, oneOf(d, ids...))
		if s.protection {
			a.Started, a.StartTime = !d.oneIn(6), int64(d.in(0, 999))
		}
		if proposed.Alloc(a.ID) != nil {
			continue
		}
		choice, ok := refFittingChoice(proposed.Node(a.NodeID), refAllocs(proposed, a.NodeID), a.Group, d.oneIn(12))
		if !ok {
			continue
		}
		for r, dev := range choice {
			a.Devices = append(a.Devices, model.DeviceUse{ID: dev, Count: a.Group.Devices[r].Count})
		}
		proposed.AllocWriter().Upsert(a)
	}
	if s.protection {
		for i := range d.in(0, 4) {
			txn.BudgetWriter().Upsert(d.budget(i))
		}
	}
	w.snap = txn.Commit()
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if _, ok := refFittingChoice(w.snap.Node(id), refAllocs(w.snap, id), w.group, false); !ok {
			w.nodes = append(w.nodes, id)
		}
	}
	return w
}

// request returns a search for the group on all nodes where it does not fit.
func (w *fixture) request(policies *policy.Set, v *policy.Version) preempt.Request {
	r := preempt.Request{
		Group: w.group, Now: 1000, Algorithm: model.Binpack, Delta: w.delta,
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

// The rest is a reference implementation: slow, on names instead of numbers, and without
// code of the package under test.

// refDeviceChoices returns the ways in which the devices of a node may serve a group.
func refDeviceChoices(n *model.Node, g *model.Group) [][]string {
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

// refAllocs returns the live allocations on a node, ascending by priority and ID.
func refAllocs(snap view, node string) []*model.Allocation {
	list := slices.DeleteFunc(snap.AppendNodeAllocs(nil, node), func(a *model.Allocation) bool { return !a.Live() })
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), strings.Compare(a.ID, b.ID))
	})
	return list
}

func refFits(n *model.Node, here []*model.Allocation, gone map[string]bool, g *model.Group, devices []string, overfull bool) bool {
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

// view is implemented by snapshots and transactions.
type view interface {
	AppendNodeAllocs(dst []*model.Allocation, node string) []*model.Allocation
}

func refFittingChoice(n *model.Node, here []*model.Allocation, g *model.Group, overfull bool) ([]string, bool) {
	for _, way := range refDeviceChoices(n, g) {
		if refFits(n, here, nil, g, way, overfull) {
			return way, true
		}
	}
	return nil, false
}

// refOption is an option in terms of names.
type refOption struct {
	node    string
	devices string
	victims []string // in picking order

	highest, sum int64
	fit          float64
}

func (p *refOption) String() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%s[%s] evicting %v", p.node, p.devices, p.victims)
}

// candidates returns the allocations that may be evicted at all.
func (w *fixture) candidates(node string) []*model.Allocation {
	list := slices.DeleteFunc(refAllocs(w.snap, node), func(a *model.Allocation) bool {
		gap := int64(w.group.Job.Priority) - int64(a.Job.Priority)
		return a.Job.ID == w.group.Job.ID || a.Job.NonPreemptible || gap < 1 || gap < int64(w.base)
	})
	slices.SortFunc(list, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), w.order.Compare(a.ID, b.ID))
	})
	return list
}

// pickDefault returns the victim that the default policy picks next.
func (w *fixture) pickDefault(left []*model.Allocation, need map[string]float64) *model.Allocation {
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

// option returns the option of the default policy on one node with one way of serving its
// devices, after the reprieve. It returns nil if the group fits as it is, or never fits.
func (w *fixture) option(node string, devices []string) *refOption {
	n, here := w.snap.Node(node), refAllocs(w.snap, node)
	gone := map[string]bool{}
	fits := func() bool { return refFits(n, here, gone, w.group, devices, false) }
	need := map[string]float64{}
	for name, v := range w.group.Resources {
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
	p := &refOption{node: node, devices: strings.Join(devices, " "), highest: math.MinInt64}
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

func (w *fixture) fit(n *model.Node, here []*model.Allocation, gone map[string]bool) float64 {
	powers := 0.0
	for _, name := range []string{"cpu", "memory"} {
		avail := n.Capacity[name] - n.Reserved[name]
		free := avail - w.group.Resources[name]
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

// options returns the options of a node in order of device groups.
func (w *fixture) options(node string) (list []*refOption) {
	for _, way := range refDeviceChoices(w.snap.Node(node), w.group) {
		if p := w.option(node, way); p != nil {
			list = append(list, p)
		}
	}
	return list
}

// best returns the best option of a list in tie order, or nil if it is empty.
func best(list []*refOption) *refOption {
	var b *refOption
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

// optionOf converts a choice for comparison.
func optionOf(snap *state.Snapshot, c preempt.Choice) *refOption {
	n := snap.NodeAt(c.Pos)
	var devices []string
	for _, at := range c.Device {
		devices = append(devices, n.Devices[at].ID)
	}
	p := &refOption{node: n.ID, devices: strings.Join(devices, " ")}
	for _, v := range c.Victims {
		p.victims = append(p.victims, v.ID)
	}
	return p
}

// startSearch starts a search. The caller must release it.
func startSearch(t testing.TB, snap *state.Snapshot, r preempt.Request) *preempt.Finder {
	t.Helper()
	f := &preempt.Finder{}
	if err := f.Start(snap, r); err != nil {
		t.Fatal(err)
	}
	return f
}

func bestOf(t tb, snap *state.Snapshot, f *preempt.Finder) *refOption {
	c, ok, err := f.Best()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return nil
	}
	return optionOf(snap, c)
}

func eachNodeOf(t tb, snap *state.Snapshot, f *preempt.Finder) []string {
	list := []string{}
	if err := f.EachNode(func(c preempt.Choice) { list = append(list, optionOf(snap, c).String()) }); err != nil {
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
