package kubernetes

import (
	"cmp"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cede-scheduler/cede/core/kube/extender"
)

// A quietHandle has no nominated pods.
type quietHandle struct{ bareHandle }

func (quietHandle) NominatedPodsForNode(string) []fwk.PodInfo { return nil }

// The extender has the whole cluster before the first preemption. A snapshot of
// kube-scheduler with the same objects, in whatever order, then contains no change.
func TestWarm_FeedsClusterBeforeFirstPreemption(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	factory := informers.NewSharedInformerFactory(fake.NewClientset(
		simulatedNode("n1"), simulatedNode("n2"), simulatedPod("a", "n1", "", 5), simulatedPod("b", "n1", "", 5), simulatedPod("c", "n2", "", 5), simulatedPod("pending", "", "", 5),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}},
	), 0)
	policies, err := loadPolicy(t.Context(), &Args{Policy: "kubernetes"}, log)
	if err != nil {
		t.Fatal(err)
	}
	e, err := extender.New(extender.Config{Policies: policies, Live: true, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c := &consultant{
		handle: quietHandle{}, budgets: factory.Policy().V1().PodDisruptionBudgets().Lister(), extender: e, log: log,
		mirror: newMirror(&conversions{pods: map[types.UID]conversion{}}),
	}
	if c.related, err = watchRelated(factory, gates(t), log, e.Feed); err != nil {
		t.Fatal(err)
	}
	core := factory.Core().V1()
	core.Nodes().Informer()
	core.Pods().Informer()
	factory.Start(t.Context().Done())
	c.warm(t.Context(), factory)
	if nodes, pods := e.Size(); nodes != 2 || pods != 3 {
		t.Fatalf("the extender has %d nodes and %d pods, want 2 and 3 on nodes", nodes, pods)
	}
	nodes, pods := list(t, core.Nodes().Lister().List), list(t, core.Pods().Lister().List)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(b.Name, a.Name) })
	budgets := list(t, c.budgets.List)
	d, whole, err := c.mirror.changes(nodeInfos(nodes, pods), c.handle.NominatedPodsForNode, budgets)
	if err != nil || whole || len(d.Nodes)+len(d.Pods)+len(d.Budgets)+len(d.Deleted) > 0 {
		t.Errorf("an equal snapshot has changes: whole %t, %+v, %v", whole, d, err)
	}
}

// list returns the objects of a lister.
func list[T any](t *testing.T, from func(labels.Selector) ([]T, error)) []T {
	t.Helper()
	all, err := from(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
