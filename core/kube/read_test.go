package kube

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

const oneOfEach = `{"kind":"Node","metadata":{"name":"n1","labels":{"zone":"a"}},"status":{"allocatable":{"cpu":"4","memory":"8Gi"}}}
{"kind":"Pod","metadata":{"name":"p","namespace":"x"},"spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}
{"kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"x"},"spec":{"minAvailable":"50%","selector":{}}}
{"kind":"PriorityClass","metadata":{"name":"k"},"value":-5}
{"kind":"Namespace","metadata":{"name":"x"}}
{"kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c"}]}}}}
`

const asYAML = `# by hand
kind: Node
metadata: {name: n1, labels: {zone: a}}
status: {allocatable: {cpu: 4, memory: 8Gi}}
---
kind: List
items:
  - kind: Pod
    metadata:
      name: p
      namespace: x
      annotations:
        text: |
          items:
          - kind: Node
    spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}}}]}

  # a comment
  - {kind: PodDisruptionBudget, metadata: {name: b, namespace: x}, spec: {minAvailable: 50%, selector: {}}}
metadata: {resourceVersion: ""}
---
items: [{kind: PriorityClass, metadata: {name: k}, value: -5}, {kind: Namespace, metadata: {name: x}}]
kind: List
---
kind: Deployment
metadata: {name: d}
spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}
...
`

