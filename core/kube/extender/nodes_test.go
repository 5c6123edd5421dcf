package extender

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

func names(nodes []*corev1.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

// filter sends the nodes by name and as complete objects, checks that the responses
// agree, and returns the feasible nodes, followed by the reason for each other node.
func (w *fixture) filter(pending *corev1.Pod, nodes ...*corev1.Node) string {
	w.t.Helper()
	show := func(feasible []string, out *extenderv1.ExtenderFilterResult) string {
		lines := []string{strings.Join(feasible, " ")}
		for mark, failed := range map[string]extenderv1.FailedNodesMap{"": out.FailedNodes, "unresolvable:": out.FailedAndUnresolvableNodes} {
			for _, name := range slices.Sorted(maps.Keys(failed)) {
				lines = append(lines, strings.Join(strings.Fields(name+": "+mark+" "+failed[name]), " "))
			}
		}
		slices.Sort(lines[1:])
		return strings.Join(lines, "\n")
	}
	list := names(nodes)
	var byName, whole extenderv1.ExtenderFilterResult
	args := &extenderv1.ExtenderArgs{Pod: pending, Nodes: &corev1.NodeList{}}
	for _, n := range nodes {
		args.Nodes.Items = append(args.Nodes.Items, *n)
	}
	w.send("filter", args, &whole)
	w.send("filter", &extenderv1.ExtenderArgs{Pod: pending, NodeNames: &list}, &byName)
	if byName.NodeNames == nil || byName.Nodes != nil || whole.Nodes == nil || whole.NodeNames != nil {
		w.t.Fatalf("response and request have different forms: %+v, %+v", byName, whole)
	}
	var feasible []string
	for i := range whole.Nodes.Items {
		n := &whole.Nodes.Items[i]
		feasible = append(feasible, n.Name)
		if n.Status.Allocatable.Cpu().IsZero() {
			w.t.Errorf("node %s was returned without allocatable resources", n.Name)
		}
	}
	a, b := show(*byName.NodeNames, &byName), show(feasible, &whole)
	if a != b {
		w.t.Errorf("by name:\n%s\nwhole:\n%s", a, b)
	}
	return a
}

func (w *fixture) scores(pending *corev1.Pod, nodes ...*corev1.Node) map[string]int64 {
	w.t.Helper()
	list := names(nodes)
	var scores extenderv1.HostPriorityList
	w.send("prioritize", &extenderv1.ExtenderArgs{Pod: pending, NodeNames: &list}, &scores)
	got := map[string]int64{}
	for _, s := range scores {
		if s.Score < 0 || s.Score > extenderv1.MaxExtenderPriority {
			w.t.Errorf("%s: score %d out of range", s.Host, s.Score)
		}
		got[s.Host] = s.Score
	}
	if len(got) != len(nodes) {
		w.t.Errorf("%d scores for %d nodes", len(got), len(nodes))
	}
	return got
}

// managed adds an extended resource in proportion to the CPU, which kube-scheduler may
// be configured to leave to the extender.
func managed[T any](o T) T {
	const share = "example.com/share"
	switch o := any(o).(type) {
	case *corev1.Node:
		o.Status.Allocatable[share] = *resource.NewQuantity(o.Status.Allocatable.Cpu().MilliValue(), resource.DecimalSI)
	case *corev1.Pod:
		requests := o.Spec.Containers[0].Resources.Requests
		requests[share] = *resource.NewQuantity(requests.Cpu().MilliValue(), resource.DecimalSI)
	}
	return o
}

func tainted(n *corev1.Node, effect corev1.TaintEffect) *corev1.Node {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "t", Effect: effect})
	return n
}

