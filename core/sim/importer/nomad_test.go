package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	nomad "github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/client"
)

// written returns a file with documents in the encoding of Nomad's API types.
func written(t *testing.T, documents ...any) *fstest.MapFile {
	t.Helper()
	var b strings.Builder
	for _, d := range documents {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

func nomadResources(cpu int64) *nomad.NodeResources {
	return &nomad.NodeResources{
		Cpu: nomad.NodeCpuResources{CpuShares: cpu}, Memory: nomad.NodeMemoryResources{MemoryMB: 8000}, Disk: nomad.NodeDiskResources{DiskMB: 10000},
		Devices: []*nomad.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "t4", Instances: []*nomad.NodeDevice{{ID: "a", Healthy: true}, {ID: "b"}}}},
	}
}

func holds(cpu, memory, disk int64) *nomad.AllocatedResources {
	return &nomad.AllocatedResources{
		Tasks:  map[string]*nomad.AllocatedTaskResources{"main": {Cpu: nomad.AllocatedCpuResources{CpuShares: cpu}, Memory: nomad.AllocatedMemoryResources{MemoryMB: memory}}},
		Shared: nomad.AllocatedSharedResources{DiskMB: disk},
	}
}

var taken = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func nomadAllocation(id, job, group, node, client string, age time.Duration) *nomad.AllocationListStub {
	return &nomad.AllocationListStub{
		ID: id, Namespace: "default", JobID: job, JobType: "service", TaskGroup: group, NodeID: node, ClientStatus: client, DesiredStatus: "run",
		CreateTime: taken.Add(-age).UnixNano(), ModifyTime: taken.Add(-age).UnixNano(), AllocatedResources: holds(500, 256, 300),
	}
}

// webapp returns a job with many fields that scheduling ignores.
func webapp() *nomad.Job {
	main := nomad.NewTask("main", "docker").SetConfig("image", "shop:1").Require(&nomad.Resources{
		CPU: new(500), MemoryMB: new(256),
		Devices: []*nomad.RequestedDevice{{Name: "nvidia/gpu", Count: new(uint64(1)), Constraints: []*nomad.Constraint{{LTarget: "${device.attr.memory}", Operand: ">=", RTarget: "8 GiB"}}}},
	})
	main.Constraints = []*nomad.Constraint{nomad.NewConstraint("${attr.driver.docker}", "=", "1")}
	migrate := nomad.NewTask("migrate", "docker").Require(&nomad.Resources{CPU: new(4000), MemoryMB: new(4000)})
	migrate.Lifecycle = &nomad.TaskLifecycle{Hook: "prestart"}
	group := nomad.NewTaskGroup("web", 3).AddTask(main).AddTask(migrate)
	group.Networks = []*nomad.NetworkResource{{Mode: "bridge", DynamicPorts: []nomad.Port{{Label: "http", To: 80}}}}
	group.EphemeralDisk = &nomad.EphemeralDisk{SizeMB: new(300)}
	group.Services = []*nomad.Service{{Name: "shop"}}
	j := nomad.NewServiceJob("webapp", "webapp", "global", 75).AddDatacenter("dc1").AddTaskGroup(group)
	j.Namespace, j.Status, j.Version = new("default"), new("running"), new(uint64(2))
	j.Constraints = []*nomad.Constraint{nomad.NewConstraint("${node.class}", "=", "large")}
	return j
}

