package extender

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// A randomCluster is a small cluster that changes at random. Its pods use all kinds
// of requirements on nodes and on other pods.
type randomCluster struct {
	r     *rand.Rand
	nodes []*corev1.Node
	pods  []*corev1.Pod
	rest  []any // classes and namespaces, which filter ignores
	// budgets are disruption budgets by name.
	budgets map[string]*policyv1.PodDisruptionBudget
	next    int
}

func newRandomCluster(seed uint64) *randomCluster {
	c := &randomCluster{r: rand.New(rand.NewPCG(seed, 1)), budgets: map[string]*policyv1.PodDisruptionBudget{}}
	for i := range 6 {
		n := node(fmt.Sprintf("%c%d", "ab"[i%2], i))
		n.Status.Allocatable["example.com/card"] = resource.MustParse("2")
		c.nodes = append(c.nodes, n)
	}
	for range 12 {
		c.pods = append(c.pods, c.pod(c.someNode()))
	}
	return c
}

func (c *randomCluster) someNode() string { return c.nodes[c.r.IntN(len(c.nodes))].Name }

// pod returns a pod of one of four applications in one of two versions.
func (c *randomCluster) pod(on string) *corev1.Pod {
	c.next++
	app, version := fmt.Sprintf("app-%d", c.r.IntN(4)), fmt.Sprintf("v%d", c.r.IntN(2))
	p := pod(fmt.Sprintf("p-%d", c.next), on, []string{"500m", "1", "2"}[c.r.IntN(3)], []int32{0, 10}[c.r.IntN(2)])
	p.Labels = map[string]string{"app": app, "pod-template-hash": version, "batch.kubernetes.io/job-completion-index": fmt.Sprint(c.r.IntN(3))}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app + "-" + version, Controller: new(true)}}
	one := &p.Spec.Containers[0]
	term := func(key string, expressions ...metav1.LabelSelectorRequirement) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", c.r.IntN(4))}, MatchExpressions: expressions,
		}}}
	}
	switch c.r.IntN(15) {
	case 0:
		one.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	case 1:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("kubernetes.io/hostname")}}
	case 2:
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone")}}
	case 3:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone",
			metav1.LabelSelectorRequirement{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"v1"}})}}
	case 4:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("kubernetes.io/hostname",
			metav1.LabelSelectorRequirement{Key: "batch.kubernetes.io/job-completion-index", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}})}}
	case 5:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		}}
	case 6:
		one.Resources.Requests["example.com/card"] = resource.MustParse("1")
	case 7:
		one.Resources.Requests["example.com/unheard-of"] = resource.MustParse("1")
	case 8:
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{c.someNode()}}}},
		}}}}
	case 9:
		one.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolUDP}}
	case 10:
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "cores", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}}}},
		}}}}
	case 11:
		p.Spec.Tolerations = []corev1.Toleration{{Key: "lost-1", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	}
	if on == "" && c.r.IntN(3) == 0 {
		p.Status.NominatedNodeName = c.someNode()
	}
	return p
}

// event returns a watch event.
func event(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	return text
}

// change applies a random change and returns its watch event.
func (c *randomCluster) change() []byte {
	i := c.r.IntN(len(c.pods))
	switch c.r.IntN(15) {
	case 0, 1, 2:
		p := c.pod(c.someNode())
		c.pods = append(c.pods, p)
		return event("ADDED", p)
	case 3, 4, 5:
		if len(c.pods) > 3 {
			gone := c.pods[i]
			c.pods = append(c.pods[:i:i], c.pods[i+1:]...)
			return event("DELETED", gone)
		}
	case 6:
		p := c.pod("")
		c.pods = append(c.pods, p)
		return event("ADDED", p)
	case 7:
		moved := c.pods[i].DeepCopy()
		moved.Spec.NodeName, moved.Status.NominatedNodeName = c.someNode(), ""
		c.pods[i] = moved
		return event("MODIFIED", moved)
	case 9:
		return c.changeBudget()
	case 8:
		other := c.pods[i].DeepCopy()
		other.Labels["app"] = fmt.Sprintf("app-%d", c.r.IntN(4))
		c.pods[i] = other
		return event("MODIFIED", other)
	default:
		return c.changeNode()
	}
	return event("BOOKMARK", map[string]any{"kind": "Pod"})
}

