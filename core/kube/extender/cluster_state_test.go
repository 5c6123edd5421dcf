package extender

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// During a rollout a pod is evaluated by its own requests, not by those of the
// previous version.
func TestFilter_EvaluatesPodOfRolloutByItsOwnRequests(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2 := managed(node("n1")), managed(node("n2"))
	version := func(name, on, cpu, hash string) *corev1.Pod {
		p := pod(name, on, cpu, 0)
		p.Labels = map[string]string{"app": "web", "pod-template-hash": hash}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-" + hash, Controller: new(true)}}
		return managed(p)
	}
	w.feed(n1, n2, version("old", "n1", "1", "aaaa"))
	if got := w.filter(version("new", "", "4", "bbbb"), n1, n2); !strings.HasPrefix(got, "n2\nn1: lacks cpu") {
		t.Errorf("got\n%s", got)
	}
}

// Equal objects and heartbeats do not change the state. Conditions and cordons are
// applied without a rebuild.
func TestClusterState_AppliesChangesWithoutRebuild(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2, pending := managed(node("n1")), managed(node("n2")), managed(pod("pending", "", "1", 0))
	all := []any{n1, n2, pod("a", "n1", "1", 0)}
	w.feed(all...)
	w.filter(pending, n1, n2)
	roster := w.extender.state.cluster
	beat := n2.DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "False", LastHeartbeatTime: metav1.NewTime(epoch)}}
	w.feed(n1, beat, pod("a", "n1", "1", 0))
	if got := w.filter(pending, n1, beat); got != "n1\nn2: unresolvable: taint node.kubernetes.io/not-ready:NoSchedule" {
		t.Errorf("after the condition was set:\n%s", got)
	}
	beat = beat.DeepCopy()
	beat.Status.Conditions[0].Status = "True"
	w.feed(n1, beat, pod("a", "n1", "1", 0))
	if got := w.filter(pending, n1, beat); got != "n1 n2" {
		t.Errorf("after the condition was cleared:\n%s", got)
	}
	at := w.extender.state.at
	beat = beat.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch.Add(time.Hour))
	w.feed(n1, beat, pod("a", "n1", "1", 0), managed(pod("b", "n2", "4", 0)))
	if got := w.filter(pending, n1, beat); got != "n1\nn2: lacks cpu" {
		t.Errorf("got\n%s", got)
	}
	if more := w.extender.state.at - at; more != 1 {
		t.Errorf("%d changes applied, want 1: the new pod, but not the heartbeat", more)
	}
	cordoned := n1.DeepCopy()
	cordoned.Spec.Unschedulable = true
	if got := w.filter(pending, cordoned, beat); !strings.Contains(got, "n1: unresolvable: taint node.kubernetes.io/unschedulable") {
		t.Errorf("got\n%s", got)
	}
	if roster != w.extender.state.cluster {
		t.Error("state was rebuilt after changes of a node, a heartbeat and a pod")
	}
}

// An invalid object is skipped and its previous version retained. If the text is
// truncated or contains no valid object, nothing changes.
func TestObjects_SkipsInvalidObject(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2, pending := managed(node("n1")), managed(node("n2")), managed(pod("pending", "", "1", 0))
	w.feed(n1, managed(pod("a", "n1", "4", 0)))
	bad := `{"kind":"Pod","metadata":{"name":"a","namespace":"default"},"spec":7}`
	text, err := json.Marshal(n2)
	if err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(n1)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := w.raw(http.MethodPut, "objects?replace=true", []byte(string(one)+bad+string(text)))
	if want := `{"Nodes":2,"Pods":1,"Unread":1,"First":["line 1: Pod default/a: spec must not be a number"]}`; status != http.StatusOK || strings.TrimSpace(answer) != want {
		t.Errorf("%d %s, want %s", status, answer, want)
	}
	if got := w.filter(pending, n1, n2); got != "n2\nn1: lacks cpu" {
		t.Errorf("got\n%s", got)
	}
	for _, refused := range []string{bad, string(text) + `{"kind":"Node","metadata":`} {
		if status, answer := w.raw(http.MethodPut, "objects?replace=true", []byte(refused)); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, answer)
		}
	}
	if nodes, pods := w.extender.cache.size(); nodes != 2 || pods != 2 { // the pending pod of filter is cached too
		t.Errorf("%d nodes and %d pods cached, want 2 and 2", nodes, pods)
	}
}

// kube-scheduler may ask about a pod before the feed has reported it. Its requirements
// are translated all the same, here a node affinity that needs an attribute.
func TestClusterState_TranslatesPodThatTheFeedLacks(t *testing.T) {
	w := start(t, kubernetesPolicy, func(c *Config) { c.Live = true })
	n1, n2, a, b := managed(node("n1")), managed(node("n2")), pod("a", "n1", "4", 0), pod("b", "n2", "4", 0)
	w.feed(n1, n2, a, b)
	pending := pod("pending", "", "1", 1000)
	terms := []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"nowhere"}}}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}},
	}
	pending.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	if got := w.filter(pending, n1, n2); !strings.HasPrefix(got, "n2\nn1: unresolvable") {
		t.Errorf("got\n%s\n%s", got, w.log)
	}
	args := metaProposalOf(pending, map[string][]*corev1.Pod{"n1": {a}, "n2": {b}})
	if got, want := w.preempt("preempt", args), "n2: b"; got != want {
		t.Errorf("got %q, want %q\n%s", got, want, w.log)
	}
}

// A changed or deleted disruption budget is applied to the state without a rebuild.
func TestClusterState_FollowsBudgets(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	a, budget := pod("a", "n1", "4", 0), &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
		Spec:   policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
	}
	w.feed(managed(node("n1")), a, budget)
	preempt := func() string {
		defer w.forgetAnswers()
		return w.preempt("preempt", metaProposalOf(pod("pending", "", "4", 1000), map[string][]*corev1.Pod{"n1": {a}}))
	}
	if got, want := preempt(), "n1: a"; got != want {
		t.Fatalf("got %q, want %q\n%s", got, want, w.log)
	}
	built := w.extender.state.cluster
	budget.Status.DisruptionsAllowed = 0
	w.raw(http.MethodPut, "objects", event("MODIFIED", budget))
	if got, want := preempt(), "n1: a (1 violations)"; got != want {
		t.Errorf("used up: got %q, want %q", got, want)
	}
	w.raw(http.MethodPut, "objects", event("DELETED", budget))
	if got, want := preempt(), "n1: a"; got != want {
		t.Errorf("deleted: got %q, want %q", got, want)
	}
	if built != w.extender.state.cluster {
		t.Error("state was rebuilt after changes of a budget")
	}
}
