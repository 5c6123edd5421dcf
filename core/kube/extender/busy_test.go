package extender

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// busyCluster is an extender that knows a full cluster, and a preemption on some of
// its nodes.
func busyCluster(tb testing.TB, nodes, proposed int) (*Extender, *kube.ExtenderPreemptionArgs) {
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
	e, err := New(Config{Policies: always{set}, Deadline: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	d := &kube.Dump{}
	args := &kube.ExtenderPreemptionArgs{NodeNameToMetaVictims: map[string]*kube.MetaVictims{}, Pod: podOf(tb, "asker", "", 1000)}
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