// changeNode adds, removes or modifies a node, or changes an object that filter
// ignores.
func (c *randomCluster) changeNode() []byte {
	k := c.r.IntN(len(c.nodes))
	n := c.nodes[k].DeepCopy()
	c.nodes[k] = n
	switch c.r.IntN(12) {
	case 0, 1:
		n.Spec.Unschedulable = !n.Spec.Unschedulable
	case 2: // node becomes unreachable, or reachable again
		if n.Spec.Taints = append(n.Spec.Taints[:0:0], n.Spec.Taints...); len(n.Spec.Taints) > 0 {
			n.Spec.Taints = nil
			break
		}
		n.Spec.Taints = []corev1.Taint{{Key: fmt.Sprintf("lost-%d", c.r.IntN(2)), Effect: corev1.TaintEffectNoExecute}}
	case 3:
		n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse([]string{"1", "2", "4"}[c.r.IntN(3)])
	case 4:
		n.Labels["zone"] = []string{"a", "b", "c"}[c.r.IntN(3)]
	case 5:
		n.Labels["cores"] = []string{"4", "8", "16", "many"}[min(c.r.IntN(12), 3)]
	case 6:
		delete(n.Status.Allocatable, "example.com/card")
		n.Status.Allocatable["example.com/unheard-of"] = resource.MustParse("1")
	case 7: // rare, because duplicate hostnames require a rebuild
		if c.r.IntN(4) == 0 {
			n.Labels["kubernetes.io/hostname"] = c.someNode()
		}
	case 8:
		if len(c.nodes) > 3 {
			c.nodes = slices.Delete(c.nodes, k, k+1)
			return event("DELETED", n)
		}
	case 9:
		c.next++
		n = node(fmt.Sprintf("%c-new-%d", "ab"[c.r.IntN(2)], c.r.IntN(6)))
		if at := slices.IndexFunc(c.nodes, func(o *corev1.Node) bool { return o.Name == n.Name }); at >= 0 {
			c.nodes[at] = n
		} else {
			c.nodes = append(c.nodes, n)
		}
		return event("ADDED", n)
	case 10: // requests exceed the allocatable resources
		p := c.pod(n.Name)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5")
		c.pods = append(c.pods, p)
		return event("ADDED", p)
	case 11:
		return c.changeRest()
	}
	return event("MODIFIED", n)
}

func (c *randomCluster) changeRest() []byte {
	c.next++
	about := metav1.ObjectMeta{Name: fmt.Sprintf("o-%d", c.next), Namespace: "default"}
	var one any
	switch c.r.IntN(2) {
	case 0:
		about.Namespace = ""
		one = &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: about, Value: int32(c.next)}
	case 1:
		about.Namespace = ""
		one = &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: about}
	}
	c.rest = append(c.rest, one)
	return event("ADDED", one)
}

// changeBudget adds, modifies or removes a disruption budget.
func (c *randomCluster) changeBudget() []byte {
	name := fmt.Sprintf("budget-%d", c.r.IntN(3))
	old := c.budgets[name]
	if old != nil && c.r.IntN(3) == 0 {
		delete(c.budgets, name)
		return event("DELETED", old)
	}
	b := &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:   policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", c.r.IntN(4))}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: c.r.Int32N(3)},
	}
	switch c.r.IntN(4) {
	case 0: // no equal labels are equivalent
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"v0"}}}}
	case 1: // otherwise the label is dropped
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/job-completion-index": "1"}}
	}
	c.budgets[name] = b
	if old != nil {
		return event("MODIFIED", b)
	}
	return event("ADDED", b)
}

// proposal returns a preemption request in which all pods of lower priority are
// victims on their nodes.
func (c *randomCluster) proposal(pending *corev1.Pod) *extenderv1.ExtenderPreemptionArgs {
	preemptor := pending.DeepCopy()
	preemptor.Spec.Priority = new(int32(1000))
	victims := map[string][]*corev1.Pod{}
	for _, n := range c.nodes {
		for _, p := range c.pods {
			if p.Spec.NodeName == n.Name {
				victims[n.Name] = append(victims[n.Name], p)
			}
		}
	}
	return metaProposalOf(preemptor, victims)
}

// objects returns all objects. Pods may outlive their node, as in Kubernetes.
func (c *randomCluster) objects() (all []any) {
	all = append(all, c.rest...)
	for _, b := range c.budgets {
		all = append(all, b)
	}
	for _, n := range c.nodes {
		all = append(all, n)
	}
	for _, p := range c.pods {
		all = append(all, p)
	}
	return all
}