// Every output format of kubectl, and hand-written files, yield the same dump.
func TestRead_Forms(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(oneOfEach), "\n")
	list := `{"apiVersion":"v1","items":[` + strings.Join(lines, ",") + `],"kind":"List","metadata":{"resourceVersion":""}}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, list) // to memory
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	events := ""
	for _, l := range lines {
		events += `{"type":"ADDED","object":` + l + "}\n"
	}
	for name, text := range map[string]string{
		"documents": oneOfEach, "list": list, "packed": packed.String(), "array": "[" + strings.Join(lines, " , ") + "]",
		"marked": "\xef\xbb\xbf" + list, "yaml": asYAML, "crlf": strings.ReplaceAll(asYAML, "\n", "\r\n"),
		"watch": events + `{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7"}}}`, "twice": list + "\n" + list,
	} {
		d, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := fmt.Sprint(len(d.Nodes), len(d.Pods), len(d.Budgets), len(d.Classes), len(d.Namespaces), len(d.Workloads))
		if got != "1 1 1 1 1 1" {
			t.Errorf("%s: %s of each kind, want one", name, got)
			continue
		}
		if d.Nodes[0].Metadata.Labels["zone"] != "a" || d.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] != "1" ||
			!d.Budgets[0].Spec.MinAvailable.Percent || d.Classes[0].Value != -5 || *d.Workloads[0].Spec.Replicas != 2 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestRead_ListsDeletedObjectsOfWatch(t *testing.T) {
	d, err := Read(strings.NewReader(`{"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"p"}}}`))
	if err != nil || len(d.Pods) != 0 || len(d.Deleted) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestRead_ReportsProblemWithPosition(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"kind\":\"List\",\"items\":[\n{\"kind\":\"Pod\",": "line 3: unexpected end of the dump",
		"{} x":                          "line 1: expected an object, found 'x'",
		`{"items":[7]}`:                 "object 1: expected an object, found 7",
		`{"items":[}`:                   "expected an object in the list",
		`{"items":[null]}`:              "object 1: expected an object, found null",
		`{"Pods":[null]}`:               "missing kind",
		"items:\n- null\n- 7":           "line 2: object 1: expected an object, found null",
		`{"kind" "Pod"}`:                "expected a colon",
		`{kind:1}`:                      "expected a field",
		"\x00\x01":                      "not a text file",
		"\x1f\x8bgarbage":               "not a gzip file",
		"just words":                    "expected an object, found",
		"a: b\n c: d":                   "line 1: object",
		`{"kind":"Pod","metadata":{}}`:  "missing or invalid name",
		`{"kind":"Pod","metadata":"x"}`: "metadata must not be a string",
		`{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":[]}}}]}}`: "quantity must be a string or a number",
		`{"kind":"PodDisruptionBudget","metadata":{"name":"p"},"spec":{"minAvailable":"lots"}}`:                "must be a number of pods or a percentage",
		`{"kind":"Pod","metadata":{"name":"p"},"spec":{]}}`:                                                    "invalid character",
		`{"kind":"Secret","x":}`: "not valid JSON",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
	if _, err := Translate(&Dump{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty dump: %v", err)
	}
}

// An endless reader repeats a text for the given number of bytes.
type endless struct {
	text string
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && e.left > 0 {
		k := copy(p[n:], e.text)
		n, e.left = n+k, e.left-k
	}
	return n, nil
}

// Malformed input of 20 MiB, or 100 MiB in a soak run, is rejected without
// disproportionate use of memory.
func TestRead_RejectsMalformedInput(t *testing.T) {
	size := 20 << 20 // above the limit of one object
	if soak.Full() {
		size = 100 << 20
	}
	starts := []string{"", `{"kind":"`, `{"items":[`, "items:\n- "}
	if soak.Full() {
		starts = append(starts, "{", `{"items":[{`, "a: ", "[", "kind: Pod\nx: |\n", strings.Repeat("[", 1000), strings.Repeat("- ", 1000))
	}
	for i, start := range starts {
		for j, text := range []string{"a", "[", "{\"a\":", "\n", "- a: &a [b]\n", "x\n", "\"", `{"kind":"Pod"},`, "---\n", "a: b\n", "é"} {
			if !soak.Full() && j%len(starts) != i { // each text once
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{text, size}
			_, err := Read(io.MultiReader(strings.NewReader(start), r))
			runtime.ReadMemStats(&after)
			if err == nil && text != "\n" && text != "---\n" {
				t.Errorf("%q followed by %q was accepted as a dump", start, text)
			}
			if grown := (int64(after.HeapSys) - int64(before.HeapSys)) >> 20; grown > 512 {
				t.Errorf("%q followed by %q: heap grew by %d MiB", start, text, grown)
			}
		}
	}
}

func TestParseSelectorLabel_RoundTrip(t *testing.T) {
	for _, s := range []*LabelSelector{
		{},
		{Labels: map[string]string{"app": "web", "b": ""}},
		{Expressions: []Requirement{{"app", "In", []string{"a", "b"}}, {"x/y", "NotIn", []string{"c"}}, {"z", "Exists", nil}, {"q", "DoesNotExist", nil}}},
		{Expressions: []Requirement{{"a b", "In", []string{"(,)"}}}},
		{Expressions: []Requirement{{"n", "Gt", []string{"4"}}}},
		{Labels: map[string]string{"": "x"}},
	} {
		label := SelectorLabel(s)
		back, ok := ParseSelectorLabel(label)
		if !ok {
			t.Errorf("%q was not parsed", label)
			continue
		}
		for _, labels := range []map[string]string{nil, {"app": "a"}, {"app": "web", "b": ""}, {"app": "b", "z": "1"}, {"app": "b", "z": "1", "q": ""}, {"a b": "(,)"}, {"n": "5"}, {"": "x"}} {
			if got, want := back.Matches(labels), s.Matches(labels); got != want {
				t.Errorf("%q selects %v: %t, want %t", label, labels, got, want)
			}
		}
	}
	if _, ok := ParseSelectorLabel("app"); ok {
		t.Error("a label without the prefix was parsed as a selector")
	}
}

// FuzzTranslate checks for panics, duplicate job IDs, and pods that are not accounted for.
func FuzzTranslate(f *testing.F) {
	f.Add([]byte(oneOfEach))
	f.Add([]byte(asYAML))
	f.Add([]byte(`{"kind":"Node","metadata":{"name":"n"},"spec":{"taints":[{"key":"a","effect":"NoExecute"}],"unschedulable":true},"status":{"allocatable":{"cpu":"1e9","memory":"-1","x":"9999999999999999999"}}}
{"kind":"Pod","metadata":{"name":"p","labels":{"a":"b"},"ownerReferences":[{"kind":"DaemonSet","name":"d"}]},"spec":{"nodeName":"n","overhead":{"cpu":"1m"},"hostNetwork":true,"tolerations":[{"operator":"Exists","effect":"NoExecute"}],
"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"topologyKey":"z","mismatchLabelKeys":["a"]}]},
"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{},{"matchExpressions":[{"key":"a","operator":"Lt","values":["1"]}]}]}}},
"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","labelSelector":{}}],"containers":[{"name":"c","ports":[{"containerPort":1},{"hostPort":1,"protocol":"UDP"}]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		c, err := Translate(d)
		if err != nil {
			return
		}
		left := 0
		for _, n := range c.Report.List {
			if n.Skipped {
				left += n.Count
			}
		}
		if c.PodsTranslated+left != c.PodsRead {
			t.Errorf("%d pods read, %d translated and %d left out", c.PodsRead, c.PodsTranslated, left)
		}
		ids := map[string]bool{}
		for _, j := range c.Jobs {
			if ids[j.ID] {
				t.Errorf("duplicate job ID %q", j.ID)
			}
			ids[j.ID] = true
		}
	})
}

// Nested lists are read in both formats, including items without a kind. If the
// nesting is too deep, the error names the reason.
func TestRead_NestedLists(t *testing.T) {
	deep := strings.Repeat(`{"kind":"List","items":[`, 9) + strings.Repeat(`]}`, 9)
	for _, text := range []string{
		`{"kind":"List","items":[{"kind":"PodList","items":[{"metadata":{"name":"p"}}]},{"kind":"List","items":[{"kind":"Node","metadata":{"name":"n"}}]}]}`,
		"kind: List\nitems:\n- kind: PodList\n  items:\n  - metadata: {name: p}\n- kind: List\n  items:\n  - kind: Node\n    metadata: {name: n}\n",
	} {
		d, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if len(d.Pods) != 1 || len(d.Nodes) != 1 || len(d.Other) != 0 {
			t.Errorf("%d pods, %d nodes and %v of %s", len(d.Pods), len(d.Nodes), d.Other, text)
		}
	}
	if _, err := Read(strings.NewReader(deep)); err == nil || !strings.Contains(err.Error(), "lists are nested too deeply") {
		t.Errorf("%v", err)
	}
}