func nomadFolder(t *testing.T, attributes map[string]string) fstest.MapFS {
	leaving := nomadAllocation("a9", "webapp", "web", "id-1", "running", time.Hour)
	leaving.DesiredStatus = "stop"
	report := nomadAllocation("r1", "report", "crunch", "id-2", "running", time.Minute)
	report.JobType = "batch"
	return fstest.MapFS{
		"nodes.json": written(t, []*nomad.NodeListStub{
			{ID: "id-2", Name: "n2", Datacenter: "dc1", NodePool: "default", Status: "ready", SchedulingEligibility: "ineligible", NodeResources: nomadResources(4000)},
			{ID: "id-3", Name: "n3", Datacenter: "dc1", Status: "down", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)},
			{ID: "id-4", Name: "n4", Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible"},
		}),
		"node/one.json": written(t, &nomad.Node{
			ID: "id-1", Name: "n1", Datacenter: "dc1", NodeClass: "large", NodePool: "default", Status: "ready", SchedulingEligibility: "eligible",
			Attributes: attributes, NodeResources: nomadResources(8000),
			ReservedResources: &nomad.NodeReservedResources{Cpu: nomad.NodeReservedCpuResources{CpuShares: 100}, Networks: nomad.NodeReservedNetworkResources{ReservedHostPorts: "22,8500-8502"}},
		}),
		"rest.json": written(t,
			[]*nomad.AllocationListStub{
				nomadAllocation("a2", "webapp", "web", "id-1", "running", time.Hour), nomadAllocation("a1", "webapp", "web", "id-2", "pending", 2*time.Hour),
				nomadAllocation("a0", "webapp", "web", "id-1", "failed", 3*time.Hour), leaving, report,
				nomadAllocation("x1", "orphan", "g", "id-1", "running", 0), nomadAllocation("x2", "orphan", "g", "id-3", "running", 0),
			},
			[]*nomad.JobListStub{{ID: "report", Namespace: "default", Type: "batch", Priority: 20, Status: "running", JobSummary: &nomad.JobSummary{}}, {ID: "webapp", Namespace: "default", Priority: 75, JobSummary: &nomad.JobSummary{}}},
			webapp(),
			&nomad.SchedulerConfigurationResponse{SchedulerConfig: &nomad.SchedulerConfiguration{SchedulerAlgorithm: "spread", PreemptionConfig: nomad.PreemptionConfig{SystemSchedulerEnabled: true}}},
		),
	}
}

