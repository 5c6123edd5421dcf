package extender

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// During a rollout a pod is evaluated by its own requests, not by those of the
// previous version.
func TestFilter_EvaluatesPodOfRolloutByItsOwnRequests(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	n1, n2 := node("n1"), node("n2")
	version := func(name, on, cpu, hash string) *corev1.Pod {
		p := pod(name, on, cpu, 0)
		p.Labels = map[string]string{"app": "web", "pod-template-hash": hash}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-" + hash, Controller: new(true)}}
		return p
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
	n1, n2, pending := node("n1"), node("n2"), pod("pending", "", "1", 0)
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
	w.feed(n1, beat, pod("a", "n1", "1", 0), pod("b", "n2", "4", 0))
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
	n1, n2, pending := node("n1"), node("n2"), pod("pending", "", "1", 0)
	w.feed(n1, pod("a", "n1", "4", 0))
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
