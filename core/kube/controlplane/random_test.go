package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// In random cases, the policy kubernetes chooses the node and the victims that
// kube-scheduler chooses. CEDE_CASES is the number of cases, CEDE_SEED the first seed.
func TestRandom_PolicyChoosesAsKubeScheduler(t *testing.T) {
	count, first := setting(t, "CEDE_CASES", 800), uint64(setting(t, "CEDE_SEED", 1))
	if testing.Short() {
		count = setting(t, "CEDE_CASES", 20)
	}
	const batch = 20
	c := clusterWithPodGroups(t)
	cede := cede(t)
	agree, unasked, differ := 0, 0, 0
	explained := map[string]int{} // differences by rule
	for from := 0; from < count; from += batch {
		var cases []*Case
		for i := range min(batch, count-from) {
			cases = append(cases, RandomCase(first+uint64(from+i)))
		}
		results := c.playCases(t, cede, cases)
		for _, k := range cases {
			r := results[k.Name]
			switch {
			case !r.asked:
				unasked++
			case victimsOf(r.stock) != victimsOf(r.extender) && k.differs(r) != "":
				explained[k.differs(r)]++
				t.Logf("seed %d: kube-scheduler chose %s, the policy chose %s: %s", k.Seed, k.named(r.stock), k.named(r.extender), k.differs(r))
			case victimsOf(r.stock) != victimsOf(r.extender):
				differ++
				t.Errorf("seed %d: kube-scheduler chose %s\nthe policy chose %s\nproposals:\n%s\n%s", k.Seed, k.named(r.stock), k.named(r.extender), k.named(r.proposals), k)
			default:
				agree++
			}
		}
		c.Reset(t)
	}
	t.Logf("%d cases agree, %d differ by a rule %v, %d otherwise; in %d no eviction helps or none is necessary", agree, sum(explained), explained, differ, unasked)
	if agree < count/2 || sum(explained) > count/10 {
		t.Errorf("of %d cases only %d agree: the generator has lost them", count, agree)
	}
}

// differs returns the rule by which the policy may choose otherwise than kube-scheduler,
// as stated in policies/kubernetes/README.md, or "". A rule applies only if the case has
// what the rule is about.
func (k *Case) differs(r caseResult) string {
	if len(k.Preemptors[0].Spec.TopologySpreadConstraints) > 0 {
		return "spread constraints count the pods of the preemptor's own group"
	}
	for proposal := range strings.SplitSeq(r.proposals, "\n") {
		if proposal != r.extender && victimsOf(proposal) == victimsOf(r.extender) {
			return "kube-scheduler charges candidates that it puts back to their budgets"
		}
	}
	if rule := k.groupRule(r); rule != "" {
		return rule
	}
	if len(k.Preemptors[0].Spec.ResourceClaims) > 0 {
		return "kube-scheduler evicts no pod for the devices of a claim"
	}
	return k.gangRule(r)
}

// gangRule returns the rule on gangs that applies to the case, or "": kube-scheduler places
// all pods of a gang before it chooses victims, and the policy one after another where their
// victims are the cheapest.
func (k *Case) gangRule(r caseResult) string {
	switch {
	case k.Gang == nil:
		return ""
	case slices.Compare(k.cost(r.extender), k.cost(r.stock)) < 0:
		return "a gang is placed where its victims are the cheapest"
	}
	return "the pods of a gang are placed one after another"
}