func TestNomad_ConvertsDump(t *testing.T) {
	t.Parallel()
	f, report, err := Nomad(Options{}, Source{FS: nomadFolder(t, map[string]string{"driver.docker": "1"})})
	if err != nil {
		t.Fatal(err)
	}
	gpu := []scenario.Device{{ID: "nvidia/gpu/t4", Count: 1}}
	want := &scenario.File{
		Version: 1, Name: "nomad", Description: "a Nomad cluster as it was at 2026-03-01 12:00:00 UTC",
		Scheduler: scenario.Scheduler{
			Algorithm: "spread", Policy: "nomad",
			Preemption: &scenario.Preemption{Service: &scenario.PreemptionMode{}, Batch: &scenario.PreemptionMode{}, System: &scenario.PreemptionMode{On: true}, SysBatch: &scenario.PreemptionMode{}},
		},
		Namespaces: []scenario.Namespace{{Name: "default"}},
		Nodes: []scenario.Node{
			{
				ID: "n1", Datacenter: "dc1", Class: "large", Capacity: scenario.Quantities{"cpu": 8000, "memory": 8000, "disk": 10000},
				Reserved: scenario.Quantities{"cpu": 100, "memory": 0, "disk": 0}, Ports: []uint16{22, 8500, 8501, 8502}, Devices: gpu,
				Attributes: map[string]string{"driver.docker": "1", "node.pool": "default"},
			},
			{
				ID: "n2", Datacenter: "dc1", Capacity: scenario.Quantities{"cpu": 4000, "memory": 8000, "disk": 10000}, Devices: gpu,
				Attributes: map[string]string{"node.pool": "default"}, Taints: []scenario.Taint{{Key: "nomad/ineligible", Effect: "NoSchedule"}},
			},
		},
		Jobs: []scenario.Job{
			{ID: "orphan", Namespace: "default", Type: "service", Priority: new(int32(50)), Groups: []scenario.Group{
				{Name: "g", Count: new(1), Resources: scenario.Quantities{"cpu": 500, "memory": 256, "disk": 300}},
			}},
			{ID: "report", Namespace: "default", Type: "batch", Priority: new(int32(20)), Groups: []scenario.Group{
				{Name: "crunch", Count: new(1), Resources: scenario.Quantities{"cpu": 500, "memory": 256, "disk": 300}},
			}},
			{ID: "webapp", Namespace: "default", Type: "service", Priority: new(int32(75)), Datacenters: []string{"dc1"}, Groups: []scenario.Group{{
				Name: "web", Count: new(3), Resources: scenario.Quantities{"cpu": 500, "memory": 256, "disk": 300},
				Devices: []scenario.DeviceRequest{{ID: "nvidia/gpu", Count: new(int32(1))}}, KillTimeout: scenario.Duration(5 * time.Second),
				Constraints: []scenario.Constraint{
					{Attribute: "node.class", Operator: "=", Value: "large"}, {Attribute: "driver.docker", Operator: "=", Value: "1"},
				},
			}}},
		},
		Running: []scenario.Running{
			{ID: "x1", Job: "orphan", Group: "g", Node: "n1"},
			{ID: "r1", Job: "report", Group: "crunch", Node: "n2", StartedAt: scenario.Duration(-time.Minute)},
			{ID: "a1", Job: "webapp", Group: "web", Node: "n2", StartedAt: scenario.Duration(-2 * time.Hour)},
			{ID: "a2", Job: "webapp", Group: "web", Node: "n1", StartedAt: scenario.Duration(-time.Hour)},
		},
		Events: []scenario.Event{{Submit: "webapp"}},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	left := 0
	for _, n := range report.Notes {
		if n.LeftOut {
			left += n.Count
		}
	}
	if report.TasksRead != report.Tasks+left || report.NodesRead != 4 || report.Nodes != 2 || report.Running != 4 || report.Tasks != 5 {
		t.Errorf("report = %+v", report)
	}
}

// Lists of nodes have no attributes. Constraints on them would exclude every node.
func TestNomad_LeavesOutConstraintsWithoutAttributes(t *testing.T) {
	t.Parallel()
	f, report, err := Nomad(Options{Name: "mine"}, Source{FS: nomadFolder(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Jobs[2].Groups[0].Constraints; len(got) != 1 || got[0].Attribute != "node.class" {
		t.Errorf("constraints are %+v", got)
	}
	if !strings.Contains(report.String(), "left out because the dump has no node attributes") || f.Name != "mine" {
		t.Errorf("name %s, report %s", f.Name, report)
	}
}

func TestNomad_RejectsInvalidDumps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": 1`:              "dump.json: document 1 is not valid JSON",
		`{"a": 1}`:             "not a node, allocation, job or scheduler configuration",
		`[1]`:                  "element 0: expected an object",
		`[]`:                   "the dump has no nodes; add the output of `nomad operator api",
		`{"NodeResources": 5}`: "dump.json: document 1: json",
		`[{"ID": "n1", "SchedulingEligibility": "eligible"}]`: "no node in the dump has resources",
	} {
		_, _, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": {Data: []byte(text)}}, File: "dump.json"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: err = %v, want %s", text, err, want)
		}
	}
	if _, _, err := Nomad(Options{Keep: 0.5}, Source{FS: nomadFolder(t, nil)}); err == nil || !strings.Contains(err.Error(), "imported completely") {
		t.Errorf("a part of a cluster: %v", err)
	}
}

// Lists of cede's own API contain the resources of allocations in ResourceUse.
func TestNomad_ReadsListsOfCedeAPI(t *testing.T) {
	t.Parallel()
	nodes := []*client.NodeStub{{
		ID: "id-1", Name: "n1", Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible",
		Capacity:      map[string]int64{"cpu": 4000, "memory": 8000, "licences": 3},
		Taints:        []client.Taint{{Key: "k", Effect: "NoSchedule"}},
		NodeResources: &client.NodeResources{Cpu: client.NodeCPUResources{CpuShares: 4000}, Memory: client.NodeMemoryResources{MemoryMB: 8000}},
	}}
	allocs := []*client.AllocationStub{{
		ID: "a1", Namespace: "default", JobID: "shop", JobType: "service", TaskGroup: "web", NodeID: "id-1", ClientStatus: "running", DesiredStatus: "run",
		ResourceUse: map[string]int64{"cpu": 500, "memory": 256, "licences": 2}, CreateTime: taken.UnixNano(),
	}}
	f, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, nodes, allocs)}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scenario.Quantities{"cpu": 500, "memory": 256, "licences": 2}, f.Jobs[0].Groups[0].Resources); diff != "" {
		t.Error(diff)
	}
	for _, n := range report.Notes {
		if strings.Contains(n.Subject, "without resources") {
			t.Error(n)
		}
	}
}

