package extender

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// withViolations sets the number of violations on node n1.
func withViolations(args *extenderv1.ExtenderPreemptionArgs, n int64) *extenderv1.ExtenderPreemptionArgs {
	if v := args.NodeNameToVictims["n1"]; v != nil {
		v.NumPDBViolations = n
	}
	if v := args.NodeNameToMetaVictims["n1"]; v != nil {
		v.NumPDBViolations = n
	}
	return args
}

// identicalPods returns two nodes with one pod each; the pods differ only in their names.
func identicalPods() (nodes []any, a, b *corev1.Pod) {
	return []any{node("n1"), node("n2")}, pod("a", "n1", "4", 10), pod("b", "n2", "4", 10)
}

func TestPreempt_UsesViolationCountsWithoutBudgets(t *testing.T) {
	nodes, a, b := identicalPods()
	proposal, pending := map[string][]*corev1.Pod{"n1": {a}, "n2": {b}}, pod("pending", "", "3", 1000)
	for name, feed := range map[string][]any{"no feed": nil, "nodes and pods fed": append(nodes, a, b)} {
		t.Run(name, func(t *testing.T) {
			w := start(t, kubernetesPolicy, nil)
			if feed != nil {
				w.feed(feed...)
			}
			if got, want := w.preempt("preempt", proposalOf(pending, proposal)), "n1: a"; got != want {
				t.Fatalf("got %q without violations, want %q as the baseline", got, want)
			}
			if got, want := w.preempt("preempt", withViolations(proposalOf(pending, proposal), 1)), "n2: b"; got != want {
				t.Errorf("got %q, want %q\n%s", got, want, w.log)
			}
			if got, want := w.preempt("preempt?nodes=all", withViolations(proposalOf(pending, proposal), 1)), "n1: a (1 violations); n2: b"; got != want {
				t.Errorf("got %q for all nodes, want %q\n%s", got, want, w.log)
			}
			if got, want := w.preempt("preempt", withViolations(metaProposalOf(pending, proposal), 1)), "n2: b"; got != want {
				t.Errorf("got %q to UIDs, want %q\n%s", got, want, w.log)
			}
		})
	}
}

func TestPreempt_CountsViolationsAcrossNamespaces(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	a, b, c := pod("a", "n1", "1", 10), pod("b", "n1", "1", 10), pod("c", "n1", "1", 10)
	a.Namespace, c.Namespace = "other", ""
	for n, want := range []string{"n1: a b c", "n1: a b c (1 violations)", "n1: a b c (2 violations)", "n1: a b c (3 violations)", "n1: a b c (3 violations)"} {
		args := withViolations(proposalOf(pod("pending", "", "3", 1000), map[string][]*corev1.Pod{"n1": {a, b, c}}), int64(n))
		if got := w.preempt("preempt", args); got != want {
			t.Errorf("got %q to %d violations, want %q\n%s", got, n, want, w.log)
		}
	}
}

func TestPreempt_ViolationCountIsUpperBound(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	small1, small2 := pod("small1", "n1", "2", 10), pod("small2", "n1", "2", 50)
	w.feed(node("n1"), small1, small2)
	pending, proposal := pod("pending", "", "2", 1000), map[string][]*corev1.Pod{"n1": {small2, small1}}
	// If the budget allows one eviction, the policy protects the pod of higher priority.
	for n, want := range map[int64]string{0: "n1: small1", 1: "n1: small2", 2: "n1: small1 (1 violations)"} {
		if got := w.preempt("preempt", withViolations(proposalOf(pending, proposal), n)); got != want {
			t.Errorf("got %q to %d violations, want %q\n%s", got, n, want, w.log)
		}
	}
}

// If budgets were fed, the counts of kube-scheduler are ignored.
func TestPreempt_PrefersBudgetsToViolationCounts(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	nodes, a, b := identicalPods()
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}},
	}
	w.feed(append(nodes, a, b, budget)...)
	args := withViolations(proposalOf(pod("pending", "", "3", 1000), map[string][]*corev1.Pod{"n1": {a}, "n2": {b}}), 1)
	if got, want := w.preempt("preempt?nodes=all", args), "n1: a; n2: b (1 violations)"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
}