// cost returns the priorities of evicted pods, the highest first.
func (k *Case) cost(evicted string) (list []int32) {
	for _, p := range k.Pods {
		if slices.Contains(strings.Fields(evicted), p.Name) {
			list = append(list, k.Classes[slices.IndexFunc(k.Classes, func(v int32) bool { return className(v) == k.priorityOf(p) })])
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// nodesOf returns the nodes of evicted pods, which a choice lists by name or by UID.
func (k *Case) nodesOf(choice string) []string {
	evicted, nodes := strings.Fields(choice), map[string]bool{}
	for _, p := range k.Pods {
		if slices.Contains(evicted, p.Name) || slices.Contains(evicted, string(p.UID)) {
			nodes[p.Spec.NodeName] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// groupRule returns the rule on pod groups that applies to the case, or "". An extender has a
// rule of its own, for which there are proposals.
func (k *Case) groupRule(r caseResult) string {
	nodes, equal, differ := map[string]map[string]bool{}, false, false
	for _, g := range k.Groups {
		nodes[g.Name] = map[string]bool{}
		for _, p := range k.Pods {
			switch {
			case groupOf(p) == g.Name:
				nodes[g.Name][p.Spec.NodeName] = true
				differ = differ || p.Spec.PriorityClassName != g.Spec.PriorityClassName
			case k.priorityOf(p) == g.Spec.PriorityClassName:
				equal = true
			}
		}
		if r.proposals != "" && g.Spec.DisruptionMode.All != nil && len(nodes[g.Name]) > 1 {
			return "an extender evicts no group that has pods on several nodes"
		}
	}
	if k.hasGroupUnderBudget() {
		return "kube-scheduler charges a group to budgets as a whole"
	}
	if differ && !slices.Equal(k.nodesOf(r.stock), k.nodesOf(r.extender)) {
		return "kube-scheduler compares nodes by the priorities of pods, even if their group has another"
	}
	if equal {
		return "of equal priorities, kube-scheduler keeps groups rather than pods"
	}
	return ""
}

// hasGroupUnderBudget reports whether a budget selects a pod of a group that is evicted as a
// whole.
func (k *Case) hasGroupUnderBudget() bool {
	for _, g := range k.Groups {
		for _, p := range k.Pods {
			if g.Spec.DisruptionMode.All != nil && groupOf(p) == g.Name && slices.ContainsFunc(k.Budgets, func(b *policyv1.PodDisruptionBudget) bool {
				return b.Spec.Selector.MatchLabels[appLabel] == p.Labels[appLabel]
			}) {
				return true
			}
		}
	}
	return false
}

// priorityOf returns the class of a pod's group, or of the pod.
func (k *Case) priorityOf(p *corev1.Pod) string {
	for _, g := range k.Groups {
		if g.Name == groupOf(p) {
			return g.Spec.PriorityClassName
		}
	}
	return p.Spec.PriorityClassName
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// victimsOf returns a choice without its number of violations, which kube-scheduler counts
// differently.
func victimsOf(choice string) string {
	victims, _, _ := strings.Cut(choice, " (")
	return victims
}

type caseResult struct {
	asked           bool
	stock, extender string
	proposals       string
}

// createCases creates the objects of cases, except their preemptors.
func (c *Cluster) createCases(t *testing.T, cases []*Case) {
	t.Helper()
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	var budgets []*policyv1.PodDisruptionBudget
	var groups []*schedulingv1beta1.PodGroup
	for _, k := range cases {
		nodes, pods, budgets, groups = append(nodes, k.Nodes...), append(pods, k.Pods...), append(budgets, k.Budgets...), append(groups, k.Groups...)
		if k.Gang != nil {
			groups = append(groups, k.Gang)
		}
		for _, value := range k.Classes {
			c.CreatePriorityClass(t, value)
		}
	}
	c.CreateNodes(t, nodes...)
	each(t, groups, c.createPodGroup)
	c.createDevices(t, cases)
	c.CreatePods(t, pods...)
	// Afterwards: of several budgets for a pod, the controller updates one when the pod changes.
	each(t, budgets, func(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
		_, err := c.Client.PolicyV1().PodDisruptionBudgets(b.Namespace).Create(ctx, b, metav1.CreateOptions{})
		return err
	})
	c.nameVictims(t, cases)
	c.allocateClaims(t, cases)
	c.awaitBudgets(t, cases)
}

// createDevices creates the devices and the claims of cases.
func (c *Cluster) createDevices(t *testing.T, cases []*Case) {
	t.Helper()
	var claims []*resourcev1.ResourceClaim
	var devices []*resourcev1.ResourceSlice
	for _, k := range cases {
		claims, devices = append(claims, k.Claims...), append(devices, k.Slices...)
	}
	if len(devices) == 0 {
		return
	}
	api := c.Client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceDriver)}},
	}}}
	if _, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); unlessPresent(err) != nil {
		t.Fatal(err)
	}
	each(t, devices, func(ctx context.Context, s *resourcev1.ResourceSlice) error {
		_, err := api.ResourceSlices().Create(ctx, s, metav1.CreateOptions{})
		return err
	})
	each(t, claims, func(ctx context.Context, claim *resourcev1.ResourceClaim) error {
		_, err := api.ResourceClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
}

// allocateClaims stores the allocations of the claims of pods on nodes.
func (c *Cluster) allocateClaims(t *testing.T, cases []*Case) {
	t.Helper()
	uids := map[string]types.UID{}
	var claims []*resourcev1.ResourceClaim
	for _, k := range cases {
		for _, p := range k.Pods {
			uids[p.Name] = p.UID
		}
		claims = append(claims, slices.DeleteFunc(slices.Clone(k.Claims), func(claim *resourcev1.ResourceClaim) bool { return claim.Status.Allocation == nil })...)
	}
	each(t, claims, func(ctx context.Context, claim *resourcev1.ResourceClaim) error {
		api := c.Client.ResourceV1().ResourceClaims(claim.Namespace)
		return retry.RetryOnConflict(retry.DefaultRetry, func() error { // with the controller of claims
			now, err := api.Get(ctx, claim.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Status.Allocation = claim.Status.Allocation
			now.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: claim.Name, UID: uids[claim.Name]}}
			_, err = api.UpdateStatus(ctx, now, metav1.UpdateOptions{})
			return err
		})
	})
}

// preemptorsOf returns the preemptors of cases.
func preemptorsOf(cases []*Case) (list []*corev1.Pod) {
	for _, k := range cases {
		list = append(list, k.Preemptors...)
	}
	return list
}

// playCases creates the objects of cases, then their preemptors, and returns the choices of
// kube-scheduler and of the policy.
func (c *Cluster) playCases(t *testing.T, cede string, cases []*Case) map[string]caseResult {
	t.Helper()
	c.createCases(t, cases)
	e := c.StartCede(t, Cede{Path: cede, Policy: "kubernetes"})
	defer e.Stop()
	shadow := StartShadow(t, e)
	s := c.StartScheduler(t, Scheduler{Name: "scheduler", Config: ExtenderConfig(shadow.URL(), true, "preemptVerb: preempt")})
	defer s.Stop()

	var mu sync.Mutex
	nominated, tried := map[string]string{}, map[string]bool{}
	stop := c.Kubelets.Watch(func(_, p *corev1.Pod) {
		if p == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if node := p.Status.NominatedNodeName; node != "" && nominated[p.Name] == "" {
			nominated[p.Name] = node
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				tried[p.Name] = true
			}
		}
	})
	defer stop()
	c.CreatePods(t, preemptorsOf(cases)...)
	results := map[string]caseResult{}
	Eventually(t, "kube-scheduler has decided", func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range cases {
			stock, extender, asked := shadow.Compare(k.Preemptors[0].Name, nominated[k.Preemptors[0].Name])
			if asked && stock == "" || !asked && !tried[k.Preemptors[0].Name] {
				return fmt.Sprintf("seed %d: asked %t", k.Seed, asked)
			}
			results[k.Name] = caseResult{asked, stock, extender, shadow.Proposals(k.Preemptors[0].Name)}
		}
		return ""
	})
	return results
}