// TestNomad_CountsMissingParts checks that missing parts of a dump, and pending instances
// of jobs without a specification, are reported.
func TestNomad_CountsMissingParts(t *testing.T) {
	t.Parallel()
	nodes := []*nomad.NodeListStub{{ID: "id-1", Name: "n1", Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(8000)}}
	jobs := []*nomad.JobListStub{{
		ID: "report", Namespace: "default", Type: "batch", Priority: 20, Status: "pending",
		JobSummary: &nomad.JobSummary{Summary: map[string]nomad.TaskGroupSummary{"crunch": {Queued: 3}}},
	}}
	_, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, nodes, jobs)}})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, n := range report.Notes {
		counts[n.Subject] = n.Count
	}
	if counts["dump without allocations (/v1/allocations?resources=true)"] != 1 || counts["pending instances of jobs without a specification (/v1/job/ID)"] != 3 {
		t.Errorf("note counts = %v", counts)
	}
	if report.TasksRead != 3 || report.Tasks != 0 {
		t.Errorf("imported %d tasks of %d, want 0 of 3", report.Tasks, report.TasksRead)
	}
}

// unescapeName returns the ID from which escapeName made a name.
func unescapeName(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(name, escapeMark)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		code, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteByte(byte(code))
		name = after[2:]
	}
}

func TestEscapeName_IsReversible(t *testing.T) {
	for id, want := range map[string]string{
		"web-1.x":             "web-1.x",
		"Backup_DB":           "--42ackup--5f--44--42",
		"a--b":                "a--2d-b",
		"a-_":                 "a--2d--5f",
		"nightly/periodic-17": "nightly--2fperiodic-17",
	} {
		if name := escapeName(id); name != want {
			t.Errorf("%q became %q", id, name)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching("[-_a-bA]{1,8}")).Draw(r, "id")
		if back := unescapeName(t, escapeName(id)); back != id {
			r.Fatalf("%q became %q", id, back)
		}
	})
}

