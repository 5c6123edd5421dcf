package preempt_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

const everyColumn = sdk.UseColumns | sdk.StartColumn | sdk.LostWorkColumn | sdk.JobColumns | sdk.EvictionColumns |
	sdk.MustLeaveColumn | sdk.DeviceColumns | sdk.CapacityColumns | sdk.PlaceColumn | sdk.LabelColumns |
	sdk.AnnotationColumns | sdk.SharedTables | sdk.VictimColumns | sdk.FitColumns | sdk.TimeColumns

// formatRows returns every row of a table as text.
func formatRows(strs []string, r *sdk.Rows) string {
	var b strings.Builder
	name := func(id int32) string { return strings.ReplaceAll(strs[id], "\x00", "/") }
	for i, p := range r.Priority {
		fmt.Fprintf(&b, "p%d start=%d lost=%d %s %s %s evicted %d of %d must=%d cpu=%v mem=%v gpu=%v", p,
			r.Start[i], r.LostWork[i], name(r.Namespace[i]), name(r.Job[i]), name(r.Group[i]),
			r.Evictions[i], r.EvictionLimit[i], r.MustLeave[i], r.Use[0][i], r.Use[1][i], r.Devices[0][i])
		for k := r.Labels.First[i]; k < r.Labels.First[i+1]; k++ {
			fmt.Fprintf(&b, " %s=%s", name(r.Labels.Key[k]), name(r.Labels.Value[k]))
		}
		for k, note := range r.Annotations.Names {
			if v := r.Annotations.Values[k][i]; !math.IsNaN(v) {
				fmt.Fprintf(&b, " %s:%v", note, v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func formatShared(strs []string, s *sdk.Shared) string {
	var b strings.Builder
	fmt.Fprintf(&b, "totals cpu=%v mem=%v", s.Totals[0], s.Totals[1])
	for i, id := range s.Namespaces.Name {
		fmt.Fprintf(&b, "; %s weight %v uses %v %v", strs[id], s.Namespaces.Weight[i], s.Namespaces.Use[0][i], s.Namespaces.Use[1][i])
	}
	return b.String() + "\n"
}

// Every column has its documented content, in calls about victims and about options.
func TestFinder_FillsEveryColumn(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	n := coretest.Node("n1", 12, 10, 0)
	n.Reserved = model.Resources{"cpu": 2}
	n.Devices = []model.Device{{ID: "acme/gpu/x", Count: 4}}
	must(txn.NodeWriter().Upsert(n))
	down := coretest.Node("n2", 100, 100, 0)
	down.Status = model.NodeDown
	must(txn.NodeWriter().Upsert(down))
	must(txn.NodeWriter().Upsert(coretest.Node("n3", 1, 1, 0)))

	etl := coretest.Job("etl").Priority(10).Ask(3, 2, 0).With(func(g *model.Group) {
		g.Labels = map[string]string{"tier": "bulk", "app": "etl"}
		g.Annotations = map[string]float64{"cost": 2.5}
		g.Checkpoint, g.MaxParallelEvictions = 100, 3
	}).Change(func(j *model.Job) { j.Namespace = "team" }).Obj()
	web := coretest.Job("web").Priority(20).Ask(4, 1, 0).With(func(g *model.Group) {
		g.Ports = []uint16{80}
		g.Devices = []model.DeviceRequest{{ID: "gpu", Count: 3}}
		g.Annotations = map[string]float64{"risk": 1}
	}).Obj()
	ask := coretest.Job("preemptor").Priority(50).Ask(5, 1, 0).Count(2).With(func(g *model.Group) {
		g.Ports = []uint16{80}
		g.Devices = []model.DeviceRequest{{ID: "acme/gpu", Count: 2}}
	}).Obj()
	own := coretest.Job("preemptor").Priority(50).Ask(1, 1, 0).Obj()
	for _, j := range []*model.Job{etl, web, own} {
		must(txn.JobWriter().Upsert(j))
	}
	a := coretest.Running("a", etl, 0, 0, "n1")
	a.StartTime = 750
	b := coretest.Running("b", web, 0, 0, "n1")
	b.StartTime, b.Devices = 900, []model.DeviceUse{{ID: "acme/gpu/x", Count: 3}}
	txn.AllocWriter().Upsert(a, b, coretest.Running("own", own, 0, 0, "n1"))
	must(txn.JobWriter().Upsert(ask))
	txn.NamespaceWriter().Upsert(&model.Namespace{Name: "team", Weight: 2})
	snap := txn.Commit()

	evicted := &protect.EvictionCounts{}
	evicted.Add(etl.Groups[0])
	var victims, options string
	v := stub(struct {
		info
		scores
		rates
	}{
		info{sdk.Info{Delta: 7, Columns: everyColumn}},
		func(in *sdk.Candidates, _ *sdk.VictimScores) error {
			victims = fmt.Sprintf("now %d, %s/%s/%s %s p%d delta %d ask %v %v, %d ports, %v, waiting %d, attempts %d\n",
				in.Now, in.Preemptor.Namespace, in.Preemptor.Job, in.Preemptor.Group, in.Preemptor.JobType,
				in.Preemptor.Priority, in.Preemptor.Delta, in.Preemptor.Ask[0], in.Preemptor.Ask[1],
				in.Preemptor.Ports, in.Preemptor.Devices, in.Preemptor.Waiting, in.Preemptor.Attempts)
			for i := range in.Len() {
				victims += fmt.Sprintf("%s: need cpu=%v mem=%v gpu=%v freed %v, %d must leave, capacity %v reserved %v free %v own %v\n",
					in.Strings[in.Place[i]], in.Need[0][i], in.Need[1][i], in.DeviceNeed[0][i], in.Freed[0][i], in.MustLeave[i],
					in.Capacity[0][i], in.Reserved[0][i], in.Free[0][i], in.Own[0][i])
			}
			victims += formatRows(in.Strings, &in.Rows) + formatShared(in.Strings, in.Shared)
			return nil
		},
		func(in *sdk.Options, _ *sdk.OptionScores) error {
			for i := range in.Len() {
				options += fmt.Sprintf("%s: highest %d, %d victims, sum %d, lost %d, need cpu=%v mem=%v gpu=%v from group %d, fit %.3f then %.3f\n",
					in.Strings[in.Place[i]], in.HighestPriority[i], in.VictimCount[i], in.PrioritySum[i], in.LostWork[i],
					in.Need[0][i], in.Need[1][i], in.DeviceNeed[0][i], in.DeviceGroup[0][i], in.FitBefore[i], in.FitAfter[i])
			}
			options += formatRows(in.Strings, &in.Victims) + formatShared(in.Strings, in.Shared)
			return nil
		},
	})
	f := startSearch(t, snap, preempt.Request{
		Group: ask.Groups[0], Now: 1000, Algorithm: model.Binpack, Policy: v, Default: coretest.Policies().Default(),
		Nodes: snap.NodeOrder(), Evictions: evicted, Waiting: 42, Attempts: 3,
	})
	defer f.Release()
	bestOf(t, snap, f)
	rows := `p10 start=750 lost=50 team team/etl team/etl/g evicted 1 of 3 must=0 cpu=3 mem=2 gpu=0 app=etl tier=bulk cost:2.5
p20 start=900 lost=100 default default/web default/web/g evicted 0 of 1 must=1 cpu=4 mem=1 gpu=3 risk:1
`
	shared := "totals cpu=11 mem=11; default weight 1 uses 5 2; team weight 2 uses 3 2\n"
	wantVictims := `now 1000, default/preemptor/g service p50 delta 7 ask 5 1, 1 ports, [{acme/gpu 2}], waiting 42, attempts 3
n1: need cpu=3 mem=-5 gpu=1 freed 0, 1 must leave, capacity 12 reserved 2 free 2 own 1
` + rows + shared
	if victims != wantVictims {
		t.Errorf("call about victims\n%s\nwant\n%s", victims, wantVictims)
	}
	// b alone suffices, so that a is reprieved.
	wantOptions := `n1: highest 20, 1 victims, sum 20, lost 100, need cpu=3 mem=-5 gpu=1 from group 0, fit ` +
		fmt.Sprintf("%.3f then %.3f", fit.Score(model.Binpack, 10, 10, -3, 5), fit.Score(model.Binpack, 10, 10, 1, 6)) + "\n" +
		strings.SplitAfter(rows, "\n")[1] + shared
	if options != wantOptions {
		t.Errorf("call about options\n%s\nwant\n%s", options, wantOptions)
	}
}
