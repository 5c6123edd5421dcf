package jobspec

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
)

func TestSchedulingOnly_NomadJob(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/nomad-docker.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load("shop.hcl", src, Options{}); err == nil {
		t.Error("Load accepted unsupported fields without SchedulingOnly")
	}
	f, m := schedulingOnly(t, "shop.hcl", string(src))
	g := m.Groups[0]
	if m.Priority != 80 || g.Count != 3 || len(g.Tasks) != 1 || f.NodePool() != "web" {
		t.Errorf("priority %d, count %d, %d tasks, pool %s", m.Priority, g.Count, len(g.Tasks), f.NodePool())
	}
	if diff := cmp.Diff(model.Resources{"cpu": 500, "memory": 256}, g.Resources); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint16{9090}, g.Ports); diff != "" || len(g.Constraints) == 0 {
		t.Error(diff, g.Constraints)
	}
	want := []IgnoredField{
		{Name: "artifact", Count: 1},
		{Name: "logs", Count: 1},
		{Name: "memory_max", Count: 1},
		{Name: "network mode", Count: 1},
		{Name: "port without static", Count: 1},
		{Name: "reschedule", Count: 1},
		{Name: "restart", Count: 1},
		{Name: "service", Count: 1},
		{Name: "task that runs before or after the others", Count: 1},
		{Name: "template", Count: 1},
		{Name: "update", Count: 1},
		{Name: "vault", Count: 1},
		{Name: "volume", Count: 1, AffectsPlacement: true},
		{Name: "volume_mount", Count: 1},
	}
	if diff := cmp.Diff(want, f.Ignored()); diff != "" {
		t.Error(diff)
	}
}

func TestSchedulingOnly_APIJSON(t *testing.T) {
	t.Parallel()
	f, m := schedulingOnly(t, "shop.json", `{"Job": {"ID": "shop", "Name": "shop", "Priority": 70, "NodePool": "web", "Update": {"MaxParallel": 1}, "Status": "running",
		"TaskGroups": [{"Name": "web", "Count": 2, "RestartPolicy": {"Attempts": 2}, "Services": [{"Name": "shop"}],
			"Networks": [{"Mode": "bridge", "DynamicPorts": [{"Label": "http", "To": 80}], "ReservedPorts": [{"Label": "grpc-api", "Value": 9090}]}],
			"Tasks": [
				{"Name": "first", "Driver": "docker", "Lifecycle": {"Hook": "prestart"}, "Resources": {"CPU": 4000}},
				{"Name": "web", "Driver": "docker", "Config": {"image": "shop:1"}, "Meta": {"a": "b"}, "Templates": [{"EmbeddedTmpl": "x"}], "LogConfig": {"MaxFiles": 3},
				 "Resources": {"CPU": 500, "MemoryMB": 256, "MemoryMaxMB": 512}}]}]}}`)
	g := m.Groups[0]
	if diff := cmp.Diff(model.Resources{"cpu": 500, "memory": 256}, g.Resources); diff != "" || m.Priority != 70 || g.Count != 2 || f.NodePool() != "web" {
		t.Error(diff, m.Priority, g.Count, f.NodePool())
	}
	if diff := cmp.Diff([]uint16{9090}, g.Ports); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, a := range f.Ignored() {
		names = append(names, a.Name)
	}
	want := "LogConfig MemoryMaxMB RestartPolicy Services Templates Update network mode port without static task that runs before or after the others"
	if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
		t.Error(diff)
	}
}

// Fields that affect Nomad's scheduling and that cede does not support are rejected
// by name, and so are misspelt fields.
func TestSchedulingOnly_RejectsUnsupportedSchedulingFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{`cores = 2`, `"cores"`},
		{`memroy = "x"`, "memroy"},
		{"numa { affinity = \"require\" }", `"numa"`},
		{`cpu = "two"`, "cpu: expected an amount"},
	} {
		src := "job \"j\" {\n group \"g\" {\n task \"t\" {\n driver = \"docker\"\n resources {\n" + c.line + "\n}\n}\n}\n}\n"
		_, err := Load("j.hcl", []byte(src), Options{SchedulingOnly: true})
		if err == nil || !strings.Contains(err.Error(), "j.hcl:6:") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}

func schedulingOnly(t *testing.T, name, src string) (*File, *model.Job) {
	t.Helper()
	f, err := Load(name, []byte(src), Options{SchedulingOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model()
	if err != nil {
		t.Fatal(err)
	}
	return f, m
}