// The lists that the guide names hold whatever runs in the cluster.
func TestNomad_ImportsEveryKindOfJobWithoutJobFiles(t *testing.T) {
	agent := func(id, node string) *nomad.AllocationListStub {
		a := nomadAllocation(id, "Node_Exporter", "Exporter", node, "running", time.Hour)
		a.JobType, a.Namespace = "system", "Infra_Team"
		return a
	}
	child := nomadAllocation("c1", "Backup_DB/periodic-1772366400", "dump", "id-1", "running", time.Minute)
	child.JobType = "batch"
	dispatched := nomadAllocation("d1", "encode/dispatch-1772366400-0a1b", "run", "id-2", "running", time.Minute)
	dispatched.JobType = "batch"
	stub := func(namespace, id, kind string) *nomad.JobListStub {
		return &nomad.JobListStub{ID: id, Namespace: namespace, Type: kind, Priority: 70, Status: "running", JobSummary: &nomad.JobSummary{}}
	}
	parent := stub("default", "Backup_DB", "batch")
	parent.Periodic = true
	// Nomad marks a dispatched child like its parent.
	dispatch := stub("default", dispatched.JobID, "batch")
	dispatch.ParameterizedJob, dispatch.ParentID = true, "encode"
	files := fstest.MapFS{
		"nodes.json": written(t, []*nomad.NodeListStub{
			{ID: "id-1", Name: "Node_1", Datacenter: "EU_1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)},
			{ID: "id-2", Name: "n2", Datacenter: "EU_1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)},
			{ID: "id-3", Name: "n3", Datacenter: "EU_1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)},
		}),
		"allocations.json": written(t, []*nomad.AllocationListStub{agent("s1", "id-1"), agent("s2", "id-2"), child, dispatched}),
		"jobs.json":        written(t, []*nomad.JobListStub{stub("Infra_Team", "Node_Exporter", "system"), parent, stub("default", child.JobID, "batch"), dispatch}),
	}
	f, report, err := Nomad(Options{}, Source{FS: files})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, j := range f.Jobs {
		have[unescapeName(t, j.ID)] = j.Type
	}
	want := map[string]string{"Node_Exporter": "system", child.JobID: "batch", dispatched.JobID: "batch"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	if len(f.Running) != 4 || len(f.Events) != 0 {
		t.Errorf("running %+v, events %+v", f.Running, f.Events)
	}
	for _, j := range f.Jobs {
		if c := j.Groups[0].Constraints; j.Type == "system" && (len(c) != 1 || len(c[0].Values) != 2 || *j.Groups[0].Count != 1) {
			t.Errorf("system job %+v", j)
		}
	}
	noted := slices.ContainsFunc(report.Notes, func(n Note) bool { return strings.Contains(n.Handling, "hexadecimal") && n.Count == 7 })
	if !noted {
		t.Errorf("notes %+v", report.Notes)
	}
}

// Any text that Nomad accepts as a name is imported, wherever it occurs.
func TestNomad_ImportsAnyName(t *testing.T) {
	t.Parallel()
	name := rapid.OneOf(rapid.SampledFrom([]string{"Big", "a", "a.a", "node.class", "default", "default.a", "EU_1", "--", "Ä ö", "x/y", strings.Repeat("L", 200)}), rapid.StringN(1, 12, -1))
	rapid.Check(t, func(r *rapid.T) {
		draw := func(label string) string { return name.Draw(r, label) }
		var nodes []*nomad.NodeListStub
		var allocs []*nomad.AllocationListStub
		var jobs []any
		for i := range rapid.IntRange(1, 4).Draw(r, "nodes") {
			id := fmt.Sprintf("id-%d", i)
			resources := nomadResources(1000)
			resources.Devices[0].Name = draw("device")
			nodes = append(nodes, &nomad.NodeListStub{
				ID: id, Name: draw("node"), Datacenter: draw("datacenter"), NodeClass: draw("class"), NodePool: draw("pool"), Status: "ready",
				SchedulingEligibility: "eligible", Attributes: map[string]string{draw("attribute"): draw("value")}, NodeResources: resources,
			})
		}
		kinds := rapid.SampledFrom([]string{"service", "batch", "system", "sysbatch"})
		for i := range rapid.IntRange(1, 4).Draw(r, "jobs") {
			job, namespace, kind, group := draw("job"), draw("namespace"), kinds.Draw(r, "type"), draw("group")
			for k := range rapid.IntRange(0, 3).Draw(r, "allocations") {
				a := nomadAllocation(fmt.Sprintf("a%d-%d", i, k), job, group, nodes[k%len(nodes)].ID, "running", time.Hour)
				a.JobType, a.Namespace = kind, namespace
				if rapid.Bool().Draw(r, "without resources") {
					a.AllocatedResources = nil
				}
				allocs = append(allocs, a)
			}
			if rapid.Bool().Draw(r, "list") {
				jobs = append(jobs, &nomad.JobListStub{ID: job, Namespace: namespace, Type: kind, Priority: rapid.IntRange(1, 32767).Draw(r, "priority"), Status: "running", JobSummary: &nomad.JobSummary{}})
				continue
			}
			j := nomad.NewServiceJob(job, job, "global", 50).AddDatacenter(draw("datacenter")).AddTaskGroup(nomad.NewTaskGroup(group, 1).AddTask(nomad.NewTask("t", "exec")))
			j.Namespace, j.Type = &namespace, &kind
			j.Constraints = []*nomad.Constraint{nomad.NewConstraint("${node.class}", "=", draw("class")), nomad.NewConstraint("${node.unique.id}", "!=", nodes[0].ID)}
			j.Affinities = []*nomad.Affinity{nomad.NewAffinity("${node.datacenter}", "=", draw("datacenter"), 50)}
			j.Spreads = []*nomad.Spread{nomad.NewSpread("${node.datacenter}", 50, []*nomad.SpreadTarget{nomad.NewSpreadTarget(draw("datacenter"), 100)})}
			jobs = append(jobs, j)
		}
		// The import validates its result.
		f, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, append(jobs, nodes, allocs)...)}})
		if err != nil {
			r.Fatal(err)
		}
		if report.Running != len(f.Running) || len(f.Running) > len(allocs) {
			r.Fatalf("%d of %d allocations run, %d reported", len(f.Running), len(allocs), report.Running)
		}
	})
}

