package gpushare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
)

// task returns a job that requests units of each of several GPUs.
func task(id string, cpu int64, gpus int, units int32) *model.Job {
	g := &model.Group{Name: "g", Count: 1, MaxParallelEvictions: 1, Resources: model.Resources{"cpu": cpu}}
	for range gpus {
		g.Devices = append(g.Devices, model.DeviceRequest{ID: "nvidia/gpu", Count: units})
	}
	return &model.Job{Namespace: model.DefaultNamespace, ID: id, Type: model.JobBatch, Priority: 50, Groups: []*model.Group{g}}
}

// machine returns a node with GPUs.
func machine(id string, cpu int64, gpus int) *model.Node {
	n := &model.Node{ID: id, Datacenter: "dc1", Capacity: model.Resources{"cpu": cpu}}
	for i := range gpus {
		n.Devices = append(n.Devices, model.Device{ID: fmt.Sprintf("nvidia/gpu/g2-%d", i), Count: unitsPerGPU})
	}
	return n
}

func newTrace(t *testing.T, nodes []*model.Node, tasks ...*model.Job) *Trace {
	t.Helper()
	trace, err := NewTrace(nodes, tasks)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// mixed is half whole GPUs, a quarter shares and a quarter processors.
func mixed(t *testing.T) *Trace {
	t.Helper()
	return newTrace(t, []*model.Node{machine("n", 8000, 2)},
		task("a", 1000, 1, 1000), task("b", 1000, 1, 1000), task("c", 4000, 1, 300), task("d", 500, 0, 0))
}

func TestDistribution_Fragments(t *testing.T) {
	for _, c := range []struct {
		name string
		cpu  int64
		gpus []int32
		want int64
	}{
		// Whole GPUs cannot use 400 units, processors cannot use 1,400.
		{"shares can use all", 8000, []int32{1000, 400}, 2*400 + 0 + 1400},
		{"shares lack processors", 2000, []int32{1000, 400}, 2*400 + 1400 + 1400},
		{"all lack processors", 500, []int32{1000, 400}, 4 * 1400},
		{"whole GPUs lack one", 8000, []int32{600, 400}, 2*1000 + 0 + 1000},
		{"shares can use one of two", 8000, []int32{300, 200}, 2*500 + 200 + 500},
		{"all is allocated", 8000, []int32{0, 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mixed(t).distribution
			if got := d.fragments(c.cpu, c.gpus); got != c.want || d.tasks != 4 {
				t.Errorf("%d fragments of %d tasks, want %d of 4", got, d.tasks, c.want)
			}
		})
	}
	several := newTrace(t, []*model.Node{machine("n", 8000, 2)}, task("a", 1000, 2, 1000)).distribution
	if one, two := several.fragments(8000, []int32{1000, 400}), several.fragments(8000, []int32{1000, 1000}); one != 1400 || two != 0 {
		t.Errorf("%d and %d fragments for a task of two GPUs, want 1400 and 0", one, two)
	}
}

// The distribution has the most frequent requests that are 95 % of the tasks.
func TestDistribution_OmitsRareRequests(t *testing.T) {
	var tasks []*model.Job
	for i := range 100 {
		cpu := int64(1000)
		if i >= 94 {
			cpu = int64(i) // six requests of one task each
		}
		tasks = append(tasks, task(fmt.Sprint(i), cpu, 1, 500))
	}
	d := newTrace(t, []*model.Node{machine("n", 8000, 2)}, tasks...).distribution
	want := []frequency{{request{1000, 1, 500}, 94}, {request{99, 1, 500}, 1}}
	if diff := cmp.Diff(want, d.list, cmp.AllowUnexported(frequency{}, request{})); diff != "" {
		t.Errorf("distribution (-want +got):\n%s", diff)
	}
}

func TestScores(t *testing.T) {
	trace := mixed(t)
	n := &node{Node: trace.nodes[0], free: trace.nodes[0].Avail, devices: []int32{1000, 400}}
	ask := &model.Ask{Devices: []model.DeviceRequest{{ID: "nvidia/gpu", Count: 400}}}
	exact := gradient(&trace.distribution)
	for _, c := range []struct {
		name  string
		score score
		want  [2]float64 // on each GPU
	}{
		// Before: 2,200, see above. After: 3,000 and 1,000.
		{"gradient", exact, [2]float64{800, -1200}},
		// An increase by 800 ÷ 4 units is 0.2 GPUs, with a sigmoid of 0.4502; the other 0.5744.
		{"rounded gradient", rounded(exact, &trace.distribution), [2]float64{-45, -57}},
		// All processors and half of the units are left.
		{"best fit", bestFit(trace.nodes), [2]float64{0.75 + 0.6e-9, 0.75}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for gpu, want := range c.want {
				if got := c.score(n, ask, []int16{int16(gpu)}); math.Abs(got-want) > 1e-12 {
					t.Errorf("score %v on GPU %d, want %v", got, gpu, want)
				}
			}
		})
	}
}

