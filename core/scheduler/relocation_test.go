package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A columnRecorder is the default policy with another name. It records where every candidate that
// it receives could run, by job.
type columnRecorder struct {
	*rules.Default
	seen map[string]string
}

func newColumnRecorder() *columnRecorder { return &columnRecorder{rules.New(), map[string]string{}} }

func (w *columnRecorder) Info() sdk.Info {
	info := w.Default.Info()
	info.Name, info.Columns, info.Ascending = "recorder", info.Columns|sdk.JobColumns|sdk.PlaceColumn, false
	return info
}

func (w *columnRecorder) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	for i := range in.Len() {
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			_, job, _ := strings.Cut(in.Strings[in.Rows.Job[row]], "\x00")
			text := [...]string{"free", "evicts", "none"}[in.Rows.Relocation[row]]
			if in.Rows.Relocation[row] == sdk.RelocationEvicts {
				text += fmt.Sprintf(" %d", in.Rows.DisplacedPriority[row])
			}
			w.seen[job+" on "+in.Strings[in.Place[i]]] = text
		}
	}
	return w.Default.SelectVictims(in, out)
}

// relocations plans a job of priority 90 that fits nowhere, and returns where each candidate
// could run.
func (f *fixture) relocations(w *columnRecorder, big *model.Job) map[string]string {
	clear(w.seen)
	f.job(big)
	f.plan(big.ID)
	return w.seen
}

func TestRelocation_AnswersFollowTheRulesOfPlacement(t *testing.T) {
	for name, c := range map[string]struct {
		// set puts a job "victim" on n1, which the asker needs.
		set  func(f *fixture)
		want string
	}{
		"free capacity elsewhere": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).Obj(), "v", "n1")
		}, "free"},
		"no capacity elsewhere": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(7, 4, 0).Obj(), "v", "n1")
		}, "none"},
		"capacity elsewhere once lower work has left": {func(f *fixture) {
			f.run(coretest.Job("low").Priority(10).Ask(4, 4, 0).Obj(), "l", "n2")
			f.run(coretest.Job("victim").Priority(20).Ask(6, 6, 0).Obj(), "v", "n1")
		}, "evicts 10"},
		"lower work within the gap": {func(f *fixture) {
			f.run(coretest.Job("low").Priority(11).Ask(4, 4, 0).Obj(), "l", "n2")
			f.run(coretest.Job("victim").Priority(20).Ask(6, 6, 0).Obj(), "v", "n1")
		}, "none"},
		"lower work that is not preemptible": {func(f *fixture) {
			f.run(coretest.Job("low").Priority(10).Ask(4, 4, 0).Change(func(j *model.Job) { j.NonPreemptible = true }).Obj(), "l", "n2")
			f.run(coretest.Job("victim").Priority(20).Ask(6, 6, 0).Obj(), "v", "n1")
		}, "none"},
		"a constraint": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: "zone", Operator: model.OpEqual, Value: "a"}}
			}).Obj(), "v", "n1")
		}, "none"},
		"the only node by ID": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: model.AttributeNodeID, Operator: model.OpEqual, Value: "n1"}}
			}).Obj(), "v", "n1")
		}, "none"},
		"another node by ID": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: model.AttributeNodeID, Operator: model.OpEqual, Value: "n2"}}
			}).Obj(), "v", "n1")
		}, "free"},
		"distinct hosts": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Count(2).Ask(4, 4, 0).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
			}).Obj(), "v", "n1", "w", "n2")
		}, "none"},
		"a port in use": {func(f *fixture) {
			port := func(g *model.Group) { g.Ports = []uint16{80} }
			f.run(coretest.Job("holder").Priority(20).Ask(1, 1, 0).With(port).Obj(), "h", "n2")
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).With(port).Obj(), "v", "n1")
		}, "none"},
		"a system job": {func(f *fixture) {
			f.run(coretest.Job("victim").Priority(20).Ask(4, 4, 0).Change(func(j *model.Job) { j.Type = model.JobSystem }).Obj(), "v", "n1")
		}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newColumnRecorder()
			f := newFixture(t, func() sdk.Policy { return w })
			f.node("n1", zone("a"))
			f.node("n2", zone("b"))
			f.run(coretest.Job("high").Priority(80).Ask(4, 4, 0).Obj(), "h2", "n2")
			c.set(f)
			big := coretest.Job("big").Priority(90).Ask(10, 10, 0).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: "zone", Operator: model.OpEqual, Value: "a"}}
			}).Change(func(j *model.Job) { j.Policy = "recorder" }).Obj()
			if got := f.relocations(w, big)["victim on n1"]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Free capacity elsewhere is reported exactly if CheckNodes, which applies the rules of