// Conditions on classes, datacenters and nodes hold for the names that the import assigns.
func TestNomad_ReplacesNamesInConditions(t *testing.T) {
	t.Parallel()
	node := &nomad.NodeListStub{
		ID: "id-1", Name: "Node_1", Datacenter: "EU", NodeClass: "GPU", Status: "ready", SchedulingEligibility: "eligible",
		Attributes: map[string]string{"kernel.name": "linux"}, NodeResources: nomadResources(4000),
	}
	j := nomad.NewServiceJob("web", "web", "global", 50).AddDatacenter("EU").AddTaskGroup(nomad.NewTaskGroup("g", 1).AddTask(nomad.NewTask("t", "exec")))
	j.Constraints = []*nomad.Constraint{
		nomad.NewConstraint("${node.class}", "=", "GPU"), nomad.NewConstraint("${node.unique.id}", "=", "id-1"), nomad.NewConstraint("${node.datacenter}", "regexp", "^E"),
	}
	j.Affinities = []*nomad.Affinity{nomad.NewAffinity("${node.class}", "=", "GPU", 50)}
	j.Spreads = []*nomad.Spread{nomad.NewSpread("${node.datacenter}", 50, []*nomad.SpreadTarget{nomad.NewSpreadTarget("EU", 100)})}
	f, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, []*nomad.NodeListStub{node}, j)}})
	if err != nil {
		t.Fatal(err)
	}
	const eu, gpu = "--45--55", "--47--50--55"
	want := scenario.Group{
		Constraints: []scenario.Constraint{
			{Attribute: "node.class", Operator: "=", Value: gpu}, {Attribute: "node.id", Operator: "=", Value: "--4eode--5f1"}, {Attribute: "node.datacenter", Operator: "regexp", Value: "^E"},
		},
		Affinities: []scenario.Affinity{{Constraint: scenario.Constraint{Attribute: "node.class", Operator: "=", Value: gpu}, Weight: 50}},
	}
	g := f.Jobs[0].Groups[0]
	if diff := cmp.Diff(want, scenario.Group{Constraints: g.Constraints, Affinities: g.Affinities}); diff != "" {
		t.Error(diff)
	}
	if n := f.Nodes[0]; n.Class != gpu || n.Datacenter != eu || f.Jobs[0].Datacenters[0] != eu || len(g.Spread) != 1 || g.Spread[0].Targets[eu] != 100 {
		t.Errorf("node %+v, spread %+v", n, g.Spread)
	}
	if !slices.ContainsFunc(report.Notes, func(n Note) bool { return n.Count == 1 && strings.HasPrefix(n.Subject, "patterns on names") }) {
		t.Errorf("notes %+v", report.Notes)
	}
}

// While a job is updated, allocations of its earlier version run, which may request less
// than the current one.
func TestNomad_ImportsNodesThatRequestsExceed(t *testing.T) {
	t.Parallel()
	node := &nomad.Node{
		ID: "id-1", Name: "n1", Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(2000),
		ReservedResources: &nomad.NodeReservedResources{Cpu: nomad.NodeReservedCpuResources{CpuShares: 100}, Memory: nomad.NodeReservedMemoryResources{MemoryMB: 1 << 20}},
	}
	task := nomad.NewTask("t", "exec").Require(&nomad.Resources{CPU: new(1500), MemoryMB: new(10)})
	j := nomad.NewServiceJob("web", "web", "global", 50).AddDatacenter("dc1").AddTaskGroup(nomad.NewTaskGroup("g", 2).AddTask(task))
	allocs := []*nomad.AllocationListStub{nomadAllocation("a1", "web", "g", "id-1", "running", time.Hour), nomadAllocation("a2", "web", "g", "id-1", "running", time.Hour)}
	f, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, node, allocs, j)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Nodes[0].Capacity; got["cpu"] != 3100 || got["memory"] != 8020 {
		t.Errorf("capacity %v", got)
	}
	if !slices.ContainsFunc(report.Notes, func(n Note) bool { return n.Count == 1 && n.Handling == "raised to the requests" }) {
		t.Errorf("notes %+v", report.Notes)
	}
}

