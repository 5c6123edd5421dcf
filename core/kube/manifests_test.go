package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A manifest must state its requests, so the error lists every invalid quantity.
func TestJobsOf_RejectsInvalidQuantities(t *testing.T) {
	d, err := Read(strings.NewReader(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[
		{"name":"main","resources":{"requests":{"cpu":"two","memory":"1Gi"}}},{"name":"side","resources":{"limits":{"memory":"much"}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewTranslator(nil, &Report{}).JobsOf(d, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`Pod web, container main: cpu: invalid quantity "two"; write a quantity such as`, `container side: memory: invalid quantity "much"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q; want %q", err, want)
		}
	}
}

const twoPods = `apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {priority: 5, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {priority: 7, nodeName: n1, containers: [{name: c}]}
`

func work(t *testing.T, manifest string) (jobs int, notes []Note, err error) {
	t.Helper()
	d, err := Read(strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	told := &Report{}
	list, err := NewTranslator(nil, told).JobsOf(d, nil)
	return len(list), told.List, err
}

// In a dump the last occurrence of an object replaces the first. In manifests that
// would answer for one of the two only, so it is an error.
func TestJobsOf_RejectsDuplicateObject(t *testing.T) {
	_, _, err := work(t, fmt.Sprintf(twoPods, "p"))
	if err == nil || !strings.Contains(err.Error(), "Pod default/p is defined twice, at line 1 and at line 6") {
		t.Errorf("error %v, want one with both lines", err)
	}
	// An empty namespace is the same as default.
	named := strings.Replace(fmt.Sprintf(twoPods, "p"), "metadata: {", "metadata: {namespace: default, ", 1)
	if _, _, err = work(t, named); err == nil || !strings.Contains(err.Error(), "Pod default/p is defined twice") {
		t.Errorf("error %v of\n%s", err, named)
	}
	if jobs, _, err := work(t, fmt.Sprintf(twoPods, "q")); jobs != 2 || err != nil {
		t.Errorf("%d jobs, %v, of two pods", jobs, err)
	}
}

func TestJobsOf_ReportsIgnoredNodeName(t *testing.T) {
	template := `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"template":{"spec":{"nodeName":"n1","containers":[{"name":"c"}]}}}}`
	for manifest, want := range map[string]int{fmt.Sprintf(twoPods, "q"): 1, template: 1, strings.Replace(template, "nodeName", "hostname", 1): 0} {
		_, notes, err := work(t, manifest)
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != want || want == 1 && !strings.Contains(notes[0].Subject, "nodeName") {
			t.Errorf("notes %v of %s; want %d", notes, manifest, want)
		}
	}
}

// All pods of a pod group with a topology constraint share a domain, whichever workload
// they are of. Those of another group do not.
func TestJobsOf_ColocatesPodGroupByTopologyKey(t *testing.T) {
	d, err := Read(strings.NewReader(`
{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1","metadata":{"name":"ring"},"spec":{"schedulingPolicy":{"gang":{"minCount":5}},"schedulingConstraints":{"topology":[{"key":"rack"}]}}}
{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1","metadata":{"name":"free"},"spec":{"schedulingPolicy":{"basic":{}}}}
{"kind":"StatefulSet","metadata":{"name":"leader"},"spec":{"template":{"metadata":{"labels":{"app":"x"}},"spec":{"schedulingGroup":{"podGroupName":"ring"},"containers":[{"name":"c"}]}}}}
{"kind":"Job","metadata":{"name":"worker"},"spec":{"parallelism":4,"completions":4,"template":{"metadata":{"labels":{"app":"x"}},"spec":{"schedulingGroup":{"podGroupName":"ring"},"containers":[{"name":"c"}]}}}}
{"kind":"Pod","metadata":{"name":"free-0","labels":{"app":"x"}},"spec":{"schedulingGroup":{"podGroupName":"free"},"containers":[{"name":"c"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{}
	jobs, err := NewTranslator(nil, report).JobsOf(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range jobs {
		for _, g := range j.Groups {
			one := fmt.Sprint(j.ID, " ", g.Count, " ", g.Labels)
			for _, term := range g.Colocate {
				one += fmt.Sprint(" with ", term.Labels, " by ", term.TopologyKey)
			}
			got = append(got, one)
		}
	}
	slices.Sort(got)
	want := []string{
		"free 1 map[app:x]",
		"ring 1 map[app:x cede.import/pod-group:ring] with map[cede.import/pod-group:ring] by rack",
		"ring 4 map[app:x cede.import/pod-group:ring] with map[cede.import/pod-group:ring] by rack",
	}
	if !slices.Equal(got, want) || len(report.AffectingPlacement()) > 0 {
		t.Errorf("jobs\n%s\nwant\n%s\nnotes %v", strings.Join(got, "\n"), strings.Join(want, "\n"), report.List)
	}
}

func TestJobsOf_ListsAllProblems(t *testing.T) {
	_, _, err := work(t, `kind: Deployment
metadata: {name: web}
spec: {replicas: -2, template: {spec: {priorityClassName: hihg}}}
---
kind: PriorityClass
metadata: {name: high}
value: 5
---
kind: Job
metadata: {name: run}
spec: {parallelism: -1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: x}}}]}}}
`)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"Deployment web: invalid replicas -2; write 0 or more", `unknown priority class "hihg": neither the manifest nor the scenario defines it; did you mean high?`,
		"Deployment web: containers are required", "Job run: invalid parallelism -1", `Job run, container c: cpu: invalid quantity "x"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nlacks %q", err, want)
		}
	}
}
