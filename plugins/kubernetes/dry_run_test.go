package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// A bareHandle has the extenders of kube-scheduler and nothing else.
type bareHandle struct {
	fwk.Handle
	extenders []fwk.Extender
}

func (h bareHandle) Extenders() []fwk.Extender { return h.extenders }

func podOn(node, name string, priority int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node, Priority: &priority}}
}

// The policy receives every pod of a node that may be evicted, without a call of a filter.
func TestDryRun_IsDeferred(t *testing.T) {
	d := &dryRun{handle: bareHandle{}}
	d.reset()
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	var victims []*preemption.DomainVictim
	for i, priority := range []int32{10, 1000, 50, -5, 2000} {
		victims = append(victims, &preemption.DomainVictim{Victim: preemption.NewPodVictim(podInfo(podOn("n1", fmt.Sprintf("p%d", i), priority)), nil, nil)})
	}
	pods, violations, status := d.SelectVictimsOnNode(t.Context(), nil, podOn("", "high", 1000), info, victims, nil)
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, " "), "p2 p0 p3"; got != want || violations != 0 || !status.IsSuccess() {
		t.Errorf("got %s with %d violations, %v; want %s", got, violations, status, want)
	}
	if n := d.nodes["n1"]; n == nil || n.done || len(n.victims) != len(victims) {
		t.Errorf("deferred: %+v", n)
	}
	_, _, status = d.SelectVictimsOnNode(t.Context(), nil, podOn("", "low", -5), info, victims, nil)
	if status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("without a pod of lower priority: %v", status)
	}
}

// Extenders that are called before the policy receive the candidates of kube-scheduler.
func TestDryRun_IsNotDeferredBeforeExtenders(t *testing.T) {
	d := &dryRun{handle: bareHandle{extenders: []fwk.Extender{&consultant{}}}}
	if d.isDeferred() {
		t.Error("deferred, although an extender supports preemption")
	}
}