// In random cases, kube-scheduler with the plugin evicts the pods that it evicts without.
// CEDE_CASES is the number of cases, CEDE_SEED the first seed.
func TestRandom_PluginEvictsAsKubeScheduler(t *testing.T) {
	comparePlugin(t, 300, RandomCase)
}

// The same for gangs as preemptors.
func TestRandom_PluginEvictsForGangsAsKubeScheduler(t *testing.T) {
	comparePlugin(t, 200, RandomGangCase)
}

// comparePlugin plays random cases with kube-scheduler as released and with the plugin.
func comparePlugin(t *testing.T, cases int, random func(seed uint64) *Case) {
	t.Helper()
	if testing.Short() {
		t.Skip("building the plugin takes as long as building Kubernetes")
	}
	count, first := setting(t, "CEDE_CASES", cases), uint64(setting(t, "CEDE_SEED", 1))
	const batch = 20
	c := clusterWithPodGroups(t)
	agree, none := 0, 0
	explained := map[string]int{} // differences by rule
	for from := 0; from < count; from += batch {
		var cases []*Case
		for i := range min(batch, count-from) {
			cases = append(cases, random(first+uint64(from+i)))
		}
		stock := c.playEvictions(t, cases, Scheduler{Name: "scheduler-stock"})
		plugin := c.playEvictions(t, cases, Scheduler{Name: "scheduler-plugin", Path: plugin(t), Config: PluginConfig("kubernetes")})
		for _, k := range cases {
			rule := k.differs(caseResult{stock: stock[k.Name], extender: plugin[k.Name]})
			switch {
			case stock[k.Name] == "" && plugin[k.Name] == "":
				none++
			case stock[k.Name] == plugin[k.Name]:
				agree++
			case rule != "":
				explained[rule]++
				t.Logf("seed %d: kube-scheduler evicts %q, the plugin %q: %s", k.Seed, stock[k.Name], plugin[k.Name], rule)
			default:
				t.Errorf("seed %d: kube-scheduler evicts %q, the plugin %q\n%s", k.Seed, stock[k.Name], plugin[k.Name], k)
			}
		}
	}
	t.Logf("%d cases agree, %d differ by a rule %v; in %d no eviction helps or none is necessary", agree, sum(explained), explained, none)
	if agree < count/3 {
		t.Errorf("of %d cases only %d agree: the generator has lost them", count, agree)
	}
}

