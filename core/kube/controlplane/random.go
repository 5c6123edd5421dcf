package controlplane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Case is a preemption with nodes of its own: other cases have other nodes.
type Case struct {
	Seed    uint64
	Name    string
	Nodes   []*corev1.Node
	Pods    []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	Groups  []*schedulingv1beta1.PodGroup
	// Slices hold the devices of nodes, and Claims request them. A claim with an allocation
	// belongs to the pod of its name.
	Slices     []*resourcev1.ResourceSlice
	Claims     []*resourcev1.ResourceClaim
	Preemptors []*corev1.Pod
	Gang       *schedulingv1beta1.PodGroup // of the preemptors; nil: there is one, without a group
	Classes    []int32                     // priorities that the pods require
}

const (
	caseLabel = "case"
	zoneLabel = "topology.kubernetes.io/zone"
	appLabel  = "app"
)

var priorities = []int32{-10, 0, 0, 10, 10, 50, 100, 2000}

// RandomCase returns a case with several nodes, priorities, budgets, taints, affinities,
// spread constraints, in a third of the cases pod groups, and in a quarter devices. No two
// pods start in the same second, so that no two choices are equal in all criteria of
// kube-scheduler.
func RandomCase(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &Case{Seed: seed, Name: fmt.Sprintf("c%d", seed), Classes: append(slices.Clone(priorities), 1000)}
	for n := range 1 + r.IntN(4) {
		c.addNode(r, n)
	}
	for range r.IntN(3) {
		c.addBudget(r)
	}
	p := c.pod(r, "high", "", 1000, int64(1+r.IntN(5))*1000)
	p.Annotations = nil
	c.constrain(r, p)
	c.Preemptors = []*corev1.Pod{p}
	c.group(rand.New(rand.NewPCG(seed, 2)))
	c.addDevices(rand.New(rand.NewPCG(seed, 3)))
	return c
}

// RandomGangCase returns a random case of which the preemptors are the pods of a gang.
func RandomGangCase(seed uint64) *Case {
	c, r := RandomCase(seed), rand.New(rand.NewPCG(seed, 4))
	first := c.Preemptors[0]
	first.Spec.TopologySpreadConstraints = nil
	count, milli := 2+r.IntN(3), int64(1+r.IntN(4))*500
	c.Gang = c.newGroup("gang", 1000)
	c.Gang.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(count - r.IntN(2))}} //nolint:gosec // G115: at most 4
	first.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &c.Gang.Name}
	first.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	c.Preemptors, c.Claims = nil, slices.DeleteFunc(c.Claims, func(claim *resourcev1.ResourceClaim) bool { return claim.Name == first.Name })
	first.Spec.ResourceClaims, first.Spec.Containers[0].Resources.Claims = nil, nil
	for i := range count {
		p := first.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", first.Name, i)
		c.Preemptors = append(c.Preemptors, p)
	}
	return c
}

// newGroup returns a pod group of which pods are evicted one by one.
func (c *Case) newGroup(name string, priority int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name + "-" + name, Namespace: metav1.NamespaceDefault},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}},
			DisruptionMode:    &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}},
			PriorityClassName: className(priority),
		},
	}
}

// Names of the devices of cases.
const (
	deviceClass  = "gpu"
	deviceDriver = "gpu.controlplane.cede"
)

// addDevices adds devices to the nodes of some cases. Some of their pods have claimed one, and
// in half of these cases the preemptor claims one too.
func (c *Case) addDevices(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	for _, n := range c.Nodes {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: deviceDriver, NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1},
			},
		}
		for i := range 1 + r.IntN(3) {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
		}
		c.Slices = append(c.Slices, slice)
		used := 0
		for _, p := range c.Pods {
			if p.Spec.NodeName == n.Name && used < len(slice.Spec.Devices) && r.IntN(2) == 0 {
				c.claim(p, &slice.Spec.Devices[used])
				used++
			}
		}
	}
	if r.IntN(2) == 0 {
		c.claim(c.Preemptors[0], nil)
	}
}

// claim lets a pod claim a device of its node, which is allocated unless it is nil.
func (c *Case) claim(p *corev1.Pod, device *resourcev1.Device) {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "device", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass},
		}}}},
	}
	if device != nil {
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "device", Driver: deviceDriver, Pool: p.Spec.NodeName, Device: device.Name,
		}}}}
	}
	c.Claims = append(c.Claims, claim)
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim.Name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
}

// group makes some pods of the case members of pod groups: usually those of one node, and
// usually with the priority of the group.
func (c *Case) group(r *rand.Rand) {
	if r.IntN(3) > 0 || len(c.Pods) == 0 {
		return
	}
	for g := range 1 + r.IntN(2) {
		priority, node, differ := priorities[r.IntN(len(priorities))], c.Nodes[r.IntN(len(c.Nodes))].Name, r.IntN(5) == 0
		one := c.newGroup(fmt.Sprint("g", g), priority)
		if r.IntN(3) > 0 {
			one.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		}
		onAllNodes := r.IntN(4) == 0
		for left, i := 2+r.IntN(3), 0; i < len(c.Pods) && left > 0; i++ {
			p := c.Pods[i]
			if p.Spec.SchedulingGroup != nil || r.IntN(2) == 0 || p.Spec.NodeName != node && !onAllNodes {
				continue
			}
			if p.Spec.SchedulingGroup = (&corev1.PodSchedulingGroup{PodGroupName: &one.Name}); !differ {
				p.Spec.PriorityClassName = className(priority)
			}
			left--
		}
		c.Groups = append(c.Groups, one)
	}
}

// className returns the name of the class that CreatePriorityClass creates.
func className(priority int32) string {
	if priority < 0 {
		return fmt.Sprintf("n-%d", -int64(priority))
	}
	return fmt.Sprintf("p-%d", priority)
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
	p := Pod(c.Name+"-"+name, fmt.Sprintf("%dm", milli), className(priority), node)
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

// constrain adds requirements to a preemptor.
func (c *Case) constrain(r *rand.Rand, p *corev1.Pod) {
	spec := &p.Spec
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
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}
}
