package kubernetes

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// A mirror computes the changes between the snapshots of kube-scheduler, in the form that
// an extender is fed with. Only nodes whose generation has changed are compared.
type mirror struct {
	converted *conversions
	fed       bool
	nodes     map[string]*mirroredNode
	pods      map[types.UID]mirroredPod // on nodes, and nominated pods
	nominated map[types.UID]bool
	budgets   map[types.NamespacedName]*policyv1.PodDisruptionBudget
}

type mirroredNode struct {
	generation int64
	node       *corev1.Node // as last fed
	pods       map[types.UID]bool
}

// A mirroredPod is a pod as last fed.
type mirroredPod struct {
	pod  *corev1.Pod
	node string // on which it is or to which it is nominated
}

func newMirror(c *conversions) *mirror {
	return &mirror{
		converted: c, nodes: map[string]*mirroredNode{}, pods: map[types.UID]mirroredPod{},
		nominated: map[types.UID]bool{}, budgets: map[types.NamespacedName]*policyv1.PodDisruptionBudget{},
	}
}

// changes returns the changes since the last call. whole is true the first time.
func (m *mirror) changes(nodes []fwk.NodeInfo, nominated func(node string) []fwk.PodInfo, budgets []*policyv1.PodDisruptionBudget) (d *kube.Dump, whole bool, err error) {
	d, whole = &kube.Dump{}, !m.fed
	gone := map[types.UID]string{} // pods that are not on this node any longer
	pending := map[types.UID]bool{}
	for _, info := range nodes {
		if err := m.addNode(d, info, gone); err != nil {
			return nil, false, err
		}
	}
	if len(m.nodes) > len(nodes) {
		m.removeNodes(d, nodes, gone)
	}
	for _, info := range nodes { // after the pods of all nodes: a pod may have been assumed on another node
		name := info.Node().Name
		for _, p := range nominated(name) {
			pending[p.GetPod().UID] = true
			if err := m.addNominated(d, p.GetPod(), name); err != nil {
				return nil, false, err
			}
		}
	}
	for uid := range m.nominated {
		if !pending[uid] && m.pods[uid].pod != nil && m.pods[uid].pod.Spec.NodeName == "" {
			gone[uid] = m.pods[uid].node
		}
	}
	m.nominated = pending
	m.remove(d, gone)
	if err := m.addBudgets(d, budgets); err != nil {
		return nil, false, err
	}
	m.fed = true
	return d, whole, nil
}

// removeNodes adds the deletion of the nodes that are not among the given ones.
func (m *mirror) removeNodes(d *kube.Dump, nodes []fwk.NodeInfo, gone map[types.UID]string) {
	present := make(map[string]bool, len(nodes))
	for _, info := range nodes {
		present[info.Node().Name] = true
	}
	for name, n := range m.nodes {
		if present[name] {
			continue
		}
		for uid := range n.pods {
			gone[uid] = name
		}
		d.Deleted = append(d.Deleted, &kube.Node{Metadata: kube.Metadata{Name: name}})
		delete(m.nodes, name)
	}
}

// addNode adds the changes of a node and its pods.
func (m *mirror) addNode(d *kube.Dump, info fwk.NodeInfo, gone map[types.UID]string) error {
	name := info.Node().Name
	n := m.nodes[name]
	if n != nil && n.generation == info.GetGeneration() {
		return nil
	}
	if n == nil {
		n = &mirroredNode{}
		m.nodes[name] = n
	} else if m.isCurrent(n, info) {
		n.generation = info.GetGeneration()
		return nil
	}
	if n.node != info.Node() {
		value, err := watch.Convert(info.Node())
		if err != nil {
			return err
		}
		d.Nodes = append(d.Nodes, value.(*kube.Node))
		n.node = info.Node()
	}
	pods := make(map[types.UID]bool, len(info.GetPods()))
	for _, p := range info.GetPods() {
		pods[p.GetPod().UID] = true
		if err := m.addPod(d, p.GetPod(), name); err != nil {
			return err
		}
	}
	for uid := range n.pods {
		if !pods[uid] {
			gone[uid] = name
		}
	}
	n.pods, n.generation = pods, info.GetGeneration()
	return nil
}

// isCurrent reports whether a node and its pods were last fed as they are.
func (m *mirror) isCurrent(n *mirroredNode, info fwk.NodeInfo) bool {
	if n.node != info.Node() || len(n.pods) != len(info.GetPods()) {
		return false
	}
	for _, p := range info.GetPods() {
		pod := p.GetPod()
		if last := m.pods[pod.UID]; last.pod != pod || last.node != n.node.Name || !n.pods[pod.UID] {
			return false
		}
	}
	return true
}