// placement, finds another node for the instance once it has left.
func TestRelocation_AgreesWithPlacement(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 17))
		w := newColumnRecorder()
		f := newFixture(t, func() sdk.Policy { return w })
		fillAtRandom(f, r)
		big := coretest.Job("big").Priority(90).Ask(10, 10, 0).Change(func(j *model.Job) { j.Policy = "recorder" }).Obj()
		answers := f.relocations(w, big)
		snap := f.store.Snapshot()
		for a := range snap.Allocs() {
			got, known := answers[a.Job.ID+" on "+a.NodeID]
			if !known || a.Job.ID == big.ID {
				continue
			}
			got, _, _ = strings.Cut(got, " ")
			counts[got]++
			if want := f.fitsElsewhere(snap, a); want != (got == "free") {
				t.Fatalf("seed %d: %s on %s: %s, but placement finds another node: %v", seed, a.ID, a.NodeID, got, want)
			}
		}
	}
	if counts["free"] < 100 || counts["evicts"] < 50 || counts["none"] < 100 {
		t.Errorf("%v: that shows too little", counts)
	}
}

// fillAtRandom makes nodes in three zones, and jobs with different rules.
func fillAtRandom(f *fixture, r *rand.Rand) {
	nodes := 3 + r.IntN(5)
	for i := range nodes {
		f.node(fmt.Sprintf("n%d", i), zone(string(rune('a'+i%3))))
	}
	free := slices.Repeat([]int{10}, nodes)
	for k := range 2 * nodes {
		size := 2 + r.IntN(5)
		j := coretest.Job(fmt.Sprintf("j%02d", k)).Priority(int32(10*r.IntN(5))).Ask(int64(size), int64(size), 0).With(func(g *model.Group) {
			switch r.IntN(5) {
			case 0:
				g.Constraints = []model.Constraint{{Attribute: "zone", Operator: model.OpEqual, Value: string(rune('a' + r.IntN(3)))}}
			case 1:
				g.Labels = map[string]string{"app": "x"}
				g.Separate = []model.LabelTerm{{TopologyKey: []string{model.TopologyNode, "zone"}[r.IntN(2)], Labels: map[string]string{"app": "x"}}}
			case 2:
				g.Constraints = []model.Constraint{{Operator: model.OpDistinctProperty, Attribute: "zone"}}
			}
		}).Obj()
		var pairs []string
		for i := range free {
			at := (i + k) % nodes
			if free[at] >= size {
				free[at] -= size
				pairs = append(pairs, fmt.Sprintf("a%02d", k), fmt.Sprintf("n%d", at))
				break
			}
		}
		f.run(j, pairs...)
	}
}