// The count of a system job is the number on each node, also if it is stopped or some of
// its instances have ended.
func TestNomad_CountsConstraintsOnAllGroupsOfAJob(t *testing.T) {
	t.Parallel()
	group := func(name string) *nomad.TaskGroup {
		return nomad.NewTaskGroup(name, 1).AddTask(nomad.NewTask("t", "exec"))
	}
	apart := nomad.NewConstraint("", "distinct_hosts", "true")
	ofJob := nomad.NewServiceJob("of-job", "of-job", "global", 50).AddTaskGroup(group("a")).AddTaskGroup(group("b")).Constrain(apart)
	ofGroup := nomad.NewServiceJob("of-group", "of-group", "global", 50).AddTaskGroup(group("a").Constrain(apart)).AddTaskGroup(group("b").Constrain(apart))
	alone := nomad.NewServiceJob("alone", "alone", "global", 50).AddTaskGroup(group("a")).Constrain(apart)
	nodes := []*nomad.NodeListStub{{ID: "id-1", Name: "n1", Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)}}
	_, report, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, nodes, ofJob, ofGroup, alone)}})
	if err != nil {
		t.Fatal(err)
	}
	if text := report.String(); !strings.Contains(text, "1  jobs with several groups and distinct_hosts of the job: applied to each group separately") {
		t.Errorf("the report does not count the job:\n%s", text)
	}
}

func TestNomad_ImportsSystemJobsWithSpecification(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  string
		stop  bool
		ended bool
		bound bool
	}{
		"system":                    {kind: "system"},
		"stopped system":            {kind: "system", stop: true, bound: true},
		"sysbatch":                  {kind: "sysbatch"},
		"sysbatch, partly complete": {kind: "sysbatch", ended: true, bound: true},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*nomad.NodeListStub
			var allocs []*nomad.AllocationListStub
			for i, id := range []string{"id-1", "id-2", "id-3"} {
				nodes = append(nodes, &nomad.NodeListStub{ID: id, Name: fmt.Sprintf("n%d", i+1), Datacenter: "dc1", Status: "ready", SchedulingEligibility: "eligible", NodeResources: nomadResources(4000)})
				a := nomadAllocation(fmt.Sprintf("a%d", i), "agent", "g", id, "running", time.Hour)
				if a.JobType = c.kind; i == 2 && c.ended {
					a.ClientStatus = "complete"
				}
				allocs = append(allocs, a)
			}
			j := nomad.NewServiceJob("agent", "agent", "global", 50).AddDatacenter("dc1").AddTaskGroup(nomad.NewTaskGroup("g", 1).AddTask(nomad.NewTask("t", "exec")))
			j.Type, j.Stop = &c.kind, &c.stop
			f, _, err := Nomad(Options{}, Source{FS: fstest.MapFS{"dump.json": written(t, nodes, allocs, j)}})
			if err != nil {
				t.Fatal(err)
			}
			var bound []string
			for _, k := range f.Jobs[0].Groups[0].Constraints {
				if k.Attribute == "node.id" {
					bound = k.Values
				}
			}
			var want []string
			for _, r := range f.Running {
				if c.bound {
					want = append(want, r.Node)
				}
			}
			if g := f.Jobs[0].Groups[0]; *g.Count != 1 || !slices.Equal(bound, want) {
				t.Errorf("count %d, bound to %v, want %v", *g.Count, bound, want)
			}
		})
	}
}
