package kubernetes

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/cede-scheduler/cede/core/kube"
)

// A snapshot is a cluster as kube-scheduler sees it. Pods of node "" are pending, with a
// nomination.
type snapshot struct {
	nodes   map[string]fwk.NodeInfo
	pods    map[types.UID]*corev1.Pod
	pending map[types.UID]string // nominated node
	budgets map[string]*policyv1.PodDisruptionBudget
	version int
}

func (s *snapshot) next() string {
	s.version++
	return fmt.Sprint(s.version)
}

// change makes one random change.
func (s *snapshot) change(r *rand.Rand) {
	node := fmt.Sprintf("n%d", r.IntN(3))
	uid := types.UID(fmt.Sprintf("u%d", r.IntN(8)))
	switch r.IntN(6) {
	case 0:
		if s.nodes[node] == nil {
			s.nodes[node] = framework.NewNodeInfo()
		}
		s.nodes[node].SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, ResourceVersion: s.next(), Labels: map[string]string{"v": fmt.Sprint(r.IntN(9))}}})
	case 1: // kube-scheduler removes a node with its pods
		for uid, p := range s.pods {
			if p.Spec.NodeName == node {
				delete(s.pods, uid)
			}
		}
		for uid, nominated := range s.pending {
			if nominated == node {
				delete(s.pending, uid)
				delete(s.pods, uid)
			}
		}
		delete(s.nodes, node)
	case 2:
		name := fmt.Sprintf("b%d", r.IntN(2))
		if delete(s.budgets, name); r.IntN(3) > 0 {
			s.budgets[name] = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x", ResourceVersion: s.next()}}
		}
	default:
		s.changePod(r, uid, node)
	}
}

// changePod removes a pod, moves it, or assumes a nominated one on a node without a new
// version.
func (s *snapshot) changePod(r *rand.Rand, uid types.UID, node string) {
	old := s.pods[uid]
	if old != nil && old.Spec.NodeName != "" {
		_ = s.nodes[old.Spec.NodeName].RemovePod(klog.Background(), old) // it is there
	}
	delete(s.pods, uid)
	delete(s.pending, uid)
	if s.nodes[node] == nil || r.IntN(3) == 0 {
		return
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), Namespace: "x", UID: uid, ResourceVersion: s.next()}}
	if old != nil && old.Spec.NodeName == "" {
		p = old.DeepCopy() // assumed: the version is that of the pending pod
	}
	if s.pods[uid] = p; r.IntN(3) == 0 {
		p.Spec.NodeName, p.ResourceVersion = "", s.next()
		s.pending[uid] = node
		return
	}
	p.Spec.NodeName = node
	s.nodes[node].AddPodInfo(podInfo(p))
}

func podInfo(p *corev1.Pod) fwk.PodInfo {
	info, err := framework.NewPodInfo(p)
	if err != nil {
		panic(err)
	}
	return info
}

func (s *snapshot) nominated(node string) (list []fwk.PodInfo) {
	for uid, on := range s.pending {
		if on == node {
			list = append(list, podInfo(s.pods[uid]))
		}
	}
	return list
}

// describe lists the objects, one in a line.
func (s *snapshot) describe() string {
	var lines []string
	for name, n := range s.nodes {
		lines = append(lines, "node "+name+" "+n.Node().Labels["v"])
	}
	for uid, p := range s.pods {
		lines = append(lines, fmt.Sprintf("pod %s on %q nominated to %q", uid, p.Spec.NodeName, s.pending[uid]))
	}
	for name := range s.budgets {
		lines = append(lines, "budget "+name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A store is a cache that is fed with dumps.
type store map[string]string

func (s store) feed(d *kube.Dump) {
	for _, n := range d.Nodes {
		s["node "+n.Metadata.Name] = "node " + n.Metadata.Name + " " + n.Metadata.Labels["v"]
	}
	for _, p := range d.Pods {
		s["pod "+p.Metadata.UID] = fmt.Sprintf("pod %s on %q nominated to %q", p.Metadata.UID, p.Spec.NodeName, p.Status.NominatedNodeName)
	}
	for _, b := range d.Budgets {
		s["budget "+b.Metadata.Name] = "budget " + b.Metadata.Name
	}
	for _, o := range d.Deleted {
		switch o := o.(type) {
		case *kube.Node:
			delete(s, "node "+o.Metadata.Name)
		case *kube.Pod:
			delete(s, "pod "+o.Metadata.UID)
		case *kube.Budget:
			delete(s, "budget "+o.Metadata.Name)
		}
	}
}

func (s store) describe() string {
	return strings.Join(slices.Sorted(maps.Values(s)), "\n")
}

// Random model test: after any changes, a cache that received the changes between
// snapshots holds the objects of the last snapshot.
func TestMirror_ChangesLeadToSnapshot(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := &snapshot{nodes: map[string]fwk.NodeInfo{}, pods: map[types.UID]*corev1.Pod{}, pending: map[types.UID]string{}, budgets: map[string]*policyv1.PodDisruptionBudget{}}
		m, got := newMirror(&conversions{pods: map[types.UID]conversion{}}), store{}
		for step := range 40 {
			for range 1 + r.IntN(3) {
				s.change(r)
			}
			d, whole, err := m.changes(slices.Collect(maps.Values(s.nodes)), s.nominated, slices.Collect(maps.Values(s.budgets)))
			if err != nil || whole != (step == 0) {
				t.Fatalf("seed %d, step %d: whole %t, %v", seed, step, whole, err)
			}
			if got.feed(d); got.describe() != s.describe() {
				t.Fatalf("seed %d, step %d: the cache has\n%s\nwant\n%s", seed, step, got.describe(), s.describe())
			}
			d, _, err = m.changes(slices.Collect(maps.Values(s.nodes)), s.nominated, slices.Collect(maps.Values(s.budgets)))
			if err != nil || len(d.Nodes)+len(d.Pods)+len(d.Budgets)+len(d.Deleted) > 0 {
				t.Fatalf("seed %d, step %d: changes of an equal snapshot: %+v, %v", seed, step, d, err)
			}
		}
	}
}

// The informer reports pods with a node and deleted pods, and no pending ones.
func TestWatchPods_ReportsBoundAndDeletedPods(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	reported := make(chan string, 10)
	c, err := watchPods(factory.Core().V1().Pods().Informer(), slog.New(slog.DiscardHandler), func(p *kube.Pod, deleted bool) {
		reported <- fmt.Sprint(p.Metadata.Name, " on ", p.Spec.NodeName, " ", deleted)
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	pods := client.CoreV1().Pods("x")
	for _, p := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "pending", UID: "u1", ResourceVersion: "1"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bound", UID: "u2", ResourceVersion: "2"}, Spec: corev1.PodSpec{NodeName: "n"}},
	} {
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-reported; got != "bound on n false" {
		t.Errorf("got %q", got)
	}
	if err := pods.Delete(t.Context(), "bound", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-reported; got != "bound on n true" {
		t.Errorf("got %q", got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pods) != 0 {
		t.Errorf("%d converted pods are stored after all were deleted or pending", len(c.pods))
	}
}
