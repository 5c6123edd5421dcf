package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
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
		pending, come := args.Pod, podOf(b, "come", "node-00007", 0)
		pending.Spec.Containers[0].Resources.Requests = kube.ResourceList{"memory": "1Gi"} // all CPU is in use
		come.Spec.Containers[0].Resources.Requests = pending.Spec.Containers[0].Resources.Requests
		body := nodesOf(b, e, pending, byName)
		handler := e.Handler("")
		post := func(b *testing.B, verb string) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/"+verb, bytes.NewReader(body))
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.Len() < 50_000 {
				b.Fatalf("%d: %.200s", w.Code, w.Body)
			}
		}
		there := false
		step := func() {
			if there = !there; there {
				e.Feed(&kube.Dump{Pods: []*kube.Pod{come}}, false)
			} else {
				e.Feed(&kube.Dump{Deleted: []any{come}}, false)
			}
		}
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