// addPod adds a pod unless it was fed in the same version and on the same node.
func (m *mirror) addPod(d *kube.Dump, p *corev1.Pod, node string) error {
	if last, ok := m.pods[p.UID]; ok && last.pod == p && last.node == node {
		return nil
	}
	value, err := m.converted.get(p)
	if err != nil {
		return err
	}
	d.Pods = append(d.Pods, value)
	m.pods[p.UID] = mirroredPod{p, node}
	return nil
}

// addNominated adds a pending pod that is nominated to a node, unless it is on a node.
func (m *mirror) addNominated(d *kube.Dump, p *corev1.Pod, node string) error {
	if last, ok := m.pods[p.UID]; ok {
		n := m.nodes[last.node]
		if last.pod == p && last.node == node || n != nil && n.pods[p.UID] {
			return nil
		}
	}
	value, err := m.converted.get(p)
	if err != nil {
		return err
	}
	one := *value
	one.Spec.NodeName, one.Status.NominatedNodeName = "", node // the object is older than the nomination
	d.Pods = append(d.Pods, &one)
	m.pods[p.UID] = mirroredPod{p, node}
	return nil
}

// remove adds the deletion of pods that are on no node any longer.
func (m *mirror) remove(d *kube.Dump, gone map[types.UID]string) {
	for _, uid := range slices.Sorted(maps.Keys(gone)) {
		if last := m.pods[uid]; last.pod != nil && last.node == gone[uid] && !m.nominated[uid] {
			d.Deleted = append(d.Deleted, &kube.Pod{Metadata: kube.Metadata{UID: string(uid), Name: last.pod.Name, Namespace: last.pod.Namespace}})
			delete(m.pods, uid)
		}
	}
}

// addBudgets adds the changes of the disruption budgets.
func (m *mirror) addBudgets(d *kube.Dump, budgets []*policyv1.PodDisruptionBudget) error {
	now := make(map[types.NamespacedName]*policyv1.PodDisruptionBudget, len(budgets))
	for _, b := range budgets {
		name := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
		now[name] = b
		if m.budgets[name] == b {
			continue
		}
		value, err := watch.Convert(b)
		if err != nil {
			return err
		}
		d.Budgets = append(d.Budgets, value.(*kube.Budget))
	}
	for name := range m.budgets {
		if now[name] == nil {
			d.Deleted = append(d.Deleted, &kube.Budget{Metadata: kube.Metadata{Namespace: name.Namespace, Name: name.Name}})
		}
	}
	m.budgets = now
	return nil
}

// conversions holds converted pods, so that they are converted when they change and not
// while a pod waits for its preemption. It is safe for concurrent use.
type conversions struct {
	mu   sync.Mutex
	pods map[types.UID]conversion
}

type conversion struct {
	version string
	pod     *kube.Pod
}

// watchPods converts the pods of an informer. It calls changed for each pod that has a
// node or is deleted: both are final, so that they may precede the next snapshot.
func watchPods(informer cache.SharedIndexInformer, log *slog.Logger, changed func(p *kube.Pod, deleted bool)) (*conversions, error) {
	c := &conversions{pods: map[types.UID]conversion{}}
	convert := func(o any, deleted bool) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		p, ok := o.(*corev1.Pod)
		if !ok || p.Spec.NodeName == "" && !deleted {
			return
		}
		value, err := c.get(p)
		if err != nil {
			log.Error("pod cannot be converted", "pod", p.Namespace+"/"+p.Name, "err", err)
			return
		}
		if deleted {
			c.drop(p)
		}
		changed(value, deleted)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { convert(o, false) },
		UpdateFunc: func(_, o any) { convert(o, false) },
		DeleteFunc: func(o any) { convert(o, true) },
	})
	return c, err
}

// get returns a pod as an object of package kube, which must not be modified. A pod that
// kube-scheduler has assumed on a node has the version of the pending pod.
func (c *conversions) get(p *corev1.Pod) (*kube.Pod, error) {
	c.mu.Lock()
	last, ok := c.pods[p.UID]
	c.mu.Unlock()
	if ok && last.version == p.ResourceVersion {
		return onNode(last.pod, p.Spec.NodeName), nil
	}
	value, err := watch.Convert(p)
	if err != nil {
		return nil, err
	}
	pod, ok := value.(*kube.Pod)
	if !ok {
		return nil, fmt.Errorf("unexpected object %T", value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[p.UID] = conversion{p.ResourceVersion, pod}
	return pod, nil
}

// drop removes a pod that was deleted.
func (c *conversions) drop(p *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, p.UID)
}

// onNode returns the pod, or a copy of it if it has another node.
func onNode(p *kube.Pod, node string) *kube.Pod {
	if p.Spec.NodeName == node {
		return p
	}
	one := *p
	one.Spec.NodeName = node
	return &one
}
