package extender

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/kube"
)

// newExtender returns an extender with the policy kubernetes.
func newExtender(t *testing.T) *Extender {
	t.Helper()
	return start(t, kubernetesPolicy, nil).extender
}

// readDump returns the objects of a text.
func readDump(t *testing.T, text string) *kube.Dump {
	t.Helper()
	d, err := kube.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// memberOf returns a pod of one CPU on a node that belongs to a PodGroup.
func memberOf(group, name, node string, priority int) string {
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"uid":%q},"spec":{"nodeName":%q,"priority":%d,"schedulingGroup":{"podGroupName":%q},
		"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z"}}`+"\n", name, name, node, priority, group)
}

func twoCPUs(name string) string {
	return fmt.Sprintf(`{"kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/hostname":%q}},"status":{"allocatable":{"cpu":"2","pods":"10"}}}`+"\n", name, name)
}

// podGroup returns the PodGroup ring.
func podGroup(mode string, priority int) string {
	return fmt.Sprintf(`{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1","metadata":{"name":"ring"},"spec":{"disruptionMode":{%q:{}},"schedulingPolicy":{"gang":{"minCount":2}},"priority":%d}}`+"\n", mode, priority)
}

// namedVictims returns the answer to a preemption for one CPU with the given proposal.
func namedVictims(t *testing.T, e *Extender, proposal map[string][]string) string {
	t.Helper()
	return namedVictimsOf(t, e, readDump(t, `{"kind":"Pod","metadata":{"name":"high","uid":"high"},"spec":{"priority":1000,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`).Pods[0], proposal)
}

// namedVictimsOf returns the answer to a preemption for a pod with the given proposal.
func namedVictimsOf(t *testing.T, e *Extender, pending *kube.Pod, proposal map[string][]string) string {
	t.Helper()
	args := &kube.ExtenderPreemptionArgs{Pod: pending, NodeNameToMetaVictims: map[string]*kube.MetaVictims{}}
	for node, victims := range proposal {
		args.NodeNameToMetaVictims[node] = &kube.MetaVictims{}
		for _, v := range victims {
			args.NodeNameToMetaVictims[node].Pods = append(args.NodeNameToMetaVictims[node].Pods, kube.MetaPod{UID: v})
		}
	}
	var text []string
	for node, v := range e.Preempt(t.Context(), args, PreemptOptions{}).NodeNameToMetaVictims {
		line := node + ":"
		for _, p := range v.Pods {
			line += " " + p.UID
		}
		text = append(text, line)
	}
	return strings.Join(text, "; ")
}

// A group of the disruption mode All is evicted together. If it has pods on several
// nodes, none of them is: kube-scheduler accepts victims of one node only.
func TestExtender_EvictsPodGroupsTogether(t *testing.T) {
	nodes := twoCPUs("n1") + twoCPUs("n2")
	for name, c := range map[string]struct {
		objects  string
		proposal map[string][]string
		want     string
	}{
		"together": {
			nodes + podGroup("all", 5) + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n1", 5) + memberOf("", "c", "n2", 50) + memberOf("", "d", "n2", 50),
			map[string][]string{"n1": {"a", "b"}},
			"n1: a b",
		},
		"one by one": {
			nodes + podGroup("single", 5) + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n1", 5),
			map[string][]string{"n1": {"a"}},
			"n1: a",
		},
		"unknown group": {
			nodes + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n1", 5),
			map[string][]string{"n1": {"a"}},
			"n1: a",
		},
		"several nodes": {
			nodes + podGroup("all", 5) + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n2", 5) + memberOf("", "c", "n1", 50) + memberOf("", "d", "n2", 60),
			map[string][]string{"n1": {"c"}, "n2": {"d"}},
			"n1: c",
		},
		"priority of the group": { // not of the pods
			nodes + podGroup("single", 2000) + memberOf("ring", "a", "n1", 5) + memberOf("", "b", "n1", 50) + memberOf("", "c", "n2", 70) + memberOf("", "d", "n2", 70),
			map[string][]string{"n1": {"b"}, "n2": {"c"}},
			"n1: b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExtender(t)
			e.Feed(readDump(t, c.objects), true)
			if got := namedVictims(t, e, c.proposal); got != c.want {
				t.Errorf("answer %q, want %q", got, c.want)
			}
		})
	}
}

// A group that is reported after its pods, or that is deleted, changes how they are
// evicted, without a rebuild of the state.
func TestExtender_FollowsPodGroups(t *testing.T) {
	e := newExtender(t)
	e.Feed(readDump(t, twoCPUs("n1")+memberOf("ring", "a", "n1", 5)+memberOf("ring", "b", "n1", 5)), true)
	proposal := map[string][]string{"n1": {"a"}}
	check := func(when, want string) {
		t.Helper()
		e.cache.mu.Lock()
		e.cache.answers = newAnswers(0, e.cfg.Clock.Now, func(*answer, string) {}) // each question is the first
		e.cache.mu.Unlock()
		if got := namedVictims(t, e, proposal); got != want {
			t.Errorf("%s: answer %q, want %q", when, got, want)
		}
	}
	check("unknown group", "n1: a")
	built := e.state.cluster
	group := readDump(t, podGroup("all", 5))
	e.Feed(group, false)
	check("after the group", "n1: a b")
	e.Feed(&kube.Dump{Deleted: []any{group.PodGroups[0]}}, false)
	check("after its deletion", "n1: a")
	if e.state.cluster != built {
		t.Error("the state was rebuilt")
	}
}

