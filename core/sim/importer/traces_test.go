package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// realTrace returns the folder of a real trace in CEDE_TRACES. The traces are not part of
// the repository; the test is skipped if the folder does not exist.
func realTrace(t testing.TB, name string) Source {
	t.Helper()
	root := os.Getenv("CEDE_TRACES")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "traces")
	}
	src, err := Open(filepath.Join(root, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s in %s; set CEDE_TRACES to the folder of the traces", name, root)
	}
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func mustImport(t testing.TB, do func(Options, Source) (*scenario.File, *Report, error), opts Options, src Source) (*scenario.File, *Report) {
	t.Helper()
	f, r, err := do(opts, src)
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// total returns the sum of the nodes' capacities.
func total(f *scenario.File, resource string) (sum int64) {
	for i := range f.Nodes {
		sum += f.Nodes[i].Capacity[resource]
	}
	return sum
}

func noted(r *Report, what string) int {
	for _, n := range r.Notes {
		if strings.Contains(n.Subject, what) {
			return n.Count
		}
	}
	return 0
}

func TestOpenB_RealTraceMatchesReadme(t *testing.T) {
	t.Parallel()
	src := realTrace(t, "openb-2023")
	f, r := mustImport(t, OpenB, Options{}, src)
	checkImport(t, f, r)
	if r.Nodes != 1523 || r.TasksRead != 8152 || r.Jobs != 8152-897 || noted(r, "never scheduled") != 897 {
		t.Errorf("want 1,523 nodes and 8,152 pods, 897 of them never scheduled:\n%s", r)
	}
	if total(f, "cpu") != 125_514_000 || total(f, gpuMilli) != 6_212_000 {
		t.Errorf("%d millicores, %d thousandths of GPUs; want 125,514 cores and 6,212 GPUs", total(f, "cpu"), total(f, gpuMilli))
	}
	if n := noted(r, "fit no node"); n != 0 {
		t.Errorf("%d pods fit no node of the whole cluster", n)
	}
	bands := make(map[int32]int)
	for i := range f.Jobs {
		bands[*f.Jobs[i].Priority]++
	}
	if bands[80] != 4200 || bands[20] != 2957 {
		t.Errorf("bands %v; want 4,200 high and 2,957 low", bands)
	}
}

func TestOpenB_SubsetsMatchReadme(t *testing.T) {
	t.Parallel()
	src := realTrace(t, "openb-2023")
	for _, c := range []struct {
		opts        Options
		nodes       int
		cores, gpus int64
		unfit       int // five pods request 120 cores; the README mentions it only for subsets below 14 nodes
	}{
		{Options{Nodes: 16}, 16, 1138, 61, 5},
		{Options{Nodes: 14}, 14, 1026, 51, 5},
		{Options{Nodes: 12}, 12, 978, 45, 5},
		{Options{Keep: 0.07, Compress: 100}, 107, 0, 0, 5},
		{Options{Keep: 0.10, Compress: 100}, 152, 0, 0, 0},
		{Options{Keep: 0.25, Compress: 1000}, 381, 0, 0, 0},
		{Options{Keep: 0.50, Compress: 3000}, 762, 0, 0, 0},
	} {
		f, r := mustImport(t, OpenB, c.opts, src)
		checkImport(t, f, r)
		if len(f.Nodes) != c.nodes {
			t.Errorf("%s: %d nodes, want %d", f.Name, len(f.Nodes), c.nodes)
		}
		if c.cores != 0 && (total(f, "cpu") != c.cores*1000 || total(f, gpuMilli) != c.gpus*1000) {
			t.Errorf("%s: %d millicores, %d gpu-milli; want %d cores, %d GPUs", f.Name, total(f, "cpu"), total(f, gpuMilli), c.cores, c.gpus)
		}
		if n := noted(r, "fit no node"); n != c.unfit {
			t.Errorf("%s: %d pods fit no node, want %d", f.Name, n, c.unfit)
		}
	}
	f, _ := mustImport(t, OpenB, Options{}, src)
	slices.SortFunc(f.Nodes, func(a, b scenario.Node) int { return build.NodeOrder(a.ID, b.ID) })
	if f.Nodes[0].ID != "openb-node-1335" || f.Nodes[1].ID != "openb-node-0379" || f.Nodes[2].ID != "openb-node-0371" {
		t.Errorf("the order begins with %s, %s, %s", f.Nodes[0].ID, f.Nodes[1].ID, f.Nodes[2].ID)
	}
}

func TestOpenB_OtherListsNameModels(t *testing.T) {
	t.Parallel()
	f, r := mustImport(t, OpenB, Options{List: "gpuspec33"}, realTrace(t, "openb-2023"))
	checkImport(t, f, r)
	n := 0
	for i := range f.Jobs {
		n += len(f.Jobs[i].Groups[0].Constraints)
	}
	if n == 0 || n > 2388 {
		t.Errorf("%d pods with a model; want some of the 2,388", n)
	}
}

func TestGoogle_ImportsWholePart(t *testing.T) {
	t.Parallel()
	f, r := mustImport(t, Google, Options{}, realTrace(t, "google-2011"))
	checkImport(t, f, r)
	if r.Nodes != 12_477 || r.Tasks != 190_926 || r.TasksRead != 190_926 {
		t.Errorf("want 12,477 machines and 190,926 tasks:\n%s", r)
	}
	if cpu := total(f, "cpu"); cpu != 6603_25*googleCPU/100 {
		t.Errorf("%d millicores in all; want 6,603.25 × %d", cpu, googleCPU)
	}
	if f.Until == nil || f.Until.String() != "1h33m31.086s" {
		t.Errorf("ends at %v; want 5,611.086 s", f.Until)
	}
	if a, b := noted(r, "CPU request of zero"), noted(r, "CPU request that the trace hides"); a+b != 979 {
		t.Errorf("%d + %d tasks without a CPU request; want 979", a, b)
	}
	burst, last := 0, int32(100)
	byID := make(map[string]*scenario.Job)
	for i := range f.Jobs {
		byID[f.Jobs[i].ID] = &f.Jobs[i]
	}
	for _, e := range f.Events {
		if e.At > 0 {
			break
		}
		j := byID[e.Submit]
		if *j.Priority > last {
			t.Fatalf("%s has priority %d, after %d", j.ID, *j.Priority, last)
		}
		last = *j.Priority
		for k := range j.Groups {
			burst += *j.Groups[k].Count
		}
	}
	// The README counts 144,339 submit events at time 0, each of a different task.
	if burst != 144_339 {
		t.Errorf("%d tasks in the cold start; want 144,339", burst)
	}
}

func TestGoogle_SampleMatchesReadme(t *testing.T) {
	t.Parallel()
	f, r := mustImport(t, Google, Options{Sample: 0.1, NeverRan: NeverRanDrop}, realTrace(t, "google-2011"))
	checkImport(t, f, r)
	// The README excludes the tasks with hidden requests as well.
	if tasks := r.Tasks - noted(r, "CPU request that the trace hides"); r.Nodes != 1237 || tasks != 17_789 {
		t.Errorf("%d machines, %d tasks; want 1,237 and 17,789", r.Nodes, tasks)
	}
}

// hiding hides files, so that an import uses the raw ones.
type hiding struct {
	fs.FS
	names []string
}

func (h hiding) Open(name string) (fs.File, error) {
	for _, n := range h.names {
		if strings.HasPrefix(name, n) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	return h.FS.Open(name)
}

func TestGoogle_RawEventsMatchDerivedFiles(t *testing.T) {
	t.Parallel()
	src := realTrace(t, "google-2011")
	derived, dr := mustImport(t, Google, Options{}, src)
	raw, rr := mustImport(t, Google, Options{}, Source{FS: hiding{src.FS, []string{"tasks.csv", "machines.csv"}}})
	checkImport(t, raw, rr)
	if fmt.Sprint(derived.Nodes) != fmt.Sprint(raw.Nodes) {
		t.Error("the nodes differ")
	}
	if *derived.Until != *raw.Until || len(derived.Jobs) != len(raw.Jobs) || fmt.Sprint(derived.Events) != fmt.Sprint(raw.Events) {
		t.Error("the events differ")
	}
	// The derived files hide the requests of 291 tasks, which the raw files contain
	// in a later event, and may round a time that ends in half a millisecond either
	// way. Nothing else may differ.
	hidden := noted(dr, "CPU request that the trace hides")
	counts, rounded := 0, 0
	for i := range derived.Jobs {
		a, b := &derived.Jobs[i], &raw.Jobs[i]
		switch {
		case encoded(t, a) == encoded(t, b):
		case slices.ContainsFunc(a.Groups, func(g scenario.Group) bool { return g.Resources["cpu"] == 1 && g.Resources["memory"] == 1 }):
			counts++
		case closeDurations(a, b):
			rounded++
		default:
			t.Errorf("%s differs, although no request is hidden", a.ID)
		}
	}
	if hidden != 291 || counts == 0 || counts > hidden || rounded > 10 {
		t.Errorf("%d jobs differ in requests, %d in rounding; %d tasks hide their requests", counts, rounded, hidden)
	}
}

// closeDurations reports whether the tasks of two jobs have the same durations, with a
// tolerance of one second.
func closeDurations(a, b *scenario.Job) bool {
	x, y := durations(a), durations(b)
	return slices.EqualFunc(x, y, func(d, e scenario.Duration) bool {
		return (d-e).String() == "0s" || (d-e).String() == "1s" || (e-d).String() == "1s"
	})
}

func durations(j *scenario.Job) (list []scenario.Duration) {
	for i := range j.Groups {
		for range *j.Groups[i].Count {
			list = append(list, j.Groups[i].Duration)
		}
	}
	slices.Sort(list)
	return list
}

func encoded(t *testing.T, j *scenario.Job) string {
	t.Helper()
	var b bytes.Buffer
	if err := scenario.Encode(&b, &scenario.File{Version: 1, Name: "x", Jobs: []scenario.Job{*j}}, scenario.JSON); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSWF_RealTraceMatchesReadme(t *testing.T) {
	t.Parallel()
	src := realTrace(t, "metacentrum-2013")
	f, r := mustImport(t, SWF, Options{}, src)
	checkImport(t, f, r)
	if r.Nodes != 68 || r.Jobs != 17_898 || noted(r, "negative or unknown run time") != 2 {
		t.Errorf("want 68 nodes and 17,898 jobs, 2 rows left out:\n%s", r)
	}
	if total(f, "cpu") != 2_176_000 || (total(f, "memory")+512)/1024 != 14_403 {
		t.Errorf("%d millicores, %d MiB; want 2,176 cores, 14,403 GiB", total(f, "cpu"), total(f, "memory"))
	}
	if n := noted(r, "fit no node"); n != 1 {
		t.Errorf("%d tasks fit no node; want the one of the README", n)
	}
	bands := make(map[int32]int)
	for i := range f.Jobs {
		bands[*f.Jobs[i].Priority]++
	}
	// The two rows without a run time are in q_4d.
	if bands[80] != 5674 || bands[50] != 7794 || bands[20] != 4430 {
		t.Errorf("bands %v; want 5,674, 7,794 and 4,430", bands)
	}
	for keep, want := range map[float64]int{0.8: 54, 0.6: 41, 0.5: 34, 0.4: 27} {
		if f, _ := mustImport(t, SWF, Options{Keep: keep}, src); len(f.Nodes) != want {
			t.Errorf("keep %v: %d nodes, want %d", keep, len(f.Nodes), want)
		}
	}
}

func TestImports_AreDeterministic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts Options
		do   func(Options, Source) (*scenario.File, *Report, error)
		hide []string
	}{
		{"openb-2023", Options{Keep: 0.25, Compress: 3000, NeverRan: NeverRanKeep}, OpenB, nil},
		{"metacentrum-2013", Options{Compress: 7}, SWF, nil},
		{"google-2011", Options{Sample: 0.05}, Google, nil},
		{"google-2011", Options{Sample: 0.05}, Google, []string{"tasks.csv", "machines.csv"}},
	} {
		src := realTrace(t, c.name)
		src.FS = hiding{src.FS, c.hide}
		var first string
		for range 2 {
			var b bytes.Buffer
			f, r := mustImport(t, c.do, c.opts, src)
			if err := scenario.Encode(&b, f, scenario.JSON); err != nil {
				t.Fatal(err)
			}
			b.WriteString(r.String())
			if first == "" {
				first = b.String()
			} else if first != b.String() {
				t.Errorf("%s: two imports differ", c.name)
			}
		}
	}
}

func BenchmarkGoogle(b *testing.B) {
	src := realTrace(b, "google-2011")
	b.ReportAllocs()
	for b.Loop() {
		mustImport(b, Google, Options{}, src)
	}
}

func BenchmarkGoogleRaw(b *testing.B) {
	src := realTrace(b, "google-2011")
	src.FS = hiding{src.FS, []string{"tasks.csv", "machines.csv"}}
	b.ReportAllocs()
	for b.Loop() {
		mustImport(b, Google, Options{}, src)
	}
}