// playEvictions plays cases with a scheduler, and returns the names of the evicted pods of
// each. It leaves the cluster empty.
func (c *Cluster) playEvictions(t *testing.T, cases []*Case, o Scheduler) map[string]string {
	t.Helper()
	defer c.Reset(t)
	c.createCases(t, cases)
	var mu sync.Mutex
	evicted, ended := map[string]map[string]bool{}, map[string]bool{} // by case; by preemptor
	stop := c.Kubelets.Watch(func(old, p *corev1.Pod) {
		gone := p == nil
		if gone {
			p = old
		}
		mu.Lock()
		defer mu.Unlock()
		name := p.Labels[caseLabel]
		switch {
		case gone || p.DeletionTimestamp != nil:
			if evicted[name] == nil {
				evicted[name] = map[string]bool{}
			}
			evicted[name][p.Name] = true
		case strings.Contains(p.Name, "-high"):
			ended[p.Name] = p.Spec.NodeName != "" || isHopeless(p)
		}
	})
	defer stop()
	s := c.StartScheduler(t, o)
	defer s.Stop()
	c.CreatePods(t, preemptorsOf(cases)...)
	results := map[string]string{}
	Eventually(t, "all preemptors are bound or hopeless", func(context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range preemptorsOf(cases) {
			if !ended[p.Name] {
				return p.Name
			}
		}
		return ""
	})
	mu.Lock()
	defer mu.Unlock()
	for _, k := range cases {
		results[k.Name] = strings.Join(slices.Sorted(maps.Keys(evicted[k.Name])), " ")
	}
	return results
}