// gpuObjects returns a node with two GPUs, a class, and a claim of each pod for one GPU.
func gpuObjects(pods ...string) string {
	text := twoCPUs("n1") +
		`{"kind":"DeviceClass","metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"device.driver == \"gpu.example.com\""}}]}}` + "\n" +
		`{"kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"gpu.example.com","nodeName":"n1","pool":{"name":"n1"},"devices":[{"name":"gpu-0"},{"name":"gpu-1"}]}}` + "\n"
	for i, name := range pods {
		text += fmt.Sprintf(`{"kind":"ResourceClaim","metadata":{"name":%q},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}},
			"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"gpu.example.com","pool":"n1","device":"gpu-%d"}]}}}}`+"\n", name, i)
	}
	return text
}

// The devices that claims have been allocated are in use: a pod that claims a device
// evicts one that has it, and not the pod without one that would do for its CPU.
func TestExtender_CountsAllocatedDevices(t *testing.T) {
	claiming := func(name string, priority int, node string) string {
		return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"uid":%q},"spec":{"nodeName":%q,"priority":%d,"resourceClaims":[{"name":"gpu","resourceClaimName":%q}],
			"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]},"status":{"startTime":"2026-01-01T00:00:00Z"}}`+"\n", name, name, node, priority, name)
	}
	e := newExtender(t)
	text := gpuObjects("a", "b") + claiming("a", 7, "n1") + claiming("b", 8, "n1") + memberOf("", "cheap", "n1", 1)
	text += `{"kind":"ResourceClaim","metadata":{"name":"high"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}}}` + "\n"
	e.Feed(readDump(t, text), true)
	pending := readDump(t, claiming("high", 1000, "")).Pods[0]
	args := &kube.ExtenderPreemptionArgs{Pod: pending, NodeNameToMetaVictims: map[string]*kube.MetaVictims{"n1": {Pods: []kube.MetaPod{{UID: "cheap"}}}}}
	answer := e.Preempt(t.Context(), args, PreemptOptions{}).NodeNameToMetaVictims["n1"]
	if answer == nil || len(answer.Pods) != 1 || answer.Pods[0].UID != "a" {
		t.Errorf("victims %+v, want pod a, which has a GPU and the lower priority of two", answer)
	}
}

// wideRing returns two full nodes on which only the group ring has a low priority. It has a
// pod on each.
func wideRing() string {
	return twoCPUs("n1") + twoCPUs("n2") + podGroup("all", 5) + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n2", 5) +
		memberOf("", "c", "n1", 2000) + memberOf("", "d", "n2", 2000)
}

// compositeRing returns a full node on which only the group ring, which belongs to a composite
// group, has a low priority.
func compositeRing() string {
	return twoCPUs("n1") + strings.Replace(podGroup("single", 5), `"spec":{`, `"spec":{"parentCompositePodGroupName":"rings",`, 1) +
		memberOf("ring", "a", "n1", 5) + memberOf("", "c", "n1", 2000)
}

// An extender cannot evict a group with pods on several nodes, or a composite group. It
// counts and names the group, and the proposal of kube-scheduler stands.
func TestExtender_NamesGroupsThatItCannotEvict(t *testing.T) {
	for name, c := range map[string]struct {
		objects  string
		proposal []string
	}{
		"several nodes":   {wideRing(), []string{"a", "b"}},
		"composite group": {compositeRing(), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, kubernetesPolicy, nil)
			e := w.extender
			e.Feed(readDump(t, c.objects), true)
			if got, want := namedVictims(t, e, map[string][]string{"n1": c.proposal}), "n1: "+strings.Join(c.proposal, " "); got != want {
				t.Errorf("answer %q, want the proposal %q", got, want)
			}
			if n := w.countOf(resultGroup); n != 1 {
				t.Errorf("outcome group is counted %v times", n)
			}
			if n := w.countOf(groupExcluded); n != 1 {
				t.Errorf("%v excluded groups are counted", n)
			}
			if log := w.log.String(); !strings.Contains(log, "groups_excluded=[default/ring]") {
				t.Errorf("log %s", log)
			}
		})
	}
}

// A caller that can evict on several nodes receives all pods of the group. The answer ends
// when all are gone.
func TestExtender_EvictsGroupAcrossNodesForPlugin(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	e := w.extender
	e.Feed(readDump(t, wideRing()), true)
	pending := readDump(t, `{"kind":"Pod","metadata":{"name":"high","uid":"high"},"spec":{"priority":1000,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`).Pods[0]
	answer, err := e.Choose(t.Context(), &kube.ExtenderPreemptionArgs{Pod: pending, NodeNameToMetaVictims: map[string]*kube.MetaVictims{"n1": {Pods: []kube.MetaPod{{UID: "a"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range answer.NodeNameToMetaVictims["n1"].Pods {
		names = append(names, p.UID)
	}
	if slices.Sort(names); strings.Join(names, " ") != "a b" {
		t.Errorf("victims %v, want both pods of the group", names)
	}
	if n := w.countOf(groupNamed); n != 1 {
		t.Errorf("%v groups are counted as named", n)
	}
	bound := *pending
	bound.Spec.NodeName = "n1"
	for i, event := range []*kube.Dump{{Deleted: []any{e.cache.pods["b"]}}, {Deleted: []any{e.cache.pods["a"]}}, {Pods: []*kube.Pod{&bound}}} {
		if n := e.cache.unconfirmed(); n != 1 {
			t.Errorf("after %d events, %d answers are open", i, n)
		}
		e.Feed(event, false)
	}
	if n := w.countOf(resultChosen); n != 1 || e.cache.unconfirmed() != 0 {
		t.Errorf("%v answers are counted as chosen, %d are open", n, e.cache.unconfirmed())
	}
}
