package importer

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// kubeCluster writes a dump of a realistic cluster in the format of kubectl: Deployments,
// StatefulSets, Jobs and two DaemonSets, each with the metadata that is irrelevant to
// scheduling.
type kubeCluster struct {
	w           *bufio.Writer
	rng         *rand.Rand
	nodes, pods int
	written     int
}

func writeKubeCluster(w io.Writer, nodes, pods int) error {
	c := &kubeCluster{w: bufio.NewWriterSize(w, 1<<20), rng: rand.New(rand.NewPCG(1, 2)), nodes: nodes, pods: pods}
	c.write()
	return c.w.Flush()
}

func (c *kubeCluster) write() {
	fmt.Fprint(c.w, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	for i := range c.nodes {
		c.node(i)
	}
	for i, name := range []string{"free", "standard", "production"} {
		c.object(fmt.Sprintf(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":%q},"value":%d,"globalDefault":%t}`, name, i*1000, i == 1))
	}
	daemons := min(2, c.pods/c.nodes)
	for d := range daemons {
		for i := range c.nodes {
			c.pod("kube-system", fmt.Sprintf("agent-%d-%05d", d, i), "DaemonSet", fmt.Sprintf("agent-%d", d), i, 2000001000,
				`"tolerations":[{"operator":"Exists"}],`, fmt.Sprintf(`{"app":"agent-%d"}`, d), 100, 64)
		}
	}
	for app, left := 0, c.pods-daemons*c.nodes; left > 0; app++ {
		n := min(left, 1+c.rng.IntN(40))
		c.app(app, n)
		left -= n
	}
	fmt.Fprint(c.w, "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n")
}

// app writes the pods of one workload, and a budget for some of them.
func (c *kubeCluster) app(app, n int) {
	namespace, name := fmt.Sprintf("team-%d", app%50), fmt.Sprintf("app-%d", app)
	kind, owner, labels := "ReplicaSet", name+"-6d4cf56db6", fmt.Sprintf(`{"app":%q,"pod-template-hash":"6d4cf56db6"}`, name)
	extra := `"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],`
	priority := app % 3 * 1000
	switch app % 5 {
	case 0:
		extra += fmt.Sprintf(`"topologySpreadConstraints":[{"maxSkew":5,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":%q}}}],`, name)
	case 1:
		extra += fmt.Sprintf(`"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":{"labelSelector":{"matchLabels":{"app":%q}},"topologyKey":"kubernetes.io/hostname"}}]}},`, name)
	case 2:
		kind, owner, labels = "StatefulSet", name, fmt.Sprintf(`{"app":%q}`, name)
	case 3:
		kind, owner, labels = "Job", name, fmt.Sprintf(`{"job-name":%q}`, name)
	}
	for i := range n {
		node := c.rng.IntN(c.nodes)
		if c.rng.IntN(500) == 0 {
			node = -1
		}
		c.pod(namespace, fmt.Sprintf("%s-%d", owner, i), kind, owner, node, priority, extra, labels, 100+app%4*100, 128+app%7*64)
	}
	if app%8 == 0 {
		c.object(fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":%q,"namespace":%q},"spec":{"maxUnavailable":"25%%","selector":{"matchLabels":{"app":%q}}}}`, name, namespace, name))
	}
}

func (c *kubeCluster) object(text string) {
	if c.written++; c.written > 1 {
		fmt.Fprint(c.w, ",\n")
	}
	fmt.Fprint(c.w, "        ", text)
}

func (c *kubeCluster) node(i int) {
	c.object(fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%05d","creationTimestamp":"2026-01-01T00:00:00Z",
            "labels":{"kubernetes.io/hostname":"node-%05d","kubernetes.io/arch":"amd64","topology.kubernetes.io/zone":"zone-%d","node-role.kubernetes.io/worker":""},
            "managedFields":[%s]},
        "spec":{"podCIDR":"10.0.0.0/24"},
        "status":{"allocatable":{"cpu":"15890m","ephemeral-storage":"95551679124","hugepages-2Mi":"0","memory":"64310272Ki","pods":"110"},
            "capacity":{"cpu":"16","memory":"65334272Ki","pods":"110"},
            "conditions":[{"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-02-01T00:00:00Z"},{"type":"Ready","status":"True","lastHeartbeatTime":"2026-02-01T00:00:00Z"}],
            "images":[%s]}}`, i, i, i%3, managed(3), strings.Repeat(`{"names":["registry.example.com/team/image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],"sizeBytes":123456789},`, 30)+`{"names":[],"sizeBytes":1}`))
}

// managed returns the managedFields that the API server writes.
func managed(n int) string {
	one := `{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-01-20T10:00:00Z"}`
	return strings.TrimSuffix(strings.Repeat(one+",\n                ", n), ",\n                ")
}

func (c *kubeCluster) pod(namespace, name, kind, owner string, node, priority int, extra, labels string, cpu, memory int) {
	on, phase := fmt.Sprintf(`"nodeName":"node-%05d",`, node), "Running"
	if node < 0 {
		on, phase = "", "Pending"
	}
	class := ""
	if priority < 10000 {
		class = fmt.Sprintf(`"priorityClassName":%q,`, []string{"free", "standard", "production"}[priority/1000])
	}
	c.object(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"uid":"01234567-89ab-cdef-0123-456789abcdef","labels":%s,
            "annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-20T10:00:00Z","checksum/config":"0123456789abcdef0123456789abcdef"},
            "creationTimestamp":"2026-01-20T10:00:00Z","ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"controller":true}],
            "managedFields":[%s]},
        "spec":{%s%s%s"priority":%d,"preemptionPolicy":"PreemptLowerPriority","restartPolicy":"Always","schedulerName":"default-scheduler","terminationGracePeriodSeconds":30,
            "containers":[{"name":"main","image":"registry.example.com/team/image:1.2.3","env":[%s],"resources":{"requests":{"cpu":"%dm","memory":"%dMi"},"limits":{"memory":"%dMi"}},
                "livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10},"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access","readOnly":true}]}],
            "volumes":[{"name":"kube-api-access","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}]}}]},
        "status":{"phase":%q,"startTime":"2026-01-20T10:00:%02dZ","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}],
            "containerStatuses":[{"name":"main","image":"registry.example.com/team/image:1.2.3","imageID":"sha256:0123456789abcdef","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-01-20T10:00:05Z"}}}]}}`,
		name, namespace, labels, kind, owner, managed(2), on, class, extra, priority,
		strings.TrimSuffix(strings.Repeat(`{"name":"SOME_VARIABLE_OF_THE_PROGRAM","value":"a value of some length"},`, 20), ","),
		cpu, memory, memory, phase, c.written%60))
}

// dumpFile returns a dump with the given number of nodes and ten times as many pods.
func dumpFile(t testing.TB, nodes int) Source {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "dump.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := writeKubeCluster(f, nodes, 10*nodes); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return Source{FS: os.DirFS(dir), File: "dump.json"}
}

// TestKube_WholeCluster imports a tenth of a cluster of 5,000 nodes and 50,000 pods, or all
// of it if CEDE_SOAK is set. BenchmarkKube measures the cost.
func TestKube_WholeCluster(t *testing.T) {
	t.Parallel()
	nodes := soak.Count(500, 5000)
	f, r, err := Kube(Options{}, dumpFile(t, nodes))
	if err != nil {
		t.Fatal(err)
	}
	if r.Nodes != nodes || r.Tasks != 10*nodes || r.TasksRead != 10*nodes {
		t.Errorf("%d nodes and %d of %d pods, want %d and %d", r.Nodes, r.Tasks, r.TasksRead, nodes, 10*nodes)
	}
	if r.Running == r.Tasks || r.Running < r.Tasks*99/100 || len(f.Events) == 0 {
		t.Errorf("%d of %d pods run and %d jobs are submitted; one in 500 is pending", r.Running, r.Tasks, len(f.Events))
	}
	system := 0
	for i := range f.Jobs {
		if f.Jobs[i].Type == "system" {
			system++
		}
	}
	if system != 2 || len(f.Budgets) == 0 {
		t.Errorf("%d DaemonSets and %d budgets, want 2 and some", system, len(f.Budgets))
	}
	var text strings.Builder
	if err := scenario.Encode(&text, f, scenario.JSON); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Decode("s.json", strings.NewReader(text.String())); err != nil {
		t.Errorf("cannot read the encoded scenario: %v", err)
	}
}

// BenchmarkKube imports a dump of 5,000 nodes and 50,000 pods within 10 s and 2 GiB.
func BenchmarkKube(b *testing.B) {
	src := dumpFile(b, 5000)
	info, err := os.Stat(filepath.Join(fmt.Sprint(src.FS), src.File))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		if _, _, err := Kube(Options{}, src); err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapSys)/(1<<20), "heap-MiB")
	}
}
