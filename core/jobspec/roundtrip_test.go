package jobspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// sameModel compares the fields of jobs except the derived ones.
var sameModel = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(model.Job{}, model.Group{}, model.Constraint{}, model.LabelTerm{}),
	cmpopts.IgnoreFields(model.Group{}, "Job", "Position", "Ask"),
}

// TestRoundTrip_ModelThroughAPI checks that FromModel loses nothing, also by way of
// JSON, and that Load reads its result.
func TestRoundTrip_ModelThroughAPI(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawJob(t)
		j := FromModel(m)
		again, err := ToModel(j)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, sameModel); diff != "" {
			t.Fatal(diff)
		}
		text, err := json.Marshal(map[string]*client.Job{"Job": j})
		if err != nil {
			t.Fatal(err)
		}
		f, err := Load("job.json", text, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again, err = f.Model(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, sameModel); diff != "" {
			t.Fatal(diff)
		}
	})
}

var names = rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`)

func drawJob(t *rapid.T) *model.Job {
	j := &model.Job{
		Namespace: names.Draw(t, "namespace"), ID: names.Draw(t, "id"), Meta: drawTexts(t, "meta"),
		Type: model.JobType(rapid.IntRange(0, model.JobTypes-1).Draw(t, "type")), Priority: rapid.Int32().Draw(t, "priority"),
		PriorityClass: rapid.SampledFrom([]string{"", "high"}).Draw(t, "class"),
		NeverPreempts: rapid.Bool().Draw(t, "never"), NonPreemptible: rapid.Bool().Draw(t, "nonpreemptible"),
		AllAtOnce: rapid.Bool().Draw(t, "gang"), Policy: rapid.SampledFrom([]string{"", "aging?halfLife=10m"}).Draw(t, "policy"),
		Stopped: rapid.Bool().Draw(t, "stopped"), Version: rapid.Uint64Range(0, 100).Draw(t, "version"),
		Datacenters: rapid.SliceOfN(names, 0, 3).Draw(t, "datacenters"),
		SubmitTime:  7, CreateIndex: 8, ModifyIndex: 9,
	}
	j.AllOrNone = rapid.Bool().Draw(t, "all or none")
	if rapid.Bool().Draw(t, "tolerates") {
		j.Toleration = &model.PreemptionToleration{MinRuntime: rapid.Int64Range(1, 1e15).Draw(t, "min runtime")}
		if rapid.Bool().Draw(t, "has min priority") {
			j.Toleration.MinPreemptorPriority = new(rapid.Int32().Draw(t, "min preemptor priority"))
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
		j.Groups = append(j.Groups, drawGroup(t, i, j.Type))
	}
	return j
}

// configs holds a configuration of each driver, with sorted keys.
var configs = map[string]string{
	"exec": `{"args":["1","two"],"command":"/bin/x","work_dir":"w"}`,
	"sim":  `{"exit_code":5,"ignore_term":true,"run_for":"1h"}`,
}

func drawGroup(t *rapid.T, i int, kind model.JobType) *model.Group {
	g := &model.Group{
		Name: fmt.Sprintf("g%d", i), Count: rapid.IntRange(0, 5).Draw(t, "count"), Resources: drawAmounts(t),
		Ports:  rapid.SliceOfNDistinct(rapid.Uint16Range(1, 65535), 0, 3, rapid.ID).Draw(t, "ports"),
		Labels: drawTexts(t, "labels"), Meta: drawTexts(t, "group meta"),
		MaxParallelEvictions: rapid.IntRange(0, 3).Draw(t, "parallel"), Duration: rapid.Int64Range(0, 1e15).Draw(t, "duration"),
		Checkpoint: rapid.Int64Range(0, 1e15).Draw(t, "checkpoint"), Annotations: map[string]float64{"cost": rapid.Float64Range(-9, 9).Draw(t, "cost")},
	}
	if kind.PerNode() {
		g.Count = min(g.Count, 1)
	}
	g.MinCount = rapid.IntRange(0, g.Count).Draw(t, "min count")
	if rapid.Bool().Draw(t, "has disconnect") {
		g.Disconnect = &model.Disconnect{LostAfter: rapid.Int64Range(0, 1e15).Draw(t, "lost after"), Replace: rapid.Bool().Draw(t, "replace")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		g.Tolerations = append(g.Tolerations, rapid.SampledFrom([]model.Toleration{
			{Key: "gpu", Operator: model.TolerationEqual, Value: "true"},
			{Key: "spot", Operator: model.TolerationExists},
			{Operator: model.TolerationExists},
			{Key: "maintenance", Operator: model.TolerationEqual},
		}).Draw(t, "toleration"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "constraints") {
		g.Constraints = append(g.Constraints, drawConstraint(t, true))
		g.Affinities = append(g.Affinities, model.Affinity{Constraint: drawConstraint(t, false), Weight: rapid.IntRange(-100, 100).Draw(t, "weight")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "devices") {
		g.Devices = append(g.Devices, model.DeviceRequest{ID: "nvidia/gpu", Count: rapid.Int32Range(1, 8).Draw(t, "count"), Constraints: []model.Constraint{drawConstraint(t, false)}})
		g.Spread = append(g.Spread, model.Spread{Attribute: "zone", Weight: rapid.IntRange(1, 100).Draw(t, "weight"), Targets: map[string]int{"a": 30, "b": 70}, MaxSkew: rapid.IntRange(0, 2).Draw(t, "skew")})
		g.Colocate = append(g.Colocate, model.LabelTerm{Labels: map[string]string{"app": "x"}, TopologyKey: "node"})
		g.Separate = append(g.Separate, model.LabelTerm{Labels: map[string]string{"app": "y"}, TopologyKey: "zone"})
	}
	for k := range rapid.IntRange(0, 3).Draw(t, "tasks") {
		share := drawAmounts(t)
		driver := rapid.SampledFrom(slices.Sorted(maps.Keys(configs))).Draw(t, "driver")
		task := &model.Task{
			Name: fmt.Sprintf("t%d", k), Driver: driver, User: rapid.SampledFrom([]string{"", "nobody"}).Draw(t, "user"),
			Config: []byte(configs[driver]), Env: drawTexts(t, "env"), Resources: share,
			KillSignal: rapid.SampledFrom(signals).Draw(t, "signal"), KillTimeout: rapid.Int64Range(0, 1e12).Draw(t, "timeout"), Leader: k == 0,
		}
		if len(g.Ports) > 0 && rapid.Bool().Draw(t, "named") {
			task.Env = map[string]string{"CEDE_PORT_http": fmt.Sprint(g.Ports[0]), "CEDE_PORT_other": fmt.Sprint(g.Ports[0])}
		}
		g.KillTimeout = max(g.KillTimeout, task.KillTimeout)
		g.Tasks = append(g.Tasks, task)
		if g.Resources == nil && share != nil {
			g.Resources = model.Resources{}
		}
		for resource, n := range share {
			g.Resources[resource] += n
		}
	}
	return g
}

func drawAmounts(t *rapid.T) model.Resources {
	amounts := rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory", "disk", "network", "nvidia.com/gpu"}), rapid.Int64Range(1, 1<<40), 0, 4).Draw(t, "amounts")
	if len(amounts) == 0 {
		return nil
	}
	return maps.Clone(amounts)
}

func drawTexts(t *rapid.T, label string) map[string]string {
	return rapid.MapOfN(names, rapid.String().Filter(func(s string) bool { return !containsNUL(s) }), 0, 3).Draw(t, label)
}

func containsNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

func drawConstraint(t *rapid.T, mayCount bool) model.Constraint {
	attribute := rapid.SampledFrom([]string{"zone", "node.class", "kernel.version", "node.id"}).Draw(t, "attribute")
	list := []model.Constraint{
		{Attribute: attribute, Operator: "=", Value: "a b"},
		{Attribute: attribute, Operator: "!=", Value: "[x"},
		{Attribute: attribute, Operator: "in", Values: []string{"a", "b,c", " d", "[e"}},
		{Attribute: attribute, Operator: "notin", Values: []string{"a", "b"}},
		{Attribute: attribute, Operator: "regexp", Value: "^a.*$"},
		{Attribute: attribute, Operator: "version", Value: ">= 1.2, < 2"},
		{Attribute: attribute, Operator: "is_set"},
		{Attribute: attribute, Operator: ">=", Value: "5"},
	}
	if mayCount {
		list = append(list, model.Constraint{Operator: "distinct_hosts"}, model.Constraint{Attribute: attribute, Operator: "distinct_property", Value: "2"})
	}
	return rapid.SampledFrom(list).Draw(t, "constraint")
}