func measure(t *testing.T, trace *Trace, c Config) *Result {
	t.Helper()
	r, err := Measure(t.Context(), trace, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Two shares of 600 units never fit in one GPU, although their sum fits in two.
func TestMeasure_SharesDoNotStraddleGPUs(t *testing.T) {
	trace := newTrace(t, []*model.Node{machine("n", 8000, 2), {ID: "cpu", Datacenter: "dc1", Capacity: model.Resources{"cpu": 8000}}}, task("a", 1000, 1, 600))
	want := &Result{Arrived: 5, Placed: 2}
	for percent := range 151 {
		want.Allocated = append(want.Allocated, 0.6)
		if percent <= 30 {
			want.Allocated[percent] = 0.3
		}
	}
	for _, scheduler := range Schedulers() {
		t.Run(scheduler, func(t *testing.T) {
			if diff := cmp.Diff(want, measure(t, trace, Config{Scheduler: scheduler, Seed: 1, Until: 1.5})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// Whole GPUs fill the cluster, if the processors suffice for all.
func TestMeasure_WholeGPUsAreAllocatedCompletely(t *testing.T) {
	trace := newTrace(t, []*model.Node{machine("n1", 8000, 4), machine("n2", 8000, 8)}, task("a", 1000, 4, 1000))
	for _, scheduler := range Schedulers() {
		r := measure(t, trace, Config{Scheduler: scheduler, Seed: 2, Until: 1.3})
		if r.Placed != 3 || r.Allocated[100] != 1 {
			t.Errorf("%s places %d tasks on %.2f of the GPUs, want 3 on all", scheduler, r.Placed, r.Allocated[100])
		}
	}
}

func TestMeasure_SameConfigurationSameResult(t *testing.T) {
	trace := newTrace(t, []*model.Node{machine("n1", 9000, 2), machine("n2", 5000, 4), machine("n3", 7000, 4)},
		task("a", 1000, 1, 1000), task("b", 700, 1, 300), task("c", 900, 1, 600), task("d", 2000, 2, 1000), task("e", 500, 0, 0))
	for _, scheduler := range Schedulers() {
		a, b := measure(t, trace, Config{scheduler, 1, 1.3}), measure(t, trace, Config{scheduler, 1, 1.3})
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: two results (-first +second):\n%s", scheduler, diff)
		}
		if !slices.IsSorted(a.Allocated) || a.Allocated[130] > 1 || a.Placed == 0 || len(a.Allocated) < 131 {
			t.Errorf("%s: implausible curve %v, %d tasks placed", scheduler, a.Allocated, a.Placed)
		}
	}
}

func TestMeasure_EndsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, mixed(t), Config{"fgd", 1, 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestTrace_ArrivalsContainEveryTaskBeforeRepeating(t *testing.T) {
	trace := newTrace(t, []*model.Node{machine("n", 8000, 4)}, task("a", 1, 1, 1000), task("b", 2, 1, 1000), task("c", 3, 1, 500))
	counts := map[string]int{}
	for _, j := range trace.arrivals(newRandom(3, 1), 2) {
		counts[j.ID]++
	}
	if len(counts) != 3 || counts["a"]+counts["b"]+counts["c"]/2 < 7 {
		t.Errorf("arrivals %v, want all tasks and 8 GPUs", counts)
	}
}

func TestNewTrace_RequiresGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []*model.Node
		tasks []*model.Job
	}{
		"no GPUs":     {[]*model.Node{machine("n", 8000, 0)}, []*model.Job{task("a", 1, 1, 1000)}},
		"no requests": {[]*model.Node{machine("n", 8000, 1)}, []*model.Job{task("a", 1, 0, 0)}},
	} {
		if _, err := NewTrace(c.nodes, c.tasks); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The curves are within 0.3 percentage points of the published ones: the means of ten seeds
// at 94, 100 and 130 % in the repository of the authors.
func TestMeasure_OpenbMatchesPublishedCurves(t *testing.T) {
	root := os.Getenv("CEDE_TRACES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "traces")
	}
	trace, err := Load(filepath.Join(root, "openb-2023"), "")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the trace is missing; set CEDE_TRACES to the folder of the traces")
	}
	if err != nil {
		t.Fatal(err)
	}
	if trace.Nodes() != 1213 || trace.GPUs() != 6212 || trace.Tasks() != 8152 {
		t.Errorf("%d nodes, %d GPUs and %d tasks, want 1213, 6212 and 8152", trace.Nodes(), trace.GPUs(), trace.Tasks())
	}
	for _, c := range []struct {
		scheduler          string
		at94, at100, at130 float64
	}{{"best-fit", 92.81, 92.86, 93.08}, {"fgd", 93.99, 95.23, 95.39}} {
		r := measure(t, trace, Config{c.scheduler, 1, 1.3})
		for percent, want := range map[int]float64{94: c.at94, 100: c.at100, 130: c.at130} {
			if got := 100 * r.Allocated[percent]; math.Abs(got-want) > 0.3 {
				t.Errorf("%s: %.2f %% allocated at %d %%, want about %.2f %%", c.scheduler, got, percent, want)
			}
		}
	}
}
