package kuberec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const examples = "../../../../examples/traces/"

func encode(t testing.TB, f *scenario.File) string {
	t.Helper()
	var b strings.Builder
	if err := scenario.Encode(&b, f, scenario.JSON); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A trace in MessagePack, which SimKube writes, gives the scenario of the same trace in JSON.
func TestSimKube_MessagePackEqualsJSON(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples + "simkube/trace.json")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := os.ReadFile(examples + "simkube/nodes.json")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := SimKube(build.Options{Name: "t"}, build.Source{FS: fstest.MapFS{"t.json": {Data: text}, "nodes.json": {Data: nodes}}, File: "t.json"})
	if err != nil {
		t.Fatal(err)
	}
	packed := packTrace(t, text)
	got, _, err := SimKube(build.Options{Name: "t"}, build.Source{FS: fstest.MapFS{"t.mp": {Data: packed}, "nodes.json": {Data: nodes}}, File: "t.mp"})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := encode(t, want), encode(t, got); a != b {
		t.Errorf("JSON:\n%s\nMessagePack:\n%s", a, b)
	}
	for n := range packed {
		_, _, err := SimKube(build.Options{}, build.Source{FS: fstest.MapFS{"t.mp": {Data: packed[:n]}, "nodes.json": {Data: nodes}}, File: "t.mp"})
		if err == nil {
			t.Errorf("a trace that was truncated after %d of %d bytes is accepted", n, len(packed))
		}
	}
}

// packTrace converts a trace to MessagePack. Whole numbers are integers, as SimKube writes them.
func packTrace(t testing.TB, text []byte) []byte {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	h := &codec.MsgpackHandle{}
	h.WriteExt = true
	h.Canonical = true
	var b bytes.Buffer
	if err := codec.NewEncoder(&b, h).Encode(integers(v)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// kwokRecording returns a recording of so many pods that run one after another.
func kwokRecording(pods int) build.Source {
	var b bytes.Buffer
	b.WriteString("kind: Node\napiVersion: v1\nmetadata: {name: n}\nstatus: {allocatable: {cpu: \"4\"}}\n")
	for i := range pods {
		fmt.Fprintf(&b, `---
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: p-%d, namespace: default}
durationNanosecond: %d
method: create
template: {kind: Pod, metadata: {name: p-%d, namespace: default, labels: {app: web}}, spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
---
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: p-%d, namespace: default}
durationNanosecond: %d
method: patch
template: {spec: {nodeName: n}, status: {phase: Succeeded}}
`, i, i*1e9, i, i, i*1e9+5e8)
	}
	return build.Source{FS: fstest.MapFS{"r.yaml": {Data: b.Bytes()}}, File: "r.yaml"}
}

// A trace that is followed by another one, or by garbage, is refused instead of cut.
func TestSimKube_RefusesDataAfterTheTrace(t *testing.T) {
	t.Parallel()
	packed := simkubeTrace(t, 1)
	trace := packed.FS.(fstest.MapFS)["t.mp"].Data
	text := []byte(`{"version":3,"events":[{"ts":1,"applied_objs":[],"deleted_objs":[]}]}`)
	for name, data := range map[string][]byte{
		"two traces": slices.Concat(trace, trace), "MessagePack and a byte": slices.Concat(trace, []byte{0}),
		"two of JSON": slices.Concat(text, text), "JSON and text": slices.Concat(text, []byte("\nx")),
	} {
		src := packed
		src.FS = fstest.MapFS{"t.mp": {Data: data}, "nodes.json": packed.FS.(fstest.MapFS)["nodes.json"]}
		if _, _, err := SimKube(build.Options{}, src); err == nil || !strings.Contains(err.Error(), "the trace is followed by other data") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Lifetimes and numbers of pods that cannot be are errors, as the guide states.
func TestSimKube_RefusesInvalidValues(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples + "simkube/trace.json")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := os.ReadFile(examples + "simkube/nodes.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ file, old, new, want string }{
		"reversed lifetime":    {"t.json", "[1711248000, 1711248300]", "[1711248300, 1711248000]", "lifetime of shop/report from 1711248300 to 1711248000: the end must not precede the start"},
		"negative replicas":    {"t.json", `"replicas": 2`, `"replicas": -2`, "Deployment shop/web: invalid replicas -2; write 0 or more"},
		"negative parallelism": {"t.json", `"parallelism": 1`, `"parallelism": -1`, "Job shop/report: invalid parallelism -1"},
		"memory of a node":     {"nodes.json", `"memory": "`, `"memory": "x`, "memory: invalid quantity"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"t.json": string(text), "nodes.json": string(nodes)}
			changed := strings.Replace(files[x.file], x.old, x.new, 1)
			if changed == files[x.file] {
				t.Fatalf("%s lacks %s", x.file, x.old)
			}
			files[x.file] = changed
			fs := fstest.MapFS{}
			for name, text := range files {
				fs[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if _, _, err := SimKube(build.Options{}, build.Source{FS: fs, File: "t.json"}); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want one with %q", err, x.want)
			}
		})
	}
}

// simkubeTrace returns a trace of so many Deployments.
func simkubeTrace(t testing.TB, objects int) build.Source {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`{"version":3,"events":[`)
	for i := range objects {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"ts":%d,"applied_objs":[{"kind":"Deployment","metadata":{"name":"d-%d","namespace":"a"},"spec":{"replicas":1,"template":{"metadata":{"labels":{"app":"d-%d"}},"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}}}],"deleted_objs":[]}`, 1000+i, i, i)
	}
	b.WriteString(`],"index":{}}`)
	nodes := `{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4"}}}`
	return build.Source{FS: fstest.MapFS{"t.mp": {Data: packTrace(t, b.Bytes())}, "nodes.json": {Data: []byte(nodes)}}, File: "t.mp"}
}

// Twice the objects cost about twice the allocations: no list is searched or copied for each
// object. The benchmarks measure the time.
func TestImports_AreLinear(t *testing.T) { // not parallel: AllocsPerRun counts all allocations
	for name, do := range map[string]func(n int) float64{
		"kwok": func(n int) float64 {
			src := kwokRecording(n)
			return testing.AllocsPerRun(1, func() { mustImport(t, KWOK, src, n) })
		},
		"simkube": func(n int) float64 {
			src := simkubeTrace(t, n)
			return testing.AllocsPerRun(1, func() { mustImport(t, SimKube, src, n) })
		},
	} {
		small, large := do(250), do(1000)
		if large > 4.6*small {
			t.Errorf("%s: %v allocations for 250 objects, %v for 1,000", name, small, large)
		}
	}
}

func mustImport(t testing.TB, do func(build.Options, build.Source) (*scenario.File, *build.Report, error), src build.Source, jobs int) {
	t.Helper()
	f, _, err := do(build.Options{}, src)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Jobs) != jobs {
		t.Fatalf("%d jobs, want %d", len(f.Jobs), jobs)
	}
}

// BenchmarkKWOK and BenchmarkSimKube import recordings of 4,000 and 16,000 objects: the time
// per object must not depend on their number.
func BenchmarkKWOK(b *testing.B) {
	for _, n := range []int{4000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src := kwokRecording(n)
			for b.Loop() {
				mustImport(b, KWOK, src, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
		})
	}
}

func BenchmarkSimKube(b *testing.B) {
	for _, n := range []int{4000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src := simkubeTrace(b, n)
			for b.Loop() {
				mustImport(b, SimKube, src, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
		})
	}
}