// isHopeless reports whether kube-scheduler has found no eviction that helps a pod.
func isHopeless(p *corev1.Pod) bool {
	return p.Status.NominatedNodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
	})
}

// nameVictims stores the UIDs of the pods in the cases.
func (c *Cluster) nameVictims(t *testing.T, cases []*Case) {
	t.Helper()
	list, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range cases {
		for _, p := range k.Pods {
			for i := range list.Items {
				if list.Items[i].Name == p.Name {
					p.UID = list.Items[i].UID
				}
			}
		}
	}
}

// awaitBudgets waits until the controller has counted the pods of each budget.
func (c *Cluster) awaitBudgets(t *testing.T, cases []*Case) {
	t.Helper()
	Eventually(t, "budgets are counted", func(ctx context.Context) string {
		for _, k := range cases {
			for _, b := range k.Budgets {
				now, err := c.Client.PolicyV1().PodDisruptionBudgets(b.Namespace).Get(ctx, b.Name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				matching := int32(0)
				for _, p := range k.Pods {
					if p.Labels[appLabel] == b.Spec.Selector.MatchLabels[appLabel] {
						matching++
					}
				}
				if now.Status.ObservedGeneration == 0 || now.Status.CurrentHealthy != matching {
					return fmt.Sprintf("%s has %d of %d pods", b.Name, now.Status.CurrentHealthy, matching)
				}
				b.Status = now.Status
			}
		}
		return ""
	})
}

// named replaces UIDs by names.
func (k *Case) named(text string) string {
	for _, p := range k.Pods {
		text = strings.ReplaceAll(text, string(p.UID), p.Name)
	}
	return text
}

// groupOf returns the name of a pod's group, or "".
func groupOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return *p.Spec.SchedulingGroup.PodGroupName
}

// String lists the objects of a case.
func (k *Case) String() string {
	var b strings.Builder
	line := func(p *corev1.Pod) {
		requests := p.Spec.Containers[0].Resources.Requests
		fmt.Fprintf(&b, "  %s: node %s, %s, cpu %s, memory %s, %s, started %s, group %s\n", p.Name, p.Spec.NodeName, p.Spec.PriorityClassName, requests.Cpu(), requests.Memory(), p.Labels[appLabel], p.Annotations[StartedAnnotation], groupOf(p))
	}
	for _, n := range k.Nodes {
		fmt.Fprintf(&b, "  node %s: cpu %s, memory %s, %v, taints %v\n", n.Name, n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Labels, n.Spec.Taints)
	}
	for _, p := range k.Pods {
		line(p)
	}
	for _, g := range k.Groups {
		fmt.Fprintf(&b, "  group %s: %s, all %t\n", g.Name, g.Spec.PriorityClassName, g.Spec.DisruptionMode.All != nil)
	}
	for _, budget := range k.Budgets {
		fmt.Fprintf(&b, "  budget %s: at least %s of %v, allows %d\n", budget.Name, budget.Spec.MinAvailable, budget.Spec.Selector.MatchLabels, budget.Status.DisruptionsAllowed)
	}
	for _, s := range k.Slices {
		fmt.Fprintf(&b, "  devices of %s: %d\n", s.Name, len(s.Spec.Devices))
	}
	for _, claim := range k.Claims {
		fmt.Fprintf(&b, "  claim of %s: allocated %t\n", claim.Name, claim.Status.Allocation != nil)
	}
	for _, p := range k.Preemptors {
		line(p)
	}
	if k.Gang != nil {
		fmt.Fprintf(&b, "  gang of at least %d\n", k.Gang.Spec.SchedulingPolicy.Gang.MinCount)
	}
	spec := &k.Preemptors[0].Spec
	fmt.Fprintf(&b, "  affinity %v, tolerations %v, spread %v", spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints)
	return b.String()
}