// fitsElsewhere reports whether placement would find another node for an allocation that has
// been evicted.
func (f *fixture) fitsElsewhere(snap *state.Snapshot, a *model.Allocation) bool {
	f.t.Helper()
	txn := snap.Fork(snap.Index() + 1)
	evicted := *a
	evicted.Desired, evicted.EndTime = model.DesiredEvict, f.now
	txn.AllocWriter().Upsert(&evicted)
	eval := &model.Evaluation{ID: "check", Namespace: a.Job.Namespace, JobID: a.Job.ID, Type: a.Job.Type, Priority: a.Job.Priority}
	nodes, err := f.sched.CheckNodes(eval, a.Group.Name, txn.Snapshot(), f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	for id, result := range nodes {
		if result.Fits && id != a.NodeID {
			return true
		}
	}
	return false
}

// A search is continued after each placement, and nodes of one class share its answers. The
// plan is the one that a search over all nodes after each placement makes, with any number of
// workers.
func TestRelocation_ShortcutsKeepThePlan(t *testing.T) {
	skipComparisonUnderRace(t)
	for seed := range uint64(60) {
		store := mixedStore(rand.New(rand.NewPCG(seed, 23)))
		job := coretest.Job("asker").Priority(90).Count(12).Ask(6, 6, 0).Change(func(j *model.Job) { j.Policy = "named" }).Obj()
		snap := coretest.PutJobs(store, job)
		var plans []string
		for _, c := range []struct {
			columns sdk.Columns
			workers int
		}{{0, 1}, {0, 4}, {sdk.SharedTables, 1}} {
			s := scheduler.New(scheduler.Config{
				Policies: coretest.Policies(func() sdk.Policy { return named{rules.New(), c.columns} }), Workers: c.workers,
			})
			out, err := s.Process(coretest.Eval(job), snap, 3600e9)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, format(out))
		}
		if plans[0] != plans[1] || plans[0] != plans[2] {
			t.Fatalf("seed %d: the plans differ:\n%s", seed, strings.Join(plans, "\n"))
		}
	}
}

// mixedStore returns a full cluster of 40 nodes with few distinct contents.
func mixedStore(r *rand.Rand) *state.Store {
	store := state.New()
	txn := store.Begin(1)
	for i := range 40 {
		n := coretest.Node(fmt.Sprintf("n%02d", i), 10, 10, 0)
		n.Attributes = map[string]string{"zone": string(rune('a' + i%4))}
		must(txn.NodeWriter().Upsert(n))
	}
	for i := range 40 {
		for k, size := range [][]int64{{5, 5}, {4, 4}, {3, 3, 4}}[r.IntN(3)] {
			j := coretest.Job(fmt.Sprintf("j%02d-%d", i, k)).Priority(int32(10+10*r.IntN(3))).Ask(size, size, 0).With(func(g *model.Group) {
				if r.IntN(3) == 0 {
					g.Constraints = []model.Constraint{{Attribute: "zone", Operator: model.OpEqual, Value: string(rune('a' + i%4))}}
				}
			}).Obj()
			must(txn.JobWriter().Upsert(j))
			txn.AllocWriter().Upsert(coretest.Running(fmt.Sprintf("a%02d-%d", i, k), j, 0, 0, fmt.Sprintf("n%02d", i)))
		}
	}
	txn.ConfigWriter().Set(coretest.AllPreempt())
	txn.Commit()
	return store
}

// BenchmarkRelocation is construction (b) under the two versions of the rules of default: the
// cost of the columns, which `benchstat -col /relocation` shows.
func BenchmarkRelocation(b *testing.B) {
	store := coretest.FilledStore(5000, 10)
	job := coretest.PreemptingJob(1).Obj()
	for _, c := range []struct {
		name string
		make func() sdk.Policy
	}{{"relocation=false", func() sdk.Policy { return named{rules.NewVersion1(), 0} }}, {"relocation=true", func() sdk.Policy { return named{rules.New(), 0} }}} {
		b.Run(c.name, func(b *testing.B) {
			asking := *job
			asking.Policy = "named"
			snap := coretest.PutJobs(store, &asking)
			s := scheduler.New(scheduler.Config{Policies: coretest.Policies(c.make), Workers: runtime.GOMAXPROCS(0)})
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Process(coretest.Eval(&asking), snap, 1)
				if err != nil || !out.Placed() {
					b.Fatal(err, out)
				}
			}
		})
	}
}

// named is a default policy with another name that reads more columns.
type named struct {
	*rules.Default
	more sdk.Columns
}

func (n named) Info() sdk.Info {
	info := n.Default.Info()
	info.Name, info.Columns = "named", info.Columns|n.more
	return info
}