// filter applies the same feasibility rules as the scheduler. n2 is full, which
// kube-scheduler checks itself.
func TestFilter_AppliesSchedulerRules(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	empty, full, small := node("n1"), node("n2"), node("n3")
	small.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("500m")
	other, repelling, driving, wished := node("z4"), tainted(node("n5"), corev1.TaintEffectNoSchedule), tainted(node("n6"), corev1.TaintEffectNoExecute), tainted(node("n7"), corev1.TaintEffectPreferNoSchedule)
	port, rival, many, unknown := node("n8"), node("n9"), node("n91"), node("n92")
	holder := pod("holder", "n8", "1", 0)
	holder.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	twin := pod("twin", "n91", "1", 0)
	twin.Labels = map[string]string{"app": "pending"}
	w.feed(empty, full, small, other, repelling, driving, wished, port, rival, many,
		pod("busy", "n2", "4", 0), holder, pod("enemy", "n9", "1", 0), twin)

	pending := pod("pending", "", "1", 0)
	pending.Spec.NodeSelector = map[string]string{"zone": "n"}
	pending.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	pending.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "enemy"}}, TopologyKey: "kubernetes.io/hostname",
	}}}}
	pending.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pending"}},
	}}
	got := w.filter(pending, empty, full, small, other, repelling, driving, wished, port, rival, unknown)
	want := `n1 n2 n7 n92
n3: unresolvable: lacks cpu
n5: unresolvable: taint t:NoSchedule
n6: unresolvable: taint t:NoExecute
n8: port 80
n9: separation from other allocations
z4: unresolvable: zone = n`
	if got != want {
		t.Errorf("got\n%s\n\nwant\n%s", got, want)
	}
}

// If the extender is not fed, nodes are evaluated as if they were empty.
func TestFilter_UsesObjectsOfRequest(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2, big := node("n1"), tainted(node("n2"), corev1.TaintEffectNoSchedule), pod("pending", "", "5", 0)
	if got := w.filter(pod("pending", "", "1", 0), n1, n2); got != "n1\nn2: unresolvable: taint t:NoSchedule" {
		t.Errorf("got\n%s", got)
	}
	if got := w.filter(big, n1); got != "\nn1: unresolvable: lacks cpu" {
		t.Errorf("got\n%s", got)
	}
	if got := w.scores(big, n1, n2); got["n1"] != 0 || got["n2"] != 0 {
		t.Errorf("scores %v, want 0 without a feed", got)
	}
}

// prioritize applies the scheduler's rank.
func TestPrioritize_AppliesSchedulerRank(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2, n3, z4 := node("n1"), node("n2"), tainted(node("n3"), corev1.TaintEffectPreferNoSchedule), node("z4")
	w.feed(n1, n2, n3, z4, pod("busy", "n1", "3", 0))
	plain := pod("pending", "", "1", 0)
	if got := w.scores(plain, n1, n2, n3, z4); got["n2"] != 10 || got["z4"] != 10 || got["n1"] >= 10 || got["n3"] >= got["n1"] {
		t.Errorf("scores %v, want n1 low (full) and n3 lower (PreferNoSchedule)", got)
	}
	affine := pod("affine", "", "1", 0)
	affine.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}}}},
	}}}}
	if got := w.scores(affine, n1, n2, n3, z4); got["z4"] != 10 || got["n2"] >= 10 || got["n1"] >= got["n2"] {
		t.Errorf("scores %v, want z4 first (preferred zone)", got)
	}
	if got := w.scores(plain, n1, node("unknown")); got["n1"] != 0 {
		t.Errorf("scores %v, want 0 together with an unknown node", got)
	}
}

// A pod added between filter and prioritize is counted.
func TestPrioritize_CountsNewPods(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2, pending := node("n1"), node("n2"), pod("pending", "", "1", 0)
	w.feed(n1, n2)
	if got := w.filter(pending, n1, n2); got != "n1 n2" {
		t.Fatal(got)
	}
	if got := w.scores(pending, n1, n2); got["n1"] != 10 || got["n2"] != 10 {
		t.Errorf("scores %v, want 10 for equal nodes", got)
	}
	w.feed(n1, n2, pod("busy", "n1", "3", 0))
	if got := w.scores(pending, n1, n2); got["n1"] >= 10 || got["n2"] != 10 {
		t.Errorf("scores %v, want n1 lower after the new pod", got)
	}
}
