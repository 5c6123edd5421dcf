package controlplane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Case is a preemption with nodes of its own: other cases have other nodes.
type Case struct {
	Seed      uint64
	Name      string
	Nodes     []*corev1.Node
	Pods      []*corev1.Pod
	Budgets   []*policyv1.PodDisruptionBudget
	Preemptor *corev1.Pod
	Classes   []int32 // priorities that the pods require
}

const (
	caseLabel = "case"
	zoneLabel = "topology.kubernetes.io/zone"
	appLabel  = "app"
)

var priorities = []int32{-10, 0, 0, 10, 10, 50, 100, 2000}

// RandomCase returns a case with several nodes, priorities, budgets, taints, affinities
// and spread constraints. No two pods start in the same second, so that no two choices
// are equal in all criteria of kube-scheduler.
func RandomCase(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &Case{Seed: seed, Name: fmt.Sprintf("c%d", seed), Classes: append(slices.Clone(priorities), 1000)}
	for n := range 1 + r.IntN(4) {
		c.addNode(r, n)
	}
	for range r.IntN(3) {
		c.addBudget(r)
	}
	c.Preemptor = c.pod(r, "high", "", 1000, int64(1+r.IntN(5))*1000)
	c.Preemptor.Annotations = nil
	c.constrain(r)
	return c
}

func (c *Case) addNode(r *rand.Rand, n int) {
	cpu := 2 + r.IntN(7)
	node := Node(fmt.Sprintf("%s-n%d", c.Name, n), fmt.Sprint(cpu))
	node.Labels[caseLabel], node.Labels[zoneLabel] = c.Name, fmt.Sprintf("%s-z%d", c.Name, r.IntN(2))
	node.Labels["disk"] = []string{"ssd", "hdd"}[r.IntN(2)]
	if r.IntN(5) == 0 {
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	if r.IntN(4) == 0 {
		memory := resource.MustParse(fmt.Sprintf("%dGi", 4+r.IntN(12)))
		node.Status.Allocatable = node.Status.Allocatable.DeepCopy()
		node.Status.Allocatable["memory"] = memory
	}
	c.Nodes = append(c.Nodes, node)
	free, memory := int64(cpu)*1000, node.Status.Allocatable.Memory().Value()>>30
	for i := 0; free >= 250 && i < 12; i++ {
		amount := min(free, []int64{250, 500, 1000, 1000, 2000, 3000}[r.IntN(6)])
		p := c.pod(r, fmt.Sprintf("p%d-%d", n, i), node.Name, priorities[r.IntN(len(priorities))], amount)
		if g := int64(r.IntN(3)); g > 0 && g <= memory {
			p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse(fmt.Sprintf("%dGi", g))
			memory -= g
		}
		free -= amount
		c.Pods = append(c.Pods, p)
	}
}

func (c *Case) pod(r *rand.Rand, name, node string, priority int32, milli int64) *corev1.Pod {
	class := fmt.Sprintf("p-%d", priority)
	if priority < 0 {
		class = fmt.Sprintf("n-%d", -priority)
	}
	p := Pod(c.Name+"-"+name, fmt.Sprintf("%dm", milli), class, node)
	p.Labels = map[string]string{appLabel: fmt.Sprintf("%s-a%d", c.Name, r.IntN(3)), caseLabel: c.Name}
	// The number of pods so far makes the seconds unique.
	started := time.Now().Add(-time.Duration(r.IntN(50)*100+len(c.Pods)) * time.Second)
	p.Annotations = map[string]string{StartedAnnotation: started.UTC().Format(time.RFC3339)}
	return p
}

func (c *Case) addBudget(r *rand.Rand) {
	least := intstr.FromInt(r.IntN(4))
	c.Budgets = append(c.Budgets, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-b%d", c.Name, len(c.Budgets)), Namespace: metav1.NamespaceDefault},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: fmt.Sprintf("%s-a%d", c.Name, r.IntN(3))}},
		},
	})
}

// constrain adds requirements to the preemptor.
func (c *Case) constrain(r *rand.Rand) {
	spec := &c.Preemptor.Spec
	spec.NodeSelector = map[string]string{caseLabel: c.Name}
	if r.IntN(2) == 0 {
		spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: fmt.Sprintf("%s-a%d", c.Name, r.IntN(3))}}
	switch r.IntN(6) {
	case 0:
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}},
		}}}
	case 1:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: app, TopologyKey: []string{"kubernetes.io/hostname", zoneLabel}[r.IntN(2)]},
		}}}
	case 2:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: c.Preemptor.Labels},
		}}
	}
}
