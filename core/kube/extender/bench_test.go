package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// fullExtender returns an extender with a full cluster, and a preemption request for
// some of its nodes.
func fullExtender(tb testing.TB, nodes, proposed int) (*Extender, *kube.ExtenderPreemptionArgs) {
	tb.Helper()
	v, err := policy.NewVersion(policy.Source{
		Name: "default", Module: policy.Native(policy.BuiltinDigest("kubernetes", "test"), func() sdk.Policy { return kubernetes.New() }),
	})
	if err != nil {
		tb.Fatal(err)
	}
	set, err := policy.NewSet(v)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(set.Unpin)
	e, err := New(Config{Policies: staticPolicies{set}, Deadline: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	d := &kube.Dump{}
	args := &kube.ExtenderPreemptionArgs{NodeNameToMetaVictims: map[string]*kube.MetaVictims{}, Pod: podOf(tb, "pending", "", 1000)}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		n := &kube.Node{
			Metadata: kube.Metadata{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
			Status:   kube.NodeStatus{Allocatable: kube.ResourceList{"cpu": "10", "memory": "64Gi", "pods": "110"}},
		}
		d.Nodes = append(d.Nodes, n)
		for k := range 10 {
			p := podOf(tb, fmt.Sprintf("pod-%05d-%d", i, k), name, int32(k%3*50))
			d.Pods = append(d.Pods, p)
			if i < proposed && k == 0 {
				args.NodeNameToMetaVictims[name] = &kube.MetaVictims{Pods: []kube.MetaPod{{UID: p.Metadata.UID}}}
			}
		}
	}
	e.Feed(d, true)
	return e, args
}

func podOf(tb testing.TB, name, on string, priority int32) *kube.Pod {
	tb.Helper()
	text, err := json.Marshal(pod(name, on, "1", priority))
	if err != nil {
		tb.Fatal(err)
	}
	p := &kube.Pod{}
	if err := json.Unmarshal(text, p); err != nil {
		tb.Fatal(err)
	}
	return p
}

// nodesOf returns a request for all nodes of a cluster as JSON: by name, as for a
// nodeCacheCapable extender, or with complete nodes.
func nodesOf(tb testing.TB, e *Extender, pending *kube.Pod, byName bool) []byte {
	tb.Helper()
	args := struct {
		Pod       *kube.Pod
		Nodes     *struct{ Items []*kube.Node } `json:",omitempty"`
		NodeNames *[]string                     `json:",omitempty"`
	}{Pod: pending}
	names := slices.Sorted(maps.Keys(e.cache.nodes))
	if args.NodeNames = &names; !byName {
		args.NodeNames, args.Nodes = nil, &struct{ Items []*kube.Node }{}
		for _, name := range names {
			args.Nodes.Items = append(args.Nodes.Items, e.cache.nodes[name])
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// BenchmarkNodes measures requests for 5,000 nodes with 10 pods each, including
// decoding and encoding. Each request follows a change: a pod was added or removed.
// Variants:
//
//   - filter+prioritize: prioritize reuses the results of filter
//   - alone: prioritize without a preceding filter
//   - cordon: a node was cordoned or uncordoned
//   - replace: a node was removed or added
//   - anew: the state is rebuilt
func BenchmarkNodes(b *testing.B) {
	for _, byName := range []bool{true, false} {
		e, args := fullExtender(b, 5000, 0)
		pending := args.Pod
		pending.Spec.Containers[0].Resources.Requests = kube.ResourceList{"memory": "1Gi"} // all CPU is in use
		body := nodesOf(b, e, pending, byName)
		handler := e.Handler("")
		post := func(b *testing.B, verb string) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/"+verb, bytes.NewReader(body))
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.Len() < 50_000 {
				b.Fatalf("%d: %.200s", w.Code, w.Body)
			}
		}
		step := newStep(b, e)
		turn := 0
		// cordon cordons a node, or uncordons it on the next call, then continues with another.
		cordon := func() {
			turn++
			n := *e.cache.nodes[fmt.Sprintf("node-%05d", turn/2*7%5000)]
			n.Spec.Unschedulable = turn%2 == 0
			e.Feed(&kube.Dump{Nodes: []*kube.Node{&n}}, false)
		}
		// replace removes a node with its pods, or adds it again.
		var gone *kube.Node
		replace := func() {
			if gone != nil {
				e.Feed(&kube.Dump{Nodes: []*kube.Node{gone}}, false)
				gone = nil
				return
			}
			turn++
			gone = e.cache.nodes[fmt.Sprintf("node-%05d", turn*7%5000)]
			e.Feed(&kube.Dump{Deleted: []any{gone}}, false)
		}
		anew := func() {
			e.cache.mu.Lock()
			defer e.cache.mu.Unlock()
			e.cache.changes.Add(1)
			e.cache.log.restart()
		}
		form := map[bool]string{true: "names", false: "whole"}[byName]
		run := func(name string, change func(), verbs ...string) {
			b.Run(fmt.Sprintf("nodes=5000/%s/%s", form, name), func(b *testing.B) {
				post(b, "filter")
				b.ReportAllocs()
				for b.Loop() {
					change()
					for _, verb := range verbs {
						post(b, verb)
					}
				}
			})
		}
		run("filter", step, "filter")
		run("filter+prioritize", step, "filter", "prioritize")
		run("alone", step, "prioritize")
		run("cordon", cordon, "filter")
		run("replace", replace, "filter")
		run("anew", anew, "filter")
	}
}

// BenchmarkPreempt measures preemptions on 5,000 nodes with 10 pods each, including
// decoding and encoding. Each request follows a change of a pod. Besides the mean it
// reports the 99th percentile. Variants:
//
//   - alone: the pod requests CPU
//   - budgets: with 1,000 disruption budgets, of which one changes before each request
//   - affinity: the pod excludes others from its zone, so that all nodes matter
//   - all: the policy names victims on each proposed node
//   - waiting: 1,000 other pods wait for a node
func BenchmarkPreempt(b *testing.B) {
	for _, proposed := range []int{100, 500} {
		for _, variant := range []string{"alone", "budgets", "affinity", "all", "waiting"} {
			b.Run(fmt.Sprintf("nodes=5000/proposed=%d/%s", proposed, variant), func(b *testing.B) { benchmarkPreempt(b, proposed, variant) })
		}
	}
}

func benchmarkPreempt(b *testing.B, proposed int, variant string) {
	e, args := fullExtender(b, 5000, proposed)
	verb := "/preempt"
	var budgets []*kube.Budget
	switch variant {
	case "budgets":
		for i := range 1000 {
			budgets = append(budgets, budgetOf(fmt.Sprintf("pod-%05d-0", i)))
		}
		e.Feed(&kube.Dump{Budgets: budgets}, false)
	case "affinity":
		args.Pod.Spec.Affinity = &kube.Affinity{PodAnti: &kube.PodAffinity{Required: []kube.PodTerm{{
			TopologyKey: "zone", Selector: &kube.LabelSelector{Labels: map[string]string{"app": "nothing"}},
		}}}}
	case "all":
		verb += "?nodes=all"
	case "waiting":
		for i := range 1000 {
			e.Feed(&kube.Dump{Pods: []*kube.Pod{podOf(b, fmt.Sprintf("waiting-%d", i), "", 1000)}}, false)
		}
	}
	body, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	handler, times := e.Handler(""), []time.Duration(nil)
	step := newStep(b, e)
	post := func() {
		from := time.Now()
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, verb, bytes.NewReader(body))
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "uid-pod-") {
			b.Fatalf("%d: %.200s", w.Code, w.Body)
		}
		times = append(times, time.Since(from))
		(&fixture{extender: e}).forgetAnswers() // the same victims each time
	}
	post()
	times = nil
	b.ReportAllocs()
	for b.Loop() {
		if step(); len(budgets) > 0 {
			changed := *budgets[len(times)%len(budgets)]
			changed.Status.DisruptionsAllowed = new(int32(len(times) % 2))
			e.Feed(&kube.Dump{Budgets: []*kube.Budget{&changed}}, false)
		}
		post()
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100])/1e6, "p99-ms")
}

// newStep returns a function that adds a pod, or removes it on the next call.
func newStep(tb testing.TB, e *Extender) func() {
	tb.Helper()
	come := podOf(tb, "come", "node-00007", 0)
	come.Spec.Containers[0].Resources.Requests = kube.ResourceList{"memory": "1Gi"} // all CPU is in use
	there := false
	return func() {
		if there = !there; there {
			e.Feed(&kube.Dump{Pods: []*kube.Pod{come}}, false)
		} else {
			e.Feed(&kube.Dump{Deleted: []any{come}}, false)
		}
	}
}

// budgetOf returns a disruption budget for the pods of an application.
func budgetOf(app string) *kube.Budget {
	b := &kube.Budget{Metadata: kube.Metadata{Name: app, Namespace: "default"}}
	b.Spec.MinAvailable = &kube.Bound{Number: 1}
	b.Spec.Selector = &kube.LabelSelector{Labels: map[string]string{"app": app}}
	b.Status.DisruptionsAllowed = new(int32)
	return b
}
